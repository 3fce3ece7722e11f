//! Commands that connect to servers or ask a running dormouse: `refresh`, `test`, `call`, `list`,
//! `status`.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::support::{
    Cases, at_terminal, by_daemon, descendants, dormouse, eventually, line_of, redacted,
};

const SERVERS: &str = r#"{"mcpServers": {
    "notes": {"command": "DORMOUSE", "args": ["__demo-server", "notes"]},
    "weather": {"command": "DORMOUSE", "args": ["__demo-server", "weather"]}
}}"#;

/// A home with a config in it.
struct ConfigHome {
    directory: tempfile::TempDir,
    config: PathBuf,
}

impl ConfigHome {
    fn with(name: &str, config: &str) -> Self {
        let directory = tempfile::tempdir().expect("the temporary directory is writable");
        let path = directory.path().join(name);
        let config = config.replace("DORMOUSE", env!("CARGO_BIN_EXE_dormouse"));
        std::fs::write(&path, config).unwrap();
        Self { directory, config: path }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.config).unwrap()
    }

    fn edit(&self, from: &str, to: &str) {
        let text = self.text();
        assert!(text.contains(from), "{from} is not in\n{text}");
        std::fs::write(&self.config, text.replace(from, to)).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> tokio::process::Command {
        let place = self.directory.path();
        let mut command = dormouse();
        command.args(arguments).current_dir(place).env("HOME", place.join("home"));
        for variable in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(variable);
        }
        command.env("XDG_RUNTIME_DIR", place.join("run"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    async fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let config = self.config.to_str().unwrap();
        let arguments = [arguments, &["--config", config]].concat();
        let Output { status, stdout, stderr } =
            self.command(&arguments).output().await.expect("dormouse runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (status.code(), text(stdout), text(stderr))
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        let (code, stdout, stderr) = self.run(arguments).await;
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
        serde_json::from_str(&stdout).unwrap()
    }
}

/// Sorts the lines of a report, because servers end in any order, and removes their numbers.
fn by_server(said: &str) -> String {
    let text = redacted(said);
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        match (line.split_once('['), line.split_once("] "), lines.last_mut()) {
            // A hint belongs to the line before it.
            (.., Some(last)) if line.starts_with(' ') => last.push_str(&format!("\n{line}")),
            (Some((mark, _)), Some((_, rest)), _) => lines.push(format!("{mark}[n/n] {rest}")),
            _ => lines.push(line.to_owned()),
        }
    }
    lines.sort();
    lines.join("\n")
}

const YAML: &str = "# mine\nmcpServers:\n    notes:   # the notes\n        description: Notes\n        command: DORMOUSE\n        args: [__demo-server, notes]\n        tools:\n            add_note: false   # never\n            \"*_notes\": true\n            burn_note: true\n    weather: {command: DORMOUSE, args: [__demo-server, weather]}\n";

#[tokio::test]
async fn refresh_writes_only_new_and_removed_tools() {
    let home = ConfigHome::with("dormouse.yaml", YAML);
    let before = home.text();
    let (code, difference, _) = home.run(&["refresh", "--dry-run", "notes"]).await;
    assert_eq!((code, home.text()), (Some(0), before.clone()));
    insta::assert_snapshot!("difference", redacted(&difference));

    let (code, said, errors) = home.run(&["refresh", "notes"]).await;
    assert_eq!(code, Some(0), "{errors}");
    insta::assert_snapshot!("refreshed_tools", said);
    let expected = before.replace(
        "burn_note: true\n",
        "burn_note: {enabled: true, stale: true}\n            delete_note: true\n",
    );
    assert_eq!(home.text(), expected);

    home.edit("burn_note", "list_notes");
    let (_, said, _) = home.run(&["refresh", "notes"]).await;
    insta::assert_snapshot!("returned_tool", said);
    assert!(home.text().contains("list_notes: {enabled: true}\n"), "{}", home.text());
}

#[tokio::test]
async fn refresh_continues_past_failed_servers() {
    let config = r#"{
  // two of them
  "mcpServers": {
    "bad": {"command": "no-such-program"},
    "notes": {"command": "DORMOUSE", "args": ["__demo-server", "notes"]}, // last
  },
}
"#;
    let home = ConfigHome::with("dormouse.json", config);
    let (code, said, errors) = home.run(&["refresh", "--write"]).await;
    assert_eq!(code, Some(1));
    insta::assert_snapshot!("refreshed_server", said);
    insta::assert_snapshot!("failed_server", line_of(&errors, "no-such-program"));
    assert!(home.text().contains("\"delete_note\": true"), "{}", home.text());
    assert!(home.text().contains("}, // last\n"), "{}", home.text());
}

