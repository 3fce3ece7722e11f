//! Secrets stay in their places: each place for a secret holds a canary, and no other place may
//! contain one.

use std::{path::Path, process::Stdio};

use axum::{
    http::{StatusCode, header},
    response::IntoResponse,
};
use serde_json::json;

use crate::support::{
    Authority, Proxy, SECRET, Server, User, descendants, fixture, remote::Remote, text_of, visit,
};

/// The start of every secret, including those of `Authority`.
const CANARY: &str = "canary-";

fn fixture_entry(directory: &Path, name: &str) -> serde_json::Value {
    let script = json!({"log": directory.join(format!("{name}.log"))});
    json!({"command": fixture(), "args": [script.to_string()], "description": "d"})
}

/// Secrets in the environment of dormouse.
const SECRETS: [(&str, &str); 2] =
    [("CLIENT_SECRET", SECRET), ("SECRET_OF_ONE", "canary-environment")];

#[tokio::test]
async fn canary_is_found_only_where_it_belongs() {
    let authority = Authority::start().await;
    authority.set_token_member("expires_in", 1);
    // The server answers with the headers and the query of the request.
    let echo = Remote::start(|asked| async move {
        let shown = format!("{:?} {}", asked.headers, asked.query);
        Some((StatusCode::FORBIDDEN, [(header::CONTENT_TYPE, "text/plain")], shown).into_response())
    })
    .await;
    let user = user_with_secrets(&authority, &echo);

    let mut said = log_in(&user).await;
    said.extend(use_everything(&user, &authority).await);
    for command in ["status --json", "list --json", "test", "check", "logout g"] {
        let words: Vec<&str> =
            ["--log-level", "trace"].into_iter().chain(command.split(' ')).collect();
        let mut command = user.command(&words);
        let output = command.envs(SECRETS).stdin(Stdio::null()).output().await.unwrap();
        said.push(String::from_utf8([output.stdout, output.stderr].concat()).unwrap());
    }
    for text in &said {
        assert!(!text.contains(CANARY), "{text}");
    }
    for path in files(user.home.path()) {
        let is_for_secrets = path.ends_with("dormouse.json")
            || path.starts_with(user.home.path().join("data/dormouse/logins"));
        let content = std::fs::read(&path).unwrap_or_default();
        let has_secret = String::from_utf8_lossy(&content).contains(CANARY);
        assert!(is_for_secrets || !has_secret, "{}", path.display());
    }
}

fn user_with_secrets(authority: &Authority, echo: &Remote) -> User {
    let user = User::with_server(&json!({}));
    let mut with_secret = fixture_entry(user.home.path(), "with");
    with_secret["env"] = json!({"TOKEN": "${SECRET_OF_ONE}"});
    let config = json!({"mcpServers": {
        "g": {
            "url": format!("{}?key=canary-query", authority.url()), "description": "d",
            "headers": {"X-Key": "canary-header"},
            "oauth": {"clientId": "mine", "clientSecret": "${CLIENT_SECRET}"},
        },
        "echo": {
            "url": format!("{}?key=canary-query", echo.url), "description": "d",
            "headers": {"Authorization": "Bearer canary-bearer", "X-Key": "canary-header"},
        },
        "gone": {"url": "http://user:canary-password@127.0.0.1:1/?key=canary-query", "description": "d"},
        "with": with_secret,
        "without": fixture_entry(user.home.path(), "without"),
    }});
    std::fs::write(user.home.path().join("dormouse.json"), config.to_string()).unwrap();
    user
}

/// Logs in at the lowest log level, and returns all output.
async fn log_in(user: &User) -> Vec<String> {
    use tokio::io::AsyncBufReadExt as _;

    let mut command = user.command(&["--log-level", "trace", "login", "g", "--no-browser"]);
    command.envs(SECRETS).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = tokio::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.starts_with("  http") {
            said.push(visit(line.trim()).await);
        }
        said.push(line);
    }
    let ended = child.wait_with_output().await.unwrap();
    assert!(ended.status.success(), "{said:?}");
    said.push(String::from_utf8(ended.stdout).unwrap());
    said
}

