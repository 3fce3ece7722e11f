//! `connect` and `disconnect`, on config files as apps write them.

use serde_json::{Value, json};

use crate::support::{Cases, Home, USER_CONFIG, app_files, redacted, without_differences};

/// The file of each app into which dormouse is written.
const FILES: [(&str, &str); 17] = [
    ("claude-code", ".claude.json"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("opencode", ".config/opencode/opencode.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("zed", ".config/zed/settings.json"),
    ("goose", ".config/goose/config.yaml"),
    (
        "cline",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    ),
    (
        "roo",
        ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
    ),
    ("kilo", ".config/kilo/kilo.jsonc"),
    ("continue", ".continue/config.yaml"),
    ("copilot", ".copilot/mcp-config.json"),
    ("antigravity", ".gemini/config/mcp_config.json"),
    ("librechat", "project/librechat.yaml"),
];

const CONFIG: &str = r#"{"authTokens": ["token-of-dormouse"], "mcpServers": {}}"#;

/// The arguments that connect or disconnect this app.
fn arguments<'a>(command: &'a str, app: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let project: &[&str] = if app == "librechat" { &["--project"] } else { &[] };
    [&[command, app, "--yes"], project, more].concat()
}

#[tokio::test]
async fn disconnect_restores_files_byte_for_byte() {
    for windows in [false, true] {
        let home = Home::with_app_files().with(USER_CONFIG, CONFIG);
        for (_, path) in FILES {
            if windows {
                let text = home.read(path).replace("\r\n", "\n").replace('\n', "\r\n");
                home.write(path, format!("\u{feff}{}", text.trim_start_matches('\u{feff}')));
            }
        }
        let before = home.files();
        let (mut again, mut undone) = (Cases::default(), Cases::default());
        for (app, path) in FILES {
            let connect = arguments("connect", app, &["--replace"]);
            let (code, said) = home.run_in("project", &connect).await;
            assert_eq!(code, Some(0), "{app}: {said}");
            let text = home.read(path);
            assert!(
                text.contains(&*home.path().join(USER_CONFIG).to_string_lossy()),
                "{app}: {text}"
            );
            if !windows && !path.contains("claude") {
                insta::assert_snapshot!(app, redacted(&text));
            }
            let (code, said) = home.run_in("project", &connect).await;
            assert_eq!(code, Some(0), "{app}: {said}");
            again.add(app, &said);
        }
        for (app, _) in FILES {
            let (code, said) = home.run_in("project", &arguments("disconnect", app, &[])).await;
            assert_eq!(code, Some(0), "{app}: {said}");
            undone.add(app, &without_differences(&said));
        }
        insta::assert_snapshot!("connected_again", again);
        insta::assert_snapshot!("disconnected", undone);
        let is_copy = |path: &std::path::Path| path.starts_with(home.path().join(".local"));
        let after: Vec<_> = home.files().into_iter().filter(|(path, _)| !is_copy(path)).collect();
        assert_eq!(after, before);
    }
}

/// Returns the servers that `import` finds in the files of apps, sorted by name.
async fn imported(home: &Home) -> Value {
    let config = home.path().join("again.json");
    let config = config.to_string_lossy();
    let import = ["import", "--all", "--json", "--config", &config];
    let (_, said) = home.run_in("project", &import).await;
    let start = said.find("{\n").unwrap_or_else(|| panic!("{said}"));
    let mut values = serde_json::Deserializer::from_str(&said[start..]).into_iter::<Value>();
    let report = values.next().unwrap().unwrap();
    let mut servers: Vec<Value> = report["servers"].as_array().unwrap().clone();
    // Restored servers of a list are at its end.
    servers.sort_by_key(|server| format!("{}{}", server["name"], server["from"]));
    servers.retain(|server| server["name"] != "dormouse");
    Value::Array(servers)
}

#[tokio::test]
async fn replaced_servers_are_put_back() {
    let home = Home::with_app_files();
    let import = ["import", "--all", "--project", "--yes", "--move-secrets"];
    let (code, said) = home.run_in("project", &import).await;
    assert_eq!(code, Some(0), "{said}");
    define_variables(&home);
    let before = imported(&home).await;
    let (mut connected, mut disconnected) = (Cases::default(), Cases::default());
    for (app, path) in FILES {
        let connect = arguments("connect", app, &["--replace"]);
        let (code, said) = home.run_in("project", &connect).await;
        assert_eq!(code, Some(0), "{app}: {said}");
        connected.add(app, &without_differences(&said));
        assert!(!has_secrets(&said), "{app}: {said}");
        if path.contains("zed") {
            insta::assert_snapshot!("zed_with_dormouse_alone", redacted(&home.read(path)));
        }
        // Changes that the app makes after connecting stay.
        let text = home.read(path);
        let is_json = path.ends_with("json") || path.ends_with("jsonc");
        let end = if is_json { "\n\n" } else { "# since\n" };
        home.write(path, format!("{text}{end}"));
        // A second connect does not lose the record of the servers that were taken out.
        let (code, said) =
            home.run_in("project", &arguments("connect", app, &["--profile", "p"])).await;
        assert_eq!(code, Some(0), "{app}: {said}");
        let (code, said) = home.run_in("project", &arguments("disconnect", app, &[])).await;
        assert_eq!(code, Some(0), "{app}: {said}");
        disconnected.add(app, &without_differences(&said));
        assert!(!has_secrets(&said), "{app}: {said}");
        assert!(is_json || home.read(path).contains("# since"));
    }
    insta::assert_snapshot!("servers_taken_out", connected);
    insta::assert_snapshot!("servers_put_back", disconnected);
    assert_eq!(imported(&home).await, before, "the same servers mean the same");
}

/// Defines every variable of the config, so that dormouse could start its servers, and a profile.
fn define_variables(home: &Home) {
    let config = home.read(USER_CONFIG);
    let mut variables = home.read(".config/dormouse/.env");
    for reference in config.split("${").skip(1) {
        let name = reference.split(['}', ':']).next().unwrap();
        if !variables.contains(&format!("{name}=")) {
            variables.push_str(&format!("{name}=x\n"));
        }
    }
    home.write(".config/dormouse/.env", variables);
    let with_profile =
        config.replacen("{\n", "{\n  \"profiles\": {\"p\": {\"servers\": {}}},\n", 1);
    home.write(USER_CONFIG, with_profile);
}

fn has_secrets(said: &str) -> bool {
    ["ghp_0123", "ntn_abc", "hunter2"].iter().any(|secret| said.contains(secret))
}

#[tokio::test]
async fn servers_are_put_back_after_dormouse_was_removed_by_hand() {
    let config = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    let home = Home::new().with(USER_CONFIG, config).with(".cursor/mcp.json", config);
    let connect = ["connect", "cursor", "--replace", "--yes"];
    assert_eq!(home.run(&connect).await.0, Some(0));
    home.write(".cursor/mcp.json", r#"{"mcpServers": {}}"#);
    assert_eq!(home.run(&["disconnect", "cursor", "--yes"]).await.0, Some(0));
    home.assert_file(".cursor/mcp.json", r#"{"mcpServers": {"a": { "command": "a" }}}"#);

    // Both servers are put back into an empty file.
    let two = r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}"#;
    home.write(".cursor/mcp.json", two);
    home.write(USER_CONFIG, two);
    assert_eq!(home.run(&connect).await.0, Some(0));
    home.write(".cursor/mcp.json", "{}");
    assert_eq!(home.run(&["disconnect", "cursor", "--yes"]).await.0, Some(0));
    let now: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    assert_eq!(now, serde_json::from_str::<Value>(two).unwrap());

    // Servers are put back from the record even if the copy of the file is gone.
    home.write(".cursor/mcp.json", config);
    assert_eq!(home.run(&connect).await.0, Some(0));
    let copies = home.path().join(".local/share/dormouse/backups");
    for entry in std::fs::read_dir(copies).unwrap() {
        let path = entry.unwrap().path();
        let is_copy = path.file_name().unwrap().to_string_lossy().ends_with("-mcp.json");
        if is_copy {
            std::fs::remove_file(path).unwrap();
        }
    }
    let (code, said) = home.run(&["disconnect", "cursor", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    insta::assert_snapshot!(redacted(&said));
    assert!(home.read(".cursor/mcp.json").contains("\"a\""));
}

#[tokio::test]
async fn replace_keeps_servers_that_dormouse_cannot_serve() {
    let ours = r#"{"mcpServers": {
        "off": {"command": "off", "enabled": false}, "undefined": {"command": "${NOWHERE_DEFINED}"},
        "here": {"command": "npm", "args": ["start"], "cwd": "/src/a"}
    }}"#;
    let theirs = r#"{"mcpServers": {
        "off": {"command": "off"}, "undefined": {"command": "${env:NOWHERE_DEFINED}"},
        "here": {"command": "npm", "args": ["start"], "cwd": "/src/a"},
        "there": {"command": "npm", "args": ["start"], "cwd": "/src/b"}
    }}"#;
    let home = Home::new().with(USER_CONFIG, ours).with(".cursor/mcp.json", theirs);
    let (code, said) = home.run(&["connect", "cursor", "--replace", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    insta::assert_snapshot!(redacted(&said));
}

#[tokio::test]
async fn servers_of_one_name_stay_in_a_list() {
    let ours = r#"{"mcpServers": {"a": {"command": "a"}, "c": {"command": "c"}}}"#;
    let theirs = "mcpServers:\n  - name: twice\n    command: a\n  - name: once\n    command: c\n  \
                  - name: twice\n    command: b\n";
    let home = Home::new().with(USER_CONFIG, ours).with(".continue/config.yaml", theirs);
    let (code, said) = home.run(&["connect", "continue", "--replace", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    let connected = home.read(".continue/config.yaml");
    let is_left = |command: &str| connected.contains(&format!("command: {command}\n"));
    assert!(is_left("a") && is_left("b") && !is_left("c"), "{connected}");
    // The user copies the entry of dormouse by hand: which of the two to remove is unclear.
    home.write(".continue/config.yaml", connected.replace("name: twice", "name: dormouse"));
    let (code, said) = home.run(&["disconnect", "continue", "--yes"]).await;
    assert_eq!(code, Some(1), "{said}");
    insta::assert_snapshot!(redacted(&said));
}

#[tokio::test]
async fn replace_includes_servers_of_the_project() {
    let home = Home::new().with(USER_CONFIG, r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    let here = home.path().join("project").to_string_lossy().into_owned();
    let theirs = serde_json::json!({"projects": {
        here.clone(): {"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}},
        "/elsewhere": {"mcpServers": {"c": {"command": "c"}}}
    }});
    home.write(".claude.json", theirs.to_string());
    home.write("project/x", "");
    let (code, said) =
        home.run_in("project", &["connect", "claude-code", "--replace", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    insta::assert_snapshot!(redacted(&said));
    let mut now: Value = serde_json::from_str(&home.read(".claude.json")).unwrap();
    assert_eq!(now["projects"][&here]["mcpServers"], serde_json::json!({"b": {"command": "b"}}));
    // Claude Code writes its file at each start.
    now["numStartups"] = 1.into();
    home.write(".claude.json", now.to_string());
    let (code, said) = home.run(&["disconnect", "claude-code", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    let after: Value = serde_json::from_str(&home.read(".claude.json")).unwrap();
    assert_eq!(after["projects"], theirs["projects"]);
    assert!(after["mcpServers"].get("dormouse").is_none(), "{after}");
}

#[tokio::test]
async fn server_that_mentions_dormouse_is_not_dormouse() {
    let theirs = r#"{"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "server-filesystem", "/home/u/dormouse"]},
        "wrapped": {"command": "dormouse", "args": ["--", "server"]}
    }}"#;
    let home = Home::new().with(USER_CONFIG, CONFIG).with(".cursor/mcp.json", theirs);
    let (code, said) = home.run(&["import", "cursor", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        home.read(USER_CONFIG).contains("server-filesystem")
            && home.read(USER_CONFIG).contains("\"--\"")
    );
    let (code, said) = home.run(&["disconnect", "cursor", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    home.assert_file(".cursor/mcp.json", theirs);
}

#[tokio::test]
async fn disconnect_removes_a_file_that_connect_created() {
    for (app, path) in FILES {
        let home = Home::new().with(USER_CONFIG, CONFIG).with("project/x", "");
        let (code, said) = home.run_in("project", &arguments("connect", app, &[])).await;
        assert_eq!(code, Some(0), "{app}: {said}");
        let text = home.read(path);
        if matches!(app, "claude-code" | "codex" | "goose" | "continue") {
            insta::assert_snapshot!(format!("new_{app}"), redacted(&text));
        }
        assert_eq!(home.run_in("project", &arguments("disconnect", app, &[])).await.0, Some(0));
        assert!(!home.path().join(path).exists(), "{app}");
    }
}

#[tokio::test]
async fn connect_by_url_hides_the_token() {
    let home = Home::with_app_files().with(USER_CONFIG, CONFIG);
    for (app, path) in FILES {
        let connect = arguments("connect", app, &["--http", ":8123"]);
        let (code, said) = home.run_in("project", &connect).await;
        if app == "claude-desktop" {
            assert_eq!(code, Some(1));
            insta::assert_snapshot!(redacted(&said));
            continue;
        }
        assert_eq!(code, Some(0), "{app}: {said}");
        assert!(!said.contains("token-of-dormouse"), "{said}");
        let text = home.read(path);
        assert!(text.contains("http://127.0.0.1:8123/mcp"), "{app}: {text}");
        assert!(text.contains("Bearer token-of-dormouse"), "{app}: {text}");
    }
}

#[tokio::test]
async fn failed_connect_changes_nothing() {
    let home = Home::with_app_files();
    let (code, said) = home.run(&["connect", "cursor", "--yes"]).await;
    assert_eq!(code, Some(1), "{said}");
    let mut cases = Cases::default();
    cases.add("without a config", &said);
    let home = home.with(USER_CONFIG, CONFIG).with(".cursor/mcp.json", "{\"mcpServers\": ");
    let before = home.files();
    for (arguments, code) in [
        (&["connect", "cursor", "--yes"][..], 1),
        (&["connect", "windsurf"], 1),
        (&["connect", "windsurf", "--dry-run"], 0),
        (&["connect", "librechat", "--yes"], 2),
        (&["connect", "unknown-app"], 2),
        (&["disconnect"], 2),
        (&["disconnect", "zed", "--yes"], 0),
        (&["disconnect", "cursor", "--yes"], 1),
    ] {
        let (exit, said) = home.run(arguments).await;
        assert_eq!(exit, Some(code), "{arguments:?}: {said}");
        cases.add(arguments.join(" "), &said);
        assert_eq!(home.files(), before, "{arguments:?}");
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn connect_all_connects_every_app() {
    let home = Home::with_app_files().with(USER_CONFIG, CONFIG);
    let (code, said) = home.run(&["connect", "--all", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("dormouse disconnect ").count(), FILES.len() - 1, "{said}");
    let (code, said) = home.run(&["disconnect", "--all", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    for file in app_files() {
        let expected = file.text(&home.path().join("project"));
        assert_eq!(home.read(&file.path), expected, "{}", file.path);
    }
}

#[tokio::test]
async fn connect_without_an_app_lists_connections() {
    let theirs = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    let home = Home::new().with(USER_CONFIG, CONFIG).with(".cursor/mcp.json", theirs);
    let home = home.with(".codeium/windsurf/mcp_config.json", theirs);
    let (code, said) = home.run(&["connect", "cursor", "--json"]).await;
    assert_eq!(code, Some(1), "{said}");
    insta::assert_snapshot!("json_without_yes", redacted(&said));
    let (code, said) = home.run(&["connect", "cursor", "--json", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    let done: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!((&done[0]["app"], &done[0]["outcome"]), (&"cursor".into(), &"connected".into()));
    let (code, said) = home.run(&["connect"]).await;
    assert_eq!(code, Some(0), "{said}");
    insta::assert_snapshot!("connections", redacted(&said));
    let (_, said) = home.run(&["connect", "--json"]).await;
    let states: Vec<Value> = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let cursor = states.iter().find(|state| state["app"] == "cursor").unwrap();
    assert_eq!((&cursor["state"], &cursor["servers"][0]), (&"connected".into(), &"a".into()));
}

#[tokio::test]
async fn entry_with_another_url_is_recognized() {
    let config = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    let home = Home::new().with(USER_CONFIG, config).with(".cursor/mcp.json", config);
    let url = "https://mcp.example.com/mcp";
    let connect = ["connect", "cursor", "--http", url, "--replace", "--yes"];
    assert_eq!(home.run(&connect).await.0, Some(0));
    let (code, said) = home.run(&["import", "cursor", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    insta::assert_snapshot!(redacted(&said));
    home.write(".cursor/mcp.json", home.read(".cursor/mcp.json") + "\n");
    assert_eq!(home.run(&["disconnect", "cursor", "--yes"]).await.0, Some(0));
    let text = home.read(".cursor/mcp.json");
    assert!(text.contains("\"a\"") && !text.contains(url), "{text}");
}

#[tokio::test]
async fn connect_refuses_unreachable_addresses() {
    let home = Home::new().with(USER_CONFIG, CONFIG);
    let mut refusals = Cases::default();
    for (address, url) in [
        ("8080", Some("http://127.0.0.1:8080/mcp")),
        ("0.0.0.0:1", Some("http://127.0.0.1:1/mcp")),
        ("10.0.0.0:8080", Some("http://10.0.0.0:8080/mcp")),
        ("[::]:80", Some("http://[::1]:80/mcp")),
        ("https://x/y", Some("https://x/y")),
        ("0.0.0.0", None),
        (":0", None),
        ("x y:1", None),
    ] {
        let (code, said) = home.run(&["connect", "cursor", "--http", address, "--dry-run"]).await;
        assert_eq!(code, Some(if url.is_some() { 0 } else { 2 }), "{address}: {said}");
        match url {
            Some(url) => assert!(said.contains(url), "{address}: {said}"),
            None => refusals.add(address, &said),
        }
    }
    insta::assert_snapshot!(refusals);
}

#[tokio::test]
async fn listening_config_is_connected_by_url() {
    let config = r#"{"listen": "127.0.0.1:8123", "mcpServers": {}}"#;
    let home = Home::new().with(USER_CONFIG, config);
    let (code, said) = home.run(&["connect", "cursor", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    let text = home.read(".cursor/mcp.json");
    assert!(text.contains("http://127.0.0.1:8123/mcp") && !text.contains("command"), "{text}");
}

#[tokio::test]
async fn connect_writes_no_unusable_url() {
    let mut cases = Cases::default();
    for config in [
        r#"{"listen": "0.0.0.0:8123", "mcpServers": {}}"#,
        r#"{"listen": ":8123", "mcpServers": {"a": {"command": "a", "authTokens": ["t"]}}}"#,
    ] {
        let home = Home::new().with(USER_CONFIG, config).with(".cursor/mcp.json", "{}");
        let (code, said) = home.run(&["connect", "cursor", "--yes"]).await;
        assert_eq!(code, Some(1), "{said}");
        cases.add(config, &said);
        home.assert_file(".cursor/mcp.json", "{}");
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn tokens_of_an_mcp_proxy_config_reach_the_entry() {
    let theirs = json!({
        "mcpProxy": {"addr": ":8123", "options": {"authTokens": ["their-token"]}},
        "mcpServers": {"a": {"command": "a"}},
    });
    let home = Home::new().with("theirs.json", theirs.to_string());
    let (code, said) = home.run(&["import", "theirs.json", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = home.run(&["connect", "cursor", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    let entry: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    let dormouse = &entry["mcpServers"]["dormouse"];
    assert_eq!(dormouse["url"], "http://127.0.0.1:8123/mcp");
    assert_eq!(dormouse["headers"]["Authorization"], "Bearer their-token");
}

#[tokio::test]
async fn options_of_connect_reach_the_entry() {
    let home = Home::new().with(USER_CONFIG, CONFIG);
    let connect = [
        "connect",
        "cursor",
        "--surface",
        "activate",
        "--hybrid",
        "--idle-timeout",
        "90s",
        "--yes",
    ];
    let (code, said) = home.run(&connect).await;
    assert_eq!(code, Some(0), "{said}");
    let entry: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    let args = entry["mcpServers"]["dormouse"]["args"].as_array().unwrap();
    let args: Vec<&str> = args.iter().skip(2).filter_map(Value::as_str).collect();
    assert_eq!(args, ["--surface", "activate", "--idle-timeout", "1m30s", "--hybrid"]);
    let (code, said) = home.run(&["connect", "cursor", "--http", ":1", "--hybrid", "--yes"]).await;
    assert_eq!(code, Some(2), "{said}");
    let connect = ["connect", "cursor", "--http", ":1", "--surface", "direct", "--dry-run"];
    let (_, said) = home.run(&connect).await;
    assert!(said.contains("http://127.0.0.1:1/mcp?surface=direct"), "{said}");
    let config = r#"{"profiles": {"my work": {}}, "mcpServers": {"a": {"command": "a"}}}"#;
    let home = Home::new().with(USER_CONFIG, config);
    let connect = ["connect", "cursor", "--http", ":1", "--profile", "my work", "--dry-run"];
    let (_, said) = home.run(&connect).await;
    assert!(said.contains("http://127.0.0.1:1/mcp?profile=my+work"), "{said}");
}

#[tokio::test]
async fn project_file_contains_no_user_path() {
    let home = Home::new().with(USER_CONFIG, CONFIG).with("project/x", "");
    let (code, said) =
        home.run_in("project", &["connect", "claude-code", "--project", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    let text = home.read("project/.mcp.json");
    assert!(text.contains(r#""command": "dormouse""#), "{text}");
    assert!(!text.contains(&*home.path().to_string_lossy()), "{text}");
    let (code, said) =
        home.run_in("project", &["disconnect", "claude-code", "--project", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test]
async fn disconnect_names_servers_it_cannot_put_back() {
    let config = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    let mut cases = Cases::default();
    for keeps_copies in [true, false] {
        let home = Home::new().with(USER_CONFIG, config).with(".cursor/mcp.json", config);
        assert_eq!(home.run(&["connect", "cursor", "--replace", "--yes"]).await.0, Some(0));
        assert!(!home.read(".cursor/mcp.json").contains("\"a\""));
        let kept = home.path().join(".local/share/dormouse/backups");
        for entry in std::fs::read_dir(kept).unwrap() {
            let path = entry.unwrap().path();
            let is_copy = path.to_string_lossy().contains("-mcp.json");
            if !(keeps_copies && is_copy) {
                std::fs::remove_file(path).unwrap();
            }
        }
        let (code, said) = home.run(&["disconnect", "cursor", "--yes"]).await;
        assert_eq!(code, Some(1), "{said}");
        cases.add(if keeps_copies { "without its record" } else { "without any copy" }, &said);
        assert!(!home.read(".cursor/mcp.json").contains("dormouse"));
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn disconnect_without_a_record_uses_the_copy() {
    let config = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    let others = |with_a: bool| {
        let a = if with_a { r#""a": {"command": "a"}, "# } else { "" };
        format!(r#"{{"mcpServers": {{{a}"other": {{"command": "o"}}}}}}"#)
    };
    let mut cases = Cases::default();
    for (with_a, expected) in [(true, 1), (false, 0)] {
        let home = Home::new().with(USER_CONFIG, config).with(".cursor/mcp.json", others(with_a));
        home.run(&["connect", "cursor", "--replace", "--yes"]).await;
        let kept = home.path().join(".local/share/dormouse/backups");
        for entry in std::fs::read_dir(kept).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_string_lossy().contains("-mcp.json") {
                std::fs::remove_file(path).unwrap();
            }
        }
        let (code, said) = home.run(&["disconnect", "cursor", "--yes"]).await;
        assert_eq!(code, Some(expected), "{said}");
        cases.add(if with_a { "with a" } else { "without a" }, &said);
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn damaged_copy_is_not_restored() {
    let config = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    let theirs = r#"{"mcpServers": {"a": {"command": "a"}, "other": {"command": "o"}}}"#;
    let entries: Value = serde_json::from_str(theirs).unwrap();
    for damage in ["", r#"{"mcpServers": {"a":"#, "garbage"] {
        let home = Home::new().with(USER_CONFIG, config).with(".cursor/mcp.json", theirs);
        home.run(&["connect", "cursor", "--replace", "--yes"]).await;
        std::fs::write(stored(&home, |name| name.ends_with("-mcp.json")), damage).unwrap();
        let (code, said) = home.run(&["disconnect", "cursor", "--yes"]).await;
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("the copy of the original cannot be read"), "{said}");
        let now: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
        assert_eq!(now, entries, "from the record");
    }
}

#[tokio::test]
async fn unreadable_record_is_reported_and_not_waited_for() {
    let config = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    let home = Home::new().with(USER_CONFIG, config).with(".cursor/mcp.json", "{}");
    home.run(&["connect", "cursor", "--yes"]).await;
    let record = stored(&home, |name| !name.ends_with("-mcp.json"));
    std::fs::remove_file(&record).unwrap();
    nix::unistd::mkfifo(&record, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (code, said) = home.run(&["disconnect", "cursor", "--yes"]).await;
    assert_eq!(code, Some(1), "{said}");
    insta::assert_snapshot!(redacted(&said));
    assert!(!home.read(".cursor/mcp.json").contains("dormouse"));
}

/// Returns the only file of connect in the home whose name is wanted.
fn stored(home: &Home, is_wanted: impl Fn(&str) -> bool) -> std::path::PathBuf {
    let kept = home.path().join(".local/share/dormouse/backups");
    let mut files = std::fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| is_wanted(&path.file_name().unwrap().to_string_lossy()));
    file.expect("connect has written it")
}