#[tokio::test]
async fn refresh_does_not_edit_aliased_entries() {
    let config = "mcpServers:\n  a: &a\n    command: DORMOUSE\n    args: [__demo-server, notes]\n    tools: {add_note: true}\n  b: *a\n";
    let home = ConfigHome::with("dormouse.yaml", config);
    let before = home.text();
    let (code, _, errors) = home.run(&["refresh"]).await;
    assert_eq!((code, home.text()), (Some(1), before));
    insta::assert_snapshot!(line_of(&errors, "\"a\""));
}

#[tokio::test]
async fn refresh_keeps_a_config_trusted() {
    let home = ConfigHome::with("dormouse.yaml", YAML);
    let plain = async |arguments: &[&str]| {
        let output = home.command(arguments).output().await.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, errors) = plain(&["refresh"]).await;
    assert_eq!(code, Some(2), "{errors}");
    insta::assert_snapshot!(redacted(&errors));
    assert_eq!(plain(&["trust"]).await.0, Some(0));
    assert_eq!(plain(&["refresh"]).await.0, Some(0));
    assert_ne!(home.text(), YAML);
    assert_eq!(plain(&["test", "notes"]).await.0, Some(0));
}

#[tokio::test]
async fn first_run_writes_tools_into_a_yaml_config() {
    let config = "mcpServers:\n  notes:\n    command: DORMOUSE   # eager\n    args: [__demo-server, notes]\n";
    let home = ConfigHome::with("dormouse.yaml", config);
    let before = home.text();
    let config = home.config.to_str().unwrap();
    let mut serving = home.command(&["--config", config]).stdin(Stdio::piped()).spawn().unwrap();
    eventually("the tools are written", || home.text() != before).await;
    drop(serving.stdin.take());
    serving.wait().await.unwrap();
    let tools = "    tools:\n      add_note: true\n      list_notes: true\n      search_notes: true\n      delete_note: true\n";
    assert_eq!(home.text(), format!("{before}{tools}"));
}

#[tokio::test]
async fn refreshed_server_is_served_without_a_connection() {
    let config = r#"{"mcpServers": {"notes": {"command": "DORMOUSE", "args": ["__demo-server", "notes"], "startup": "hybrid"}}}"#;
    let home = ConfigHome::with("dormouse.json", config);
    home.run(&["refresh"]).await;
    let path = home.config.to_str().unwrap();
    let mut serving = home.command(&["--config", path]).stdin(Stdio::piped()).spawn().unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"1"}}}"#;
    let input = serving.stdin.as_mut().unwrap();
    input.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    // Outdated catalogs are refreshed two seconds after the start.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let status = home.json(&["status", "--json"]).await;
    let server = &status[0]["servers"][0];
    assert_eq!((&server["state"], &server["lastWake"]), (&json!("asleep"), &Value::Null));
    assert_eq!(descendants(serving.id().unwrap()), [0_u32; 0]);
}

