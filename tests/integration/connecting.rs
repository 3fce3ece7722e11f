//! `connect` and `disconnect`, on files as AI tools write them.

use crate::support::{Home, OWN, host_files};

/// The file of each host that dormouse is put into.
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

/// What connects this host.
fn arguments<'a>(command: &'a str, host: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let project: &[&str] = if host == "librechat" { &["--project"] } else { &[] };
    [&[command, host, "--yes"], project, more].concat()
}

#[tokio::test]
async fn what_connect_writes_is_undone_byte_for_byte() {
    for windows in [false, true] {
        let home = Home::with_hosts().with(OWN, CONFIG);
        for (_, path) in FILES {
            if windows {
                let text = home.read(path).replace("\r\n", "\n").replace('\n', "\r\n");
                home.write(path, format!("\u{feff}{}", text.trim_start_matches('\u{feff}')));
            }
        }
        let before = home.files();
        for (host, path) in FILES {
            let connect = arguments("connect", host, &["--replace"]);
            let (code, said) = home.run_in("project", &connect).await;
            assert_eq!(code, Some(0), "{host}: {said}");
            let text = home.read(path);
            assert!(text.contains(&*home.path().join(OWN).to_string_lossy()), "{host}: {text}");
            if !windows && !path.contains("claude") {
                insta::assert_snapshot!(host, without_places(&home, &text));
            }
            let (code, said) = home.run_in("project", &connect).await;
            assert_eq!(code, Some(0), "{host}: {said}");
            assert!(said.contains("already"), "{host}: {said}");
        }
        for (host, _) in FILES {
            let (code, said) = home.run_in("project", &arguments("disconnect", host, &[])).await;
            assert_eq!(code, Some(0), "{host}: {said}");
            assert!(said.contains("is as it was before"), "{host}: {said}");
        }
        let is_copy = |path: &std::path::Path| path.starts_with(home.path().join(".local"));
        let after: Vec<_> = home.files().into_iter().filter(|(path, _)| !is_copy(path)).collect();
        assert_eq!(after, before);
    }
}

fn without_places(home: &Home, text: &str) -> String {
    let program = crate::support::dormouse().as_std().get_program().to_string_lossy().into_owned();
    text.replace(&*home.path().to_string_lossy(), "<home>").replace(&program, "<dormouse>")
}

#[tokio::test]
async fn what_dormouse_carries_is_taken_out_and_put_back() {
    let home = Home::with_hosts();
    let (code, said) =
        home.run_in("project", &["import", "--all", "--yes", "--move-secrets"]).await;
    assert_eq!(code, Some(0), "{said}");
    let before = home.files();
    for (host, path) in FILES {
        let (code, said) =
            home.run_in("project", &arguments("connect", host, &["--replace"])).await;
        assert_eq!(code, Some(0), "{host}: {said}");
        assert!(said.contains("taken out, as dormouse has them"), "{host}: {said}");
        assert!(!said.contains("still there beside it"), "{host}: {said}");
        assert!(!["ghp_", "ntn_", "hunter2"].iter().any(|secret| said.contains(secret)), "{said}");
        if path.contains("zed") {
            insta::assert_snapshot!(
                "zed_with_dormouse_alone",
                without_places(&home, &home.read(path))
            );
        }
        // Whatever the host has written since then stays.
        let text = home.read(path);
        let is_json = path.ends_with("json") || path.ends_with("jsonc");
        home.write(path, if is_json { format!("{text}\n\n") } else { format!("{text}# since\n") });
        let (code, said) = home.run_in("project", &arguments("disconnect", host, &[])).await;
        assert_eq!(code, Some(0), "{host}: {said}");
        assert!(said.contains("has dormouse no more; what was changed since stays"), "{said}");
    }
    // The same servers mean the same as before.
    let (_, listed) = home.run_in("project", &["import", "--all", "--json"]).await;
    assert!(!listed.contains("\"outcome\": \"added\""), "{listed}");
    for (path, text) in before {
        let now = std::fs::read(&path).unwrap();
        let comments = |text: &[u8]| String::from_utf8_lossy(text).matches("//").count();
        assert!(comments(&now) >= comments(&text), "{} has lost a comment", path.display());
    }
}

#[tokio::test]
async fn a_file_that_was_not_there_goes_again() {
    for (host, path) in FILES {
        let home = Home::new().with(OWN, CONFIG).with("project/x", "");
        let (code, said) = home.run_in("project", &arguments("connect", host, &[])).await;
        assert_eq!(code, Some(0), "{host}: {said}");
        let text = home.read(path);
        if matches!(host, "claude-code" | "codex" | "goose" | "continue") {
            insta::assert_snapshot!(format!("new_{host}"), without_places(&home, &text));
        }
        assert_eq!(home.run_in("project", &arguments("disconnect", host, &[])).await.0, Some(0));
        assert!(!home.path().join(path).exists(), "{host}");
    }
}

#[tokio::test]
async fn hosts_reach_it_by_a_url_with_a_token_that_is_not_shown() {
    let home = Home::with_hosts().with(OWN, CONFIG);
    for (host, path) in FILES {
        let connect = arguments("connect", host, &["--http", ":8123"]);
        let (code, said) = home.run_in("project", &connect).await;
        if host == "claude-desktop" {
            assert_eq!(code, Some(1));
            assert!(said.contains("cannot reach a server by a URL"), "{said}");
            continue;
        }
        assert_eq!(code, Some(0), "{host}: {said}");
        assert!(!said.contains("token-of-dormouse"), "{said}");
        let text = home.read(path);
        assert!(text.contains("http://127.0.0.1:8123/mcp"), "{host}: {text}");
        assert!(text.contains("Bearer token-of-dormouse"), "{host}: {text}");
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_said_and_changes_nothing() {
    let home = Home::with_hosts();
    let (code, said) = home.run(&["connect", "cursor", "--yes"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("there is no config yet"), "{said}");
    let home = home.with(OWN, CONFIG).with(".cursor/mcp.json", "{\"mcpServers\": ");
    let before = home.files();
    for (arguments, code, message) in [
        (&["connect", "cursor", "--yes"][..], 1, "the file cannot be read: 1:"),
        (&["connect", "windsurf"], 1, "there is nobody to ask"),
        (&["connect", "windsurf", "--dry-run"], 0, "+++"),
        (&["connect", "librechat", "--yes"], 2, "--project"),
        (&["connect", "nobody"], 2, "is none of the hosts"),
        (&["connect"], 2, "required"),
        (&["disconnect", "zed", "--yes"], 0, "dormouse is not in"),
        (&["disconnect", "cursor", "--yes"], 1, "the file cannot be read"),
    ] {
        let (exit, said) = home.run(arguments).await;
        assert_eq!(exit, Some(code), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: {said}");
        assert_eq!(home.files(), before, "{arguments:?}");
    }
}

#[tokio::test]
async fn all_that_is_there_is_connected_at_once() {
    let home = Home::with_hosts().with(OWN, CONFIG);
    let (code, said) = home.run(&["connect", "--all", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("undo: dormouse disconnect").count(), FILES.len() - 1, "{said}");
    let (code, said) = home.run(&["disconnect", "--all", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    for file in host_files() {
        let expected = file.text(&home.path().join("project"));
        assert_eq!(home.read(&file.path), expected, "{}", file.path);
    }
}
