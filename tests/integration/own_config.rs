//! The choice of a config, its protection from writes, and the commands that it may start.

use serde_json::json;

use crate::support::{Cases, Home, Proxy, USER_CONFIG, descendants, redacted, text_of};

const PROJECTS: &str = r#"{"mcpServers": {"team": {"command": "team-server"}}}"#;
const MINE: &str = r#"{"mcpServers": {"mine": {"command": "my-server"}}}"#;

#[tokio::test]
async fn foreign_project_file_is_neither_used_nor_written() {
    for name in ["project/.mcp.json", "project/mcp.json"] {
        let home = Home::new().with(USER_CONFIG, MINE).with(name, PROJECTS);
        for command in [&["list"][..], &["check"], &["status"]] {
            let (code, said) = home.run_in("project", command).await;
            assert_eq!(code, Some(0), "{command:?}: {said}");
            assert!(said.contains(USER_CONFIG) && !said.contains("team"), "{command:?}: {said}");
        }
        for command in [&["disable", "mine"][..], &["add", "new", "x"], &["remove", "mine"]] {
            let (code, said) = home.run_in("project", command).await;
            assert_eq!(code, Some(0), "{command:?}: {said}");
            assert!(said.contains(USER_CONFIG), "{command:?}: {said}");
        }
        home.assert_file(name, PROJECTS);
        assert!(home.read(USER_CONFIG).contains("new"));
    }
}