#[tokio::test]
async fn test_reports_times_and_problems() {
    let config = r#"{"mcpServers": {
        "good": {"command": "DORMOUSE", "args": ["__demo-server", "notes"]},
        "typo": {"command": "nodee"},
        "talks": {"command": "sh", "args": ["-c", "echo Welcome; echo no key >&2; exit 3"]},
        "hangs": {"command": "sleep", "args": ["60"], "timeouts": {"load": 1}},
        "off": {"command": "x", "enabled": false}
    }}"#;
    let home = ConfigHome::with("dormouse.json", config);
    let (code, said, _) = home.run(&["test"]).await;
    assert_eq!(code, Some(1));
    // Servers end in any order. Some systems have a second name for the program.
    insta::assert_snapshot!("tested_servers", by_server(&said.replace(": node, nodejs", ": node")));
    assert!(home.json(&["list", "--json"]).await[0]["tools"].is_array(), "what was seen is kept");
    let (code, _, errors) = home.run(&["test", "goood"]).await;
    assert_eq!(code, Some(2));
    insta::assert_snapshot!("unknown_server", redacted(&errors));
}

#[tokio::test]
async fn call_obeys_the_config() {
    let home = ConfigHome::with("dormouse.yaml", YAML);
    let input = r#"{"city": "Oslo"}"#;
    let (code, said, errors) = home.run(&["call", "weather", "current_weather", input]).await;
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(redacted(&errors));
    assert!(said.contains("Oslo"), "{said}");
    let (code, _, errors) = home.run(&["call", "notes", "add_note", "{}"]).await;
    assert_eq!(code, Some(1));
    let mut cases = Cases::default();
    cases.add("a hidden tool", &errors);
    let (code, _, errors) = home.run(&["call", "notes", "delete_note", "[1]"]).await;
    assert_eq!(code, Some(2));
    cases.add("input that is no object", &errors);
    insta::assert_snapshot!("call_refusals", cases);

    let config = home.config.to_str().unwrap();
    let mut command =
        home.command(&["call", "weather", "current_weather", "-", "--json", "--config", config]);
    let mut calling = command.stdin(Stdio::piped()).spawn().unwrap();
    calling.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = calling.wait_with_output().await.unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["content"][0]["type"], "text");
}

