//! `init`, `add`, `remove`, `enable` and `disable`.

use crate::support::{Cases, Home, USER_CONFIG, redacted};

#[tokio::test]
async fn add_creates_the_config_and_appends_to_it() {
    let home = Home::new();
    let typed: [&[&str]; 5] = [
        &["add", "notes", "--", "npx", "-y", "notes server"],
        &[
            "add",
            "airtable",
            "--env",
            "KEY=a=b",
            "--description",
            "Tables.",
            "--",
            "npx",
            "airtable",
        ],
        &[
            "add",
            "--transport",
            "http",
            "docs",
            "https://docs.example/mcp",
            "-H",
            "Authorization: Bearer x",
        ],
        &["add", r#""pasted": {"command": "npx", "args": ["-y", "x"], "autoApprove": []}"#],
        &["add", "named", r#"{"url": "https://e.example/"}"#, "--hybrid"],
    ];
    for arguments in typed {
        let (code, said) = home.run(arguments).await;
        assert_eq!(code, Some(0), "{said}");
    }
    insta::assert_snapshot!(home.read(USER_CONFIG));
    let (code, said) = home.run(&["check"]).await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test]
async fn failed_add_leaves_the_config_unchanged() {
    let home = Home::new();
    assert_eq!(home.run(&["add", "a", "x"]).await.0, Some(0));
    let before = home.read(USER_CONFIG);
    let mut cases = Cases::default();
    for arguments in [
        &["add", "a", "y"][..],
        &["add", "b"],
        &["add", "b", "https://x.example/", "more"],
        &["add", "b", r#"{"command": 3}"#],
        &["add", "b", "htp://x"],
        &["add", "b", "npx -y x"],
        &["add", "", "x"],
        &["add", "b", r#"{"comand": "x"}"#],
        &["add", "b", "-e", "KEY", "x"],
        &["add", "b", "-t", "pipe", "x"],
        &["remove", "b"],
        &["enable", "a", "b"],
    ] {
        let (code, said) = home.run(arguments).await;
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        cases.add(format!("{arguments:?}"), &said);
        home.assert_file(USER_CONFIG, &before);
    }
    insta::assert_snapshot!(cases);
    assert_eq!(home.run(&["add", "--force", "a", "y"]).await.0, Some(0));
    assert!(home.read(USER_CONFIG).contains(r#""command": "y""#));
}

#[tokio::test]
async fn edits_keep_comments_in_every_format() {
    for (name, before, after) in [
        (
            "c.json",
            "{ // mine\n  \"mcpServers\": {\n    // one\n    \"a\": {\"command\": \"x\"}, /* why */\n    \"b\": {\n      \"command\": \"y\",\n    },\n  },\n}\n",
            "{ // mine\n  \"mcpServers\": {\n    // one\n    \"a\": {\"command\": \"x\", \"enabled\": false}, /* why */\n  },\n}\n",
        ),
        (
            "c.yaml",
            "# mine\nmcpServers:\n    # one\n    a:\n        command: x   # why\n    b: {command: y}\nsurface: direct\n",
            "# mine\nmcpServers:\n    # one\n    a:\n        command: x   # why\n        enabled: false\nsurface: direct\n",
        ),
        (
            "c.toml",
            "# mine\n\n# one\n[mcpServers.a]\ncommand = \"x\" # why\n\n[mcpServers.b]\ncommand = \"y\"\n",
            "# mine\n\n# one\n[mcpServers.a]\ncommand = \"x\" # why\nenabled = false\n",
        ),
    ] {
        let home = Home::new().with(name, before);
        let (code, said) = home.run(&["remove", "b", "--dry-run", "--config", name]).await;
        assert_eq!(code, Some(0), "{said}");
        let is_removed = |line: &str| line.starts_with('-') && line.contains('b');
        assert!(said.lines().any(is_removed), "{said}");
        home.assert_file(name, before);
        for arguments in [["disable", "a"], ["remove", "b"]] {
            let (code, said) = home.run(&[&arguments[..], &["--config", name]].concat()).await;
            assert_eq!(code, Some(0), "{said}");
        }
        home.assert_file(name, after);
        assert_eq!(home.run(&["enable", "a", "--config", name]).await.0, Some(0));
        home.assert_file(name, &after.replace("false", "true"));
    }
}

#[tokio::test]
async fn enable_and_disable_report_no_change() {
    let home = Home::new().with("c.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    let mut cases = Cases::default();
    for command in ["enable", "disable", "disable", "enable"] {
        let (code, said) = home.run(&[command, "a", "a", "--config", "c.json"]).await;
        assert_eq!(code, Some(0), "{said}");
        cases.add(command, &said);
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn init_never_overwrites_a_config() {
    let home = Home::new();
    assert_eq!(home.run(&["init"]).await.0, Some(0));
    let (code, said) = home.run(&["check"]).await;
    assert_eq!(code, Some(0), "{said}");
    let before = home.read(USER_CONFIG);
    let (code, said) = home.run(&["init"]).await;
    assert_eq!(code, Some(1), "{said}");
    insta::assert_snapshot!(redacted(&said));
    home.assert_file(USER_CONFIG, &before);
    assert_eq!(home.run(&["init", "--config", "project/dormouse.json"]).await.0, Some(0));
    assert_eq!(home.run(&["init", "--config", "x.yaml"]).await.0, Some(2));
}