#[tokio::test]
async fn named_foreign_file_is_read_and_never_written() {
    let home = Home::new().with("project/.mcp.json", PROJECTS);
    let (code, said) = home.run_in("project", &["list", "--config", ".mcp.json"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("team"), "{said}");
    let mut cases = Cases::default();
    for command in [&["disable", "team"][..], &["remove", "team"], &["add", "new", "x"]] {
        let command = [command, &["--config", ".mcp.json"]].concat();
        let (code, said) = home.run_in("project", &command).await;
        assert_ne!(code, Some(0), "{command:?}: {said}");
        cases.add(command.join(" "), &said);
        home.assert_file("project/.mcp.json", PROJECTS);
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn foreign_project_file_is_mentioned_without_a_config() {
    let home = Home::new().with("project/.mcp.json", PROJECTS);
    let (code, said) = home.run_in("project", &["check"]).await;
    assert_eq!(code, Some(2));
    insta::assert_snapshot!(redacted(&said));
}

/// The output of a command with the lines of the log first, which a thread of its own writes at any
/// time.
fn with_log_first(said: &str) -> String {
    let is_log = |line: &&str| line.contains(" WARN ");
    let (log, report): (Vec<&str>, Vec<&str>) = said.lines().partition(is_log);
    [log, report].concat().join("\n")
}

#[tokio::test]
async fn untrusted_project_config_falls_back_to_the_users() {
    let home = Home::new().with(USER_CONFIG, MINE).with("project/dormouse.json", PROJECTS);
    let mut cases = Cases::default();
    for command in [&["list"][..], &["disable", "mine"]] {
        let (code, said) = home.run_in("project", command).await;
        assert_eq!(code, Some(0), "{command:?}: {said}");
        cases.add(command.join(" "), &with_log_first(&said));
    }
    home.assert_file("project/dormouse.json", PROJECTS);
    let (code, said) = home.run_in("project", &["trust"]).await;
    assert_eq!(code, Some(0), "{said}");
    let (_, said) = home.run_in("project", &["list"]).await;
    assert!(said.contains("team") && !said.contains("mine"), "{said}");
    // A trusted config that has changed since is an error, not ignored.
    home.write("project/dormouse.json", MINE);
    let (code, said) = home.run_in("project", &["disable", "mine"]).await;
    assert_eq!(code, Some(2), "{said}");
    cases.add("disable mine, after a change", &said);
    insta::assert_snapshot!(cases);
    home.assert_file("project/dormouse.json", MINE);
}

#[cfg(unix)]
#[tokio::test]
async fn foreign_file_is_recognized_through_a_link() {
    let home = Home::new().with("project/.mcp.json", PROJECTS);
    std::os::unix::fs::symlink(".mcp.json", home.path().join("project/dormouse.json")).unwrap();
    home.run_in("project", &["trust"]).await;
    let (code, said) = home.run_in("project", &["disable", "team"]).await;
    assert_ne!(code, Some(0), "{said}");
    home.assert_file("project/.mcp.json", PROJECTS);
}

#[tokio::test]
async fn dormouse_does_not_start_itself() {
    let home = Home::new();
    let path = home.path().join("c.json");
    let itself = json!({
        "description": "Itself.",
        "command": env!("CARGO_BIN_EXE_dormouse"),
        "args": ["--config", path],
    });
    home.write("c.json", json!({"mcpServers": {"itself": itself}}).to_string());
    let mut host = Proxy::with_config_at(&path).serve().await;
    let result = host.load("itself").await;
    assert_eq!(result["isError"], true);
    insta::assert_snapshot!(redacted(text_of(&result)));
    assert!(descendants(host.serving_id()).len() <= 1, "only the watchdog is left");
}

#[tokio::test]
async fn check_and_add_recognize_dormouse_itself() {
    let config = json!({"mcpServers": {"itself": {"command": "dormouse"}}});
    let home = Home::new().with(USER_CONFIG, config.to_string());
    let mut cases = Cases::default();
    let (code, said) = home.run(&["check"]).await;
    assert_eq!(code, Some(0));
    cases.add("check", &said);
    let home = Home::new();
    let (code, said) = home.run(&["add", "self", "--", "dormouse"]).await;
    assert_eq!(code, Some(2));
    cases.add("add self -- dormouse", &said);
    insta::assert_snapshot!(cases);
    let (code, said) = home.run(&["add", "other", "--", "dormouse", "--config", "x.json"]).await;
    assert_eq!(code, Some(0), "{said}");
    // A dormouse with another config is an ordinary server.
    home.write("other.json", r#"{"mcpServers": {}}"#);
    let add = ["add", "--config", "other.json", "outer", "--", "dormouse"];
    let (code, said) = home.run(&add).await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test]
async fn trust_shows_commands_without_values() {
    let config = json!({"mcpServers": {
        "a": {"command": "${NO_SUCH}", "args": ["--token", "${TOKEN}"]},
        "b": {"url": "https://e.example/${TOKEN}/mcp?key=${TOKEN}"},
        "c": {"command": "sh", "args": ["-c", "$RUN"], "env": {"RUN": "rm -r x", "KEY": "k3y-of-mine"}},
    }});
    let home = Home::new()
        .with("project/dormouse.json", config.to_string())
        .with("project/.env", "TOKEN=hidden-secret\n");
    let (code, said) = home.run_in("project", &["trust"]).await;
    assert_eq!(code, Some(0), "{said}");
    insta::assert_snapshot!(redacted(&said));
    assert!(!said.contains("k3y-of-mine"), "{said}");
    assert!(!said.contains("hidden-secret"), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn untrusted_config_with_an_endless_env_file_is_refused() {
    let home = Home::new().with("project/dormouse.json", MINE);
    std::os::unix::fs::symlink("/dev/zero", home.path().join("project/.env")).unwrap();
    let (code, said) = home.run_in("project", &["test"]).await;
    assert_eq!(code, Some(2));
    insta::assert_snapshot!(redacted(&said));
}

#[tokio::test]
async fn exploding_variables_are_refused() {
    let doubling: Vec<String> = (0..60).map(|n| format!("A{}=${{A{n}}}${{A{n}}}", n + 1)).collect();
    let server = json!({"command": "x", "args": vec!["${A9}"; 30_000]});
    let home = Home::new()
        .with("project/dormouse.json", json!({"mcpServers": {"a": server}}).to_string())
        .with("project/.env", format!("A0=0123456789\n{}", doubling.join("\n")));
    let (code, said) = home.run_in("project", &["trust"]).await;
    assert_eq!(code, Some(2), "{said}");
    insta::assert_snapshot!(redacted(&said));
}

#[tokio::test]
async fn orphaned_process_may_start_dormouse_again() {
    let home = Home::new().with("c.json", r#"{"mcpServers": {}}"#);
    let serve = |lineage: String| {
        let mut command = home.command(".");
        command.args(["serve", "--config", "c.json"]).env("DORMOUSE_LINEAGE", lineage);
        command.stdin(std::process::Stdio::null());
        async move { command.output().await.unwrap() }
    };
    let own = home.path().join("c.json");
    let config = dormouse::internals::config::place_fingerprint(&own);
    let refused = serve(format!("{config}@{}", std::process::id())).await;
    assert!(!refused.status.success(), "{refused:?}");
    insta::assert_snapshot!(redacted(&String::from_utf8(refused.stderr).unwrap()));
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let output = serve(format!("{config}@{}", gone.id())).await;
    assert!(output.status.success(), "{output:?}");
}
