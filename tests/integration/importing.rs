//! `import`: servers from apps and from configs of other proxies, on files as these programs write
//! them.

use serde_json::{Value, json};

use crate::support::{
    Cases, Home, USER_CONFIG, at_terminal, fixture, line_of, redacted, without_differences,
};

/// Returns the JSON in an output.
fn reported(said: &str) -> Value {
    let start = said.find("{\n").unwrap_or_else(|| panic!("{said}"));
    let mut values = serde_json::Deserializer::from_str(&said[start..]).into_iter();
    values.next().and_then(Result::ok).unwrap_or_else(|| panic!("{said}"))
}

#[tokio::test]
async fn import_all_keeps_the_meaning_of_servers() {
    let home = Home::with_app_files();
    let before = home.files();
    let import = ["import", "--all", "--project", "--yes", "--move-secrets"];
    let (code, said) = home.run_in("project", &import).await;
    assert_eq!(code, Some(0), "{said}");
    insta::assert_snapshot!("imported", redacted(&home.read(USER_CONFIG)));
    let (_, notes) = said.split_once("wrote").unwrap();
    insta::assert_snapshot!("notes_of_the_import", redacted(notes));
    insta::assert_snapshot!("secrets", home.read(".config/dormouse/.env"));
    for secret in ["ghp_0123456789", "ntn_abcdef", "hunter2"] {
        assert!(!said.contains(secret), "{said}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = home.path().join(".config/dormouse/.env").metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    let (code, said) = home.run(&["check"]).await;
    assert_eq!(code, Some(0), "{said}");
    let is_ours = |path: &std::path::Path| path.starts_with(home.path().join(".config/dormouse"));
    let after: Vec<_> = home.files().into_iter().filter(|(path, _)| !is_ours(path)).collect();
    assert_eq!(after, before, "the originals are as they were");
}

#[tokio::test]
async fn imported_servers_are_not_imported_again() {
    let home = Home::with_app_files();
    let import = ["import", "--all", "--project", "--yes", "--move-secrets", "--json"];
    assert_eq!(home.run_in("project", &import).await.0, Some(0));
    let config = home.read(USER_CONFIG);
    let (code, said) = home.run_in("project", &import).await;
    assert_eq!(code, Some(0), "{said}");
    let report = reported(&said);
    assert_eq!(report["written"], json!(false));
    let outcomes = report["servers"].as_array().unwrap().iter().map(|server| &server["outcome"]);
    let new = outcomes.filter(|outcome| *outcome != "already there" && *outcome != "skipped");
    assert_eq!(new.count(), 0, "{said}");
    home.assert_file(USER_CONFIG, &config);
}

#[tokio::test]
async fn import_without_consent_writes_nothing() {
    let home = Home::with_app_files();
    let mut cases = Cases::default();
    for (arguments, expected) in [
        (&["import", "cursor"][..], 1),
        (&["import", "cursor", "--json"], 1),
        (&["import", "cursor", "--dry-run"], 0),
    ] {
        let (code, said) = home.run(arguments).await;
        assert_eq!(code, Some(expected), "{said}");
        assert!(!said.contains("ghp_"), "{said}");
        cases.add(arguments.join(" "), &without_differences(&said));
        assert!(!home.path().join(USER_CONFIG).exists());
    }
    let (code, said) = home.run(&["import", "unknown-app"]).await;
    assert_eq!(code, Some(2), "{said}");
    cases.add("import unknown-app", &said);
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn import_without_arguments_lists_the_apps() {
    let home = Home::with_app_files();
    let (code, said) = home.run_in("project", &["import"]).await;
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(redacted(&said));
}

#[tokio::test]
async fn import_as_json_lists_files_with_servers() {
    let home = Home::with_app_files();
    let (code, said) = home.run_in("project", &["import", "--json"]).await;
    assert_eq!(code, Some(0), "{said}");
    let files: Vec<Value> = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let of = |app: &str, scope: &str| {
        let is_it = |file: &&Value| file["app"] == app && file["scope"] == scope;
        files.iter().find(is_it).map(|file| file["servers"].clone())
    };
    assert_eq!(of("claude-code", "user"), Some(json!(["github", "filesystem"])));
    assert_eq!(of("claude-code", "local"), Some(json!(["local-db"])));
    let (code, said) = Home::new().run(&["import", "--json"]).await;
    assert_eq!((code, said.trim()), (Some(0), "[]"));
}

#[tokio::test]
async fn servers_of_other_projects_are_mentioned() {
    let home = Home::with_app_files();
    for arguments in [&["import"][..], &["import", "claude-code", "--yes"]] {
        let (code, said) = home.run_in("project", arguments).await;
        assert_eq!(code, Some(0), "{said}");
        insta::assert_snapshot!("servers_of_other_projects", line_of(&said, "/elsewhere"));
    }
    assert!(
        home.read(USER_CONFIG).contains("local-db") && !home.read(USER_CONFIG).contains("not-here")
    );
}

#[tokio::test]
async fn servers_of_the_same_name_are_told_apart() {
    let config = |command: &str| json!({"mcpServers": {"s": {"command": command}}}).to_string();
    let home = Home::new()
        .with(".cursor/mcp.json", config("one"))
        .with(".codeium/windsurf/mcp_config.json", config("two"))
        .with(".gemini/config/mcp_config.json", config("one"));
    let (code, said) = home.run(&["import", "--all", "--yes", "--json"]).await;
    assert_eq!(code, Some(0), "{said}");
    let written = home.read(USER_CONFIG);
    let without_comments = &written[written.find('{').unwrap()..];
    let ours: Value = serde_json::from_str(without_comments).unwrap();
    assert_eq!(ours["mcpServers"]["s"]["command"], "one");
    assert_eq!(ours["mcpServers"]["s-windsurf"]["command"], "two");
    assert_eq!(reported(&said)["servers"][0]["from"].as_array().unwrap().len(), 2);

    home.write(".cursor/mcp.json", config("three"));
    let (code, said) = home.run(&["import", "cursor", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    insta::assert_snapshot!("name_is_taken", redacted(&said));
    assert_eq!(home.run(&["import", "cursor", "--yes", "--force"]).await.0, Some(0));
    assert!(home.read(USER_CONFIG).contains("\"three\""));
    // A server that is in the config already is reported by its name there.
    let (_, said) = home.run(&["import", "windsurf", "--json", "--yes"]).await;
    let servers = reported(&said)["servers"].clone();
    assert_eq!(
        (&servers[0]["name"], &servers[0]["outcome"]),
        (&json!("s-windsurf"), &json!("already there"))
    );
}

#[tokio::test]
async fn unreadable_file_does_not_stop_the_import() {
    let home = Home::with_app_files().with(".cursor/mcp.json", "{\n  \"mcpServers\": nonsense\n}");
    let (code, said) = home.run(&["import", "cursor", "windsurf", "--yes"]).await;
    assert_eq!(code, Some(1), "{said}");
    insta::assert_snapshot!(redacted(&without_differences(&said)));
    assert!(home.read(USER_CONFIG).contains("notion"));
}

#[tokio::test]
async fn invalid_entries_do_not_stop_the_import() {
    let theirs = r#"{"mcpServers": {
        "good": {"command": "good", "args": ["--port", 8080]}, "null": null, "text": "x",
        "socket": {"type": "ws", "url": "wss://x.example/"}, "odd": {"url": "http://x/", "headers": "x", "apiKey": "k"}
    }}"#;
    let home = Home::new().with(".cursor/mcp.json", theirs);
    let (code, said) = home.run(&["import", "cursor", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    insta::assert_snapshot!(
        said.lines().filter(|line| line.contains("left out")).collect::<Vec<_>>().join("\n")
    );
    assert!(
        home.read(USER_CONFIG).contains("\"good\"") && home.read(USER_CONFIG).contains("\"8080\"")
    );
}

#[tokio::test]
async fn project_servers_need_the_project_flag() {
    let home = Home::with_app_files();
    let (code, said) = home.run_in("project", &["import", "cursor", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    insta::assert_snapshot!(redacted(&without_differences(&said)));
    assert!(!home.read(USER_CONFIG).contains("\"here\""));
    let (code, said) = home.run_in("project", &["import", ".cursor/mcp.json", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    let place = home.path().join("project").to_string_lossy().into_owned();
    assert!(
        home.read(USER_CONFIG).contains(&format!("\"command\": \"{place}/server\"")),
        "{}",
        home.read(USER_CONFIG)
    );
}

#[tokio::test]
async fn import_runs_no_project_command_unasked() {
    let evil = json!({"mcpServers": {"evil": {"command": "sh", "args": ["-c", "touch ran"]}}});
    let home = Home::new().with("project/.mcp.json", evil.to_string());
    for arguments in
        [&["import", "--all", "--probe", "--json"][..], &["import", "--all", "--probe"]]
    {
        home.run_in("project", arguments).await;
        assert!(!home.path().join("project/ran").exists(), "{arguments:?}");
    }
    home.run_in("project", &["import", "--all", "--probe", "--project", "--yes"]).await;
    assert!(home.path().join("project/ran").exists());
}

#[tokio::test]
async fn name_of_another_found_server_is_free() {
    let config = |command: &str| json!({"mcpServers": {"s": {"command": command}}}).to_string();
    let home = Home::new()
        .with(USER_CONFIG, config("one"))
        .with(".cursor/mcp.json", config("one"))
        .with(".codeium/windsurf/mcp_config.json", config("two"));
    let (code, said) = home.run(&["import", "--all", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(home.read(USER_CONFIG).contains("\"s-windsurf\""), "{said}");
}

#[tokio::test]
async fn untrusted_config_is_not_edited() {
    let home = Home::with_app_files().with("project/dormouse.json", "{\"mcpServers\": {}}");
    let mut cases = Cases::default();
    for arguments in [&["import", "cursor", "--yes", "--move-secrets"][..], &["add", "x", "y"]] {
        let (code, said) = home.run_in("project", arguments).await;
        assert_eq!(code, Some(2), "{said}");
        cases.add(arguments.join(" "), &said);
    }
    insta::assert_snapshot!(cases);
    assert!(!home.path().join("project/.env").exists());
    // A file of an app in the project is not a config of dormouse.
    std::fs::remove_file(home.path().join("project/dormouse.json")).unwrap();
    let before = home.read("project/.mcp.json");
    assert_eq!(home.run_in("project", &["add", "x", "y"]).await.0, Some(0));
    home.assert_file("project/.mcp.json", &before);
    assert!(home.read(USER_CONFIG).contains("\"x\""));
}

#[tokio::test]
async fn probed_servers_get_descriptions() {
    let script = json!({
        "instructions": "Keeps notes. Use it to remember."
    });
    let entry = json!({"command": fixture(), "args": [script.to_string()]});
    let broken = json!({"command": "/no/such/program"});
    let config = json!({"mcpServers": {"notes": entry, "broken": broken}});
    let home = Home::new().with("theirs.json", config.to_string());
    let (code, said) = home.run(&["import", "theirs.json", "--probe", "--yes", "--json"]).await;
    assert_eq!(code, Some(0), "{said}");
    let report = reported(&said);
    let description = &report["servers"][0]["entry"]["description"];
    insta::assert_snapshot!("description_from_a_probe", description.as_str().unwrap());
    assert_eq!(report["servers"][1]["entry"]["startup"], "hybrid", "{said}");
    insta::assert_snapshot!("failed_probe", line_of(&said, "broken: "));
    let home = Home::new().with("theirs.json", config.to_string());
    let (code, said) = home.run(&["import", "theirs.json", "--eager", "--yes", "--json"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(reported(&said)["servers"][0]["entry"]["startup"], "eager");
}

#[tokio::test]
async fn configs_of_other_proxies_are_converted() {
    for (name, theirs, expected) in [
        (
            "dynmcp.json",
            json!({"env": "disable", "mcp": {"a": {"transport": "stdio", "command": "x", "args": ["${A}"], "description": "d"}}})
                .to_string(),
            &["\"$${A}\"", "\"surface\": \"discover\"", "\"description\": \"d\""][..],
        ),
        (
            "dynamic.json",
            json!({"mcpServers": {"a": {"command": "x", "features": {"prompts": false}, "idle_timeout": 60}}}).to_string(),
            &["\"surface\": \"groups\"", "\"prompts\": false", "\"startup\": \"hybrid\""],
        ),
        (
            "servers.yaml",
            "servers:\n  a:\n    command: npx -y 'a b'\n    always_on: true\n    tools:\n      t: {enabled: false}\n".to_owned(),
            &["\"args\": [\"-y\", \"a b\"]", "\"startup\": \"eager\"", "\"t\""],
        ),
        (
            "proxy.json",
            json!({"mcpProxy": {"addr": ":9090", "name": "n", "version": "1"},
                   "mcpServers": {"a": {"url": "http://127.0.0.1:1/", "options": {"toolFilter": {"mode": "block", "list": ["t"]}}}}})
                .to_string(),
            &["\"listen\"", "\"t\": false"],
        ),
    ] {
        let home = Home::new().with(name, theirs);
        let (code, said) = home.run(&["import", name, "--yes"]).await;
        assert_eq!(code, Some(0), "{name}: {said}");
        let ours = home.read(USER_CONFIG);
        for part in expected {
            assert!(ours.contains(part), "{name}: {part} in {ours}");
        }
        let (code, said) = home.run(&["check"]).await;
        assert_eq!(code, Some(0), "{name}: {said}");
    }
}

/// Configs of other proxies with every key whose value is translated.
const CONVERTED: [(&str, &str); 4] = [
    (
        "dynmcp.json",
        r#"{"mcp": {
            "a": {"transport": "stdio", "command": "x1", "args": ["a"], "env": {"A": "b"}, "description": "d"},
            "b": {"transport": "streamable-http", "url": "http://x1/", "headers": {"A": "b"},
                  "auth": {"client_id": "c", "client_secret": "s", "scope": "r w"}},
            "c": {"transport": "sse", "url": "http://x2/"}}}"#,
    ),
    (
        "dynamic.json",
        r#"{"mcpServers": {
            "a": {"command": "x2", "idle_timeout": 60, "timeout": {"tools": "1min", "resources": 5, "prompts": 7},
                  "features": {"prompts": false}},
            "b": {"type": "sse", "url": "http://x3/", "lazy_startup": false, "oauth_client_id": "c", "oauth_scopes": ["r"]},
            "c": {"type": "http", "url": "http://x4/", "lazy_startup": "pure"},
            "d": {"type": "stdio", "command": "x3"}}}"#,
    ),
    (
        "servers.yaml",
        "servers:\n  a:\n    command: npx -y 'a b'\n    idle_timeout_minutes: 2\n    tools:\n      t: {enabled: false, description: d}\n      u:\n  b: {type: stdio, command: y, always_on: true}\n  c: {type: sse, url: 'http://x5/', always_on: false}\n  d: {type: http, url: 'http://x6/'}\n",
    ),
    (
        "proxy.json",
        r#"{"mcpProxy": {"addr": ":9090", "baseURL": "http://x", "name": "n", "version": "1", "type": "sse",
                "options": {"lazyLoad": true, "authTokens": ["t"], "panicIfInvalid": true, "logEnabled": true}},
            "mcpServers": {
                "a": {"command": "x4", "timeout": 1500000000, "transportType": "stdio"},
                "b": {"transportType": "sse", "url": "http://x7/", "options": {
                    "lazyLoad": false, "authTokens": ["b"], "toolFilter": {"mode": "allow", "list": ["t"]}}},
                "c": {"transportType": "streamable-http", "url": "http://x8/", "oauth": {
                    "clientId": "c", "clientSecret": "keychain:n", "scopes": ["r"]}}}}"#,
    ),
];

#[tokio::test]
async fn converted_configs_match_the_schema() {
    for (name, theirs) in CONVERTED {
        let home = Home::new().with(name, theirs);
        let (code, said) = home.run(&["import", name, "--yes"]).await;
        assert_eq!(code, Some(0), "{name}: {said}");
        let ours = home.read(USER_CONFIG);
        let start = ours.find('{').unwrap();
        let value: Value = serde_json::from_str(&ours[start..]).unwrap();
        std::fs::write(home.path().join("ours.json"), value.to_string()).unwrap();
        let mut validator = std::process::Command::new("node");
        validator.current_dir(env!("CARGO_MANIFEST_DIR")).arg("tests/npm/validate.mjs");
        validator.arg("docs/config.schema.json").arg(home.path().join("ours.json"));
        let output = validator.output().unwrap();
        let why = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {why}\n{ours}");
        assert!(value["mcpServers"].as_object().unwrap().len() >= 3, "{ours}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn import_asks_at_a_terminal() {
    let home = Home::with_app_files();
    let mut command = home.command(".");
    command.args(["import", "windsurf"]);
    let answers = [
        ("notion: ", "Notes of the team.\r"),
        ("next to the config? ", "y"),
        ("dormouse.json? ", "y"),
    ];
    let said = at_terminal(command, &answers).await;
    assert!(said.contains("notion"), "{said}");
    let ours = home.read(USER_CONFIG);
    assert!(ours.contains("\"description\": \"Notes of the team.\""), "{said}\n{ours}");
    assert!(ours.contains("Bearer ${NOTION_AUTHORIZATION}"), "{said}\n{ours}");
    assert!(!ours.contains("startup"), "{ours}");
}

/// Returns a home with apps that have different servers, of which two have one name.
fn home_of_different_apps() -> Home {
    let config = |servers: &[(&str, &str)]| {
        let entries = servers.iter().map(|(name, command)| {
            let entry = json!({"command": command, "description": "A server. Use when testing."});
            ((*name).to_owned(), entry)
        });
        json!({"mcpServers": entries.collect::<serde_json::Map<_, _>>()}).to_string()
    };
    Home::new()
        .with(".cursor/mcp.json", config(&[("s", "one"), ("t", "three")]))
        .with(".codeium/windsurf/mcp_config.json", config(&[("s", "two")]))
        .with(".gemini/config/mcp_config.json", config(&[("own", "one")]))
}

/// Returns the config that an import has written.
fn own_config(home: &Home) -> Value {
    let written = home.read(USER_CONFIG);
    serde_json::from_str(&written[written.find('{').unwrap()..]).unwrap()
}

#[tokio::test]
async fn apps_with_different_servers_get_profiles_if_wanted() {
    let home = home_of_different_apps();
    let mut cases = Cases::default();
    let (code, said) = home.run(&["import", "--all", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    cases.add("without the flag", line_of(&said, "--profiles"));
    assert_eq!(own_config(&home)["profiles"], Value::Null);

    let (code, said) = home.run(&["import", "--all", "--yes", "--profiles"]).await;
    assert_eq!(code, Some(0), "{said}");
    let after = said.split_once("wrote").unwrap().1;
    cases.add("with it", &redacted(after));
    let (_, said) = home.run(&["import", "--all", "--yes", "--profiles"]).await;
    cases.add("again", &redacted(&said));
    insta::assert_snapshot!(cases);
    let profiles = json!({
        "antigravity": {"servers": {"s": []}},
        "cursor": {"servers": {"s": [], "t": []}},
        "windsurf": {"servers": {"s-windsurf": []}},
    });
    assert_eq!(own_config(&home)["profiles"], profiles);
    let (code, said) = home.run(&["list", "--profile", "windsurf", "--json"]).await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test]
async fn import_keeps_existing_profiles_and_needs_none_for_equal_apps() {
    let config = r#"{
  // Mine.
  "profiles": { "cursor": { "servers": {} } }, // kept
  "mcpServers": { "s": { "command": "other" } }
}"#;
    let home = home_of_different_apps().with(USER_CONFIG, config);
    let import = ["import", "--all", "--yes", "--profiles", "--json"];
    let (code, said) = home.run(&import).await;
    assert_eq!(code, Some(0), "{said}");
    let report = reported(&said);
    // The name "s" belongs to the server of the config.
    assert_eq!(report["profiles"], json!({"windsurf": ["s-windsurf"]}), "{said}");
    let written = home.read(USER_CONFIG);
    assert!(written.contains(r#""cursor": { "servers": {} }"#), "{written}");
    assert!(written.contains("// Mine.") && written.contains("// kept"), "{written}");
    assert!(!written.contains("antigravity"), "{written}");

    let same = json!({"mcpServers": {"s": {"command": "one"}}}).to_string();
    let home =
        Home::new().with(".cursor/mcp.json", &same).with(".gemini/config/mcp_config.json", &same);
    let (code, said) = home.run(&import).await;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(reported(&said)["profiles"], json!({}));
}

#[cfg(unix)]
#[tokio::test]
async fn import_asks_for_profiles_at_a_terminal() {
    let home = home_of_different_apps();
    for (answer, is_written) in [("n", false), ("y", true)] {
        let mut command = home.command(".");
        command.args(["import", "--all"]);
        let said =
            at_terminal(command, &[("a profile for each: ", answer), ("dormouse.json? ", "y")])
                .await;
        assert_eq!(own_config(&home)["profiles"].is_object(), is_written, "{said}");
        std::fs::remove_file(home.path().join(USER_CONFIG)).unwrap();
    }
}