/// Makes calls that succeed and calls that fail, and returns all output.
async fn use_everything(user: &User, authority: &Authority) -> Vec<String> {
    let proxy = user.proxy().log_everything();
    let proxy =
        SECRETS.into_iter().fold(proxy, |proxy, (name, value)| proxy.environment(name, value));
    let mut host = proxy.serve().await;
    // The loop ends after a renewal.
    while authority.token_requests().len() < 3 {
        assert_eq!(text_of(&host.use_tool("g/t", json!({})).await), "ordinary");
    }
    let mut said = Vec::new();
    for server in ["echo", "gone", "with", "without"] {
        said.push(host.load(server).await.to_string());
    }
    assert!(said[0].contains("x-key"), "it does answer so: {}", said[0]);
    authority.require_scope("more");
    said.push(host.use_tool("g/t", json!({})).await.to_string());
    // From now on the authorization server refuses, and repeats the request in its answer.
    authority.echo_token_requests();
    // A new token is renewed only after it has expired.
    while !said.last().unwrap().contains("grant_type=refresh_token") {
        said.push(host.use_tool("g/t", json!({})).await.to_string());
    }
    let environ = |log: &str| {
        let is_it = |id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/cmdline"))
                .is_ok_and(|line| line.contains(log))
        };
        let process = descendants(host.serving_id()).into_iter().find(is_it).expect("it runs");
        std::fs::read_to_string(format!("/proc/{process}/environ")).unwrap()
    };
    assert!(environ("/with.log").contains("canary-environment"));
    said.push(environ("/without.log"));
    said.extend(host.log());
    host.end().await;
    said
}

fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_core_is_dumped() {
    let server = fixture();
    let dormouse = [env!("CARGO_BIN_EXE_dormouse"), "--", server.to_str().unwrap(), "{}"];
    // On a system that dumps no cores at all this test proves nothing.
    let others = is_dumped(&[server.to_str().unwrap(), "{}"]).await;
    assert!(!is_dumped(&dormouse).await, "others are dumped: {others}");
}

/// Returns whether a server that is aborted after its first answer dumps a core.
#[cfg(target_os = "linux")]
async fn is_dumped(command: &[&str]) -> bool {
    use std::os::unix::process::ExitStatusExt as _;

    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

    let directory = tempfile::tempdir().unwrap();
    let mut child = tokio::process::Command::new("sh")
        .args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh"])
        .args(command)
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    let answer = tokio::io::BufReader::new(child.stdout.take().unwrap()).lines().next_line().await;
    assert!(answer.unwrap().is_some());
    let id = nix::unistd::Pid::from_raw(child.id().unwrap().try_into().unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGABRT).unwrap();
    child.wait().await.unwrap().core_dumped()
}

#[tokio::test]
async fn repeated_secrets_reach_neither_log_nor_model() {
    let script = r#"echo "my key is $KEY" >&2; echo "stdout $KEY"; echo "args $1 $2" >&2; exit 3"#;
    let server = Server::lazy("a")
        .set("command", "sh")
        .set("args", json!(["-c", script, "--token", "canary-argument"]))
        .set("env", json!({"KEY": "canary-environment"}));
    let mut host = Proxy::with([server]).log_everything().serve().await;
    let result = host.load("a").await.to_string();
    assert!(result.contains("my key is •••"), "{result}");
    assert!(!result.contains(CANARY), "{result}");
    host.logged("my key is •••").await;
    for line in host.log() {
        assert!(!line.contains(CANARY), "{line}");
    }
}

#[tokio::test]
async fn server_cannot_forge_log_lines() {
    let script = "printf 'first\\033[31m\\r\\n' >&2; exit 3";
    let server = Server::lazy("a").set("command", "sh").set("args", json!(["-c", script]));
    let refusing = Server::lazy("b").script("refuse_with", "no\n2026-01-01 ERROR forged\u{1b}[2J");
    let mut host = Proxy::with([server, refusing]).serve().await;
    host.load("a").await;
    host.load("b").await;
    host.logged("forged").await;
    for line in host.log() {
        assert!(!line.contains('\u{1b}') && !line.starts_with("2026-01-01"), "{line:?}");
    }
}

#[tokio::test]
async fn json_log_has_no_invisible_characters() {
    let refusing = Server::lazy("b").script("refuse_with", "no \u{9b}31m \u{202e} forged");
    let proxy = Proxy::with([refusing]).argument("--log-format").argument("json");
    let mut host = proxy.serve().await;
    host.load("b").await;
    host.logged("forged").await;
    for line in host.log() {
        assert!(!line.contains(['\u{9b}', '\u{202e}']), "{line:?}");
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok(), "{line:?}");
    }
}