#[tokio::test]
async fn call_mentions_no_attempts() {
    let home =
        ConfigHome::with("x.json", r#"{"mcpServers": {"gone": {"command": "no-such-program"}}}"#);
    let (code, _, errors) = home.run(&["call", "gone", "tool", "{}"]).await;
    assert_eq!(code, Some(1), "{errors}");
    insta::assert_snapshot!(redacted(&errors));
}

#[tokio::test]
async fn tables_fit_the_terminal() {
    let home = ConfigHome::with("x.json", SERVERS);
    home.run(&["refresh"]).await;
    let config = home.config.to_str().unwrap().to_owned();
    for arguments in [["list", "--config", &config], ["status", "--config", &config]] {
        let shown = at_terminal(home.command(&arguments), &[]).await;
        let rows: Vec<&str> = shown.lines().filter(|line| line.starts_with(' ')).collect();
        assert!(rows.len() > 2, "{shown}");
        for row in rows {
            assert!(row.trim_end().chars().count() <= 80, "{shown}");
        }
    }
    let (_, said, _) = home.run(&["status"]).await;
    let end = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
    let heading = said.lines().find(|line| line.contains("bytes")).unwrap();
    let row = said.lines().find(|line| line.starts_with(" notes")).unwrap();
    let bytes = row.split_whitespace().find(|word| word.len() > 2 && word.parse::<u32>().is_ok());
    assert_eq!(end(heading, "bytes"), end(row, bytes.unwrap()), "{said}");
    assert!(said.lines().all(|line| line == line.trim_end()), "{said:?}");
}

#[tokio::test]
async fn refresh_reports_each_server_as_it_ends() {
    let config = SERVERS.replace("\n}}", ", \"gone\": {\"command\": \"no-such-program\"}}}");
    let home = ConfigHome::with("x.json", &config);
    let (_, _, errors) = home.run(&["refresh"]).await;
    let progress: Vec<&str> = errors.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(progress.len(), 3, "{errors}");
    for (number, line) in progress.iter().enumerate() {
        assert!(line.starts_with(&format!("[{}/3] ", number + 1)), "{errors}");
    }
    insta::assert_snapshot!(by_server(&progress.join("\n")));
}

#[tokio::test]
async fn interrupted_refresh_names_the_servers_left_out() {
    let config = r#"{"mcpServers": {
        "fails": {"command": "no-such-program"},
        "hangs": {"command": "sleep", "args": ["60"]},
        "stays": {"command": "sleep", "args": ["60"]}
    }}"#;
    let home = ConfigHome::with("x.json", config);
    let config = home.config.to_str().unwrap();
    let mut cases = Cases::default();
    for command in ["refresh", "test"] {
        let running = home.command(&[command, "--config", config]).spawn().unwrap();
        let id = running.id().unwrap();
        eventually("the servers run", || descendants(id).len() >= 2).await;
        let process = nix::unistd::Pid::from_raw(id.try_into().unwrap());
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT).unwrap();
        let Output { status, stdout, stderr } = running.wait_with_output().await.unwrap();
        let said = String::from_utf8([stdout, stderr].concat()).unwrap();
        assert_eq!(status.code(), Some(1), "{said}");
        cases.add(command, line_of(&said, "hangs, stays"));
        assert!(!said.contains(" INFO "), "{said}");
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn refused_connection_names_the_address() {
    let config = r#"{"mcpServers": {"gone": {"url": "http://127.0.0.1:9/secret-path"}}}"#;
    let home = ConfigHome::with("x.json", config);
    let (code, said, _) = home.run(&["test"]).await;
    assert_eq!(code, Some(1), "{said}");
    insta::assert_snapshot!(redacted(&said));
    assert!(!said.contains("secret-path"), "{said}");
}

#[tokio::test]
async fn get_hides_secrets() {
    let config = r#"{"mcpServers": {"s": {"command": "x", "args": ["--token", "ghp_0123456789abcdefghij0123456789abcdef"],
        "env": {"API_KEY": "hunter2-hunter2", "HOME_PAGE": "${HOME_PAGE:-x}"}}}}"#;
    let home = ConfigHome::with("x.json", config);
    let (code, said, errors) = home.run(&["get", "s"]).await;
    assert_eq!(code, Some(0), "{errors}");
    insta::assert_snapshot!(said);
    assert!(!said.contains("ghp_01") && !said.contains("hunter2"), "{said}");
    let shown = home.json(&["get", "s", "--json"]).await;
    assert_eq!((&shown["server"], &shown["entry"]["command"]), (&json!("s"), &json!("x")));
    assert_eq!(home.run(&["get", "t"]).await.0, Some(2));
}

#[tokio::test]
async fn check_test_and_refresh_print_json() {
    let config = SERVERS.replace("\n}}", ", \"gone\": {\"command\": \"no-such-program\"}}}");
    let home = ConfigHome::with("x.json", &config);
    let report = home.json(&["check", "--json"]).await;
    assert_eq!((&report["ok"], &report["servers"]), (&json!(true), &json!(3)));
    for command in ["test", "refresh"] {
        let (code, said, _) = home.run(&[command, "--json"]).await;
        assert_eq!(code, Some(1), "{said}");
        let servers: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        assert_eq!(servers[0]["tools"], 4, "{said}");
        insta::assert_snapshot!("error_in_json", servers[2]["error"].as_str().unwrap());
    }
    home.edit("\"weather\": {", "\"weather\": {\"startup\": \"lazzy\", ");
    let (code, said, _) = home.run(&["check", "--json"]).await;
    let report: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!((code, &report["ok"]), (Some(2), &json!(false)));
    assert_eq!(report["problems"][0]["key"], "mcpServers.weather.startup", "{said}");
    assert_eq!(report["problems"][0]["line"], 3, "{said}");
}

#[tokio::test]
async fn repeated_cause_is_logged_once() {
    let home =
        ConfigHome::with("x.json", r#"{"mcpServers": {"gone": {"command": "no-such-program"}}}"#);
    let config = home.config.to_str().unwrap();
    let mut serving = home.command(&["--config", config]).stdin(Stdio::piped()).spawn().unwrap();
    // This time allows for several attempts.
    tokio::time::sleep(Duration::from_secs(4)).await;
    drop(serving.stdin.take());
    let output = serving.wait_with_output().await.unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    let is_cause = |line: &&str| line.contains("no-such-program");
    let causes: Vec<&str> = log.lines().filter(is_cause).collect();
    assert_eq!(causes.len(), 1, "{log}");
}

#[tokio::test]
async fn list_shows_hidden_and_stale_tools() {
    let home = ConfigHome::with("dormouse.yaml", YAML);
    let (_, said, _) = home.run(&["list", "notes"]).await;
    insta::assert_snapshot!(redacted(&said));
    home.run(&["refresh", "notes"]).await;
    let listed = home.json(&["list", "--json"]).await;
    let states: Vec<String> = listed[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            format!("{} {}", tool["name"].as_str().unwrap(), tool["state"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        states,
        [
            "add_note hidden",
            "list_notes shown",
            "search_notes shown",
            "delete_note shown",
            "burn_note stale"
        ]
    );
    assert_eq!(listed[1], json!({"server": "weather", "enabled": true}));
    let (_, said, _) = home.run(&["list", "notes"]).await;
    insta::assert_snapshot!("tools_of_notes", redacted(&said));
}

#[tokio::test]
async fn status_asks_the_instance_or_the_disk() {
    let home = ConfigHome::with("dormouse.yaml", YAML);
    home.run(&["refresh"]).await;
    let at_rest = home.json(&["status", "--json"]).await;
    assert_eq!(at_rest[0]["pid"], Value::Null);
    assert_eq!(at_rest[0]["servers"][0]["state"], Value::Null);
    let bytes = at_rest[0]["servers"][0]["inventory"]["bytes"].as_u64().unwrap();
    assert_eq!(at_rest[0]["servers"][0]["tokens"].as_u64().unwrap(), bytes.div_ceil(4));

    let config = home.config.to_str().unwrap();
    let mut serving = home.command(&["--config", config]).stdin(Stdio::piped()).spawn().unwrap();
    let run = home.directory.path().join("run/dormouse/run");
    eventually("the socket is there", || sockets(&run).len() == 1).await;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&run), 0o700);
    // Nobody else gets into the directory before the socket has its mode.
    eventually("the socket is private", || mode(&sockets(&run)[0]) == 0o600).await;
    let mut running = Value::Null;
    for _ in 0..100 {
        running = home.json(&["status", "--json"]).await;
        if running[0]["servers"][1]["state"] == "awake" {
            break;
        }
    }
    assert_eq!(running[0]["servers"][1]["state"], "awake");
    assert!(by_daemon() || running[0]["pid"] == json!(serving.id()), "{running}");
    assert_eq!(running[0]["servers"][0]["state"], "unloaded");
    assert_eq!(running[0]["servers"][0]["inventory"]["bytes"], json!(bytes));
    let (_, said, _) = home.run(&["status"]).await;
    assert!(said.lines().any(|line| line.contains("weather") && line.contains("awake")), "{said}");

    serving.kill().await.unwrap();
    if by_daemon() {
        eventually("the daemon removes the socket", || sockets(&run).is_empty()).await;
    } else {
        assert_eq!(sockets(&run).len(), 1, "the killed process leaves its socket behind");
    }
    let at_rest = home.json(&["status", "--json"]).await;
    assert_eq!((&at_rest[0]["pid"], sockets(&run).len()), (&Value::Null, 0));
}

fn sockets(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}
