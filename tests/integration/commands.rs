//! The commands in addition to `serve`.

use std::{path::Path, process::Output};

use serde_json::Value;

use crate::support::{Cases, Proxy, dormouse, redacted};

async fn run(directory: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = dormouse();
    command.args(arguments).current_dir(directory);
    command
        .env("HOME", directory.join("home"))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_CACHE_HOME");
    command.stdin(std::process::Stdio::null());
    let Output { status, stdout, stderr } = command.output().await.expect("dormouse runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("the temporary directory is writable")
}

#[tokio::test]
async fn check_prints_every_problem_with_its_place() {
    let place = directory();
    std::fs::write(
        place.path().join("bad.json"),
        "{\n  \"surfac\": 1,\n  \"mcpServers\": {\"a\": {\"comand\": \"x\"}}\n}",
    )
    .unwrap();
    let (code, stdout, stderr) = run(place.path(), &["check", "--config", "bad.json"]).await;
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(stderr);
    std::fs::write(
        place.path().join("good.json"),
        r#"{"mcpServers": {"a": {"command": "${NO_SUCH}"}}}"#,
    )
    .unwrap();
    let (code, stdout, _) = run(place.path(), &["check", "--config", "good.json"]).await;
    assert_eq!(code, Some(0));
    insta::assert_snapshot!("undefined_variable_is_a_warning", stdout);
    std::fs::write(place.path().join(".env"), "\u{feff}NO_SUCH=x\nMY KEY=hidden-secret\n").unwrap();
    let (_, stdout, _) = run(place.path(), &["check", "--config", "good.json"]).await;
    insta::assert_snapshot!("valid_config", stdout);
    let (code, _, stderr) =
        run(place.path(), &["check", "--config", "good.json", "--env-file", ".env"]).await;
    assert_eq!(code, Some(2));
    insta::assert_snapshot!("malformed_env_file", stderr);
}

#[tokio::test]
async fn unclosed_reference_is_a_problem() {
    let place = directory();
    let config =
        r#"{"mcpServers": {"a": {"command": "x", "env": {"A": "${B", "C": "$${D} $${E"}}}}"#;
    std::fs::write(place.path().join("c.json"), config).unwrap();
    let (code, _, stderr) = run(place.path(), &["check", "--config", "c.json"]).await;
    assert_eq!(code, Some(2));
    insta::assert_snapshot!(stderr);
}

#[tokio::test]
async fn check_hides_values_of_variables() {
    let place = directory();
    std::fs::write(place.path().join(".env"), "TOKEN=hidden-secret\nBLANK=\n").unwrap();
    let config = r#"{"mcpServers": {"a": {"command": "x", "idleTimeout": "${TOKEN}"}, "b": {"command": "${BLANK}"}}}"#;
    std::fs::write(place.path().join("c.json"), config).unwrap();
    let (code, _, stderr) = run(place.path(), &["check", "--config", "c.json"]).await;
    assert_eq!(code, Some(2));
    insta::assert_snapshot!(stderr);
    std::fs::write(
        place.path().join("d.json"),
        r#"{"maxMessageBytes": 1, "descriptionBudget": 1e999, "mcpServers": {}}"#,
    )
    .unwrap();
    let (_, _, stderr) = run(place.path(), &["check", "--config", "d.json"]).await;
    insta::assert_snapshot!("limits_out_of_range", stderr);
}

#[tokio::test]
async fn config_in_the_working_directory_needs_trust() {
    let place = directory();
    let (code, _, stderr) = run(place.path(), &["serve"]).await;
    assert_eq!(code, Some(2));
    insta::assert_snapshot!("no_config", redacted(&stderr));
    let path = place.path().join("dormouse.json");
    std::fs::write(&path, r#"{"mcpServers": {"a": {"command": "touch", "args": ["pwned"]}}}"#)
        .unwrap();
    let (code, _, stderr) = run(place.path(), &["serve"]).await;
    assert_eq!(code, Some(2));
    insta::assert_snapshot!("untrusted_config", redacted(&stderr));
    assert!(!place.path().join("pwned").exists());
    let (code, stdout, _) = run(place.path(), &["trust"]).await;
    assert_eq!(code, Some(0));
    insta::assert_snapshot!("trusted_config", redacted(&stdout));
    assert_eq!(run(place.path(), &["serve"]).await.0, Some(0));
    std::fs::write(&path, r#"{"mcpServers": {}}"#).unwrap();
    assert_eq!(
        run(place.path(), &["serve"]).await.0,
        Some(2),
        "other content needs trust of its own"
    );
}

#[tokio::test]
async fn checked_in_schema_and_reference_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (_, schema, _) = run(root, &["schema"]).await;
    assert_eq!(
        schema,
        std::fs::read_to_string(root.join("docs/config.schema.json")).unwrap(),
        "run `just schema`"
    );
    let (_, reference, _) = run(root, &["schema", "--reference"]).await;
    let document = std::fs::read_to_string(root.join("docs/reference/config.md")).unwrap();
    assert!(
        document.contains(&reference),
        "docs/reference/config.md lacks the tables of the schema; run `just schema`"
    );
}

#[tokio::test]
async fn example_config_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (code, _, stderr) = run(root, &["check", "--config", "config.example.json"]).await;
    assert_eq!(code, Some(0), "{stderr}");
}

#[tokio::test]
async fn demo_shows_each_step_and_leaves_nothing() {
    let place = directory();
    let (code, stdout, stderr) = run(place.path(), &["demo", "--json"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let steps: Value = serde_json::from_str(&stdout).unwrap();
    let data: Vec<&Value> = steps.as_array().unwrap().iter().map(|step| &step["data"]).collect();
    let [direct, _, list, search, load, call, asleep, woken, end] = data[..] else {
        panic!("nine steps: {stdout}");
    };
    assert_pictures_show(direct, list);
    assert_eq!(direct["servers"].as_array().unwrap().len(), 12);
    assert!(list["bytes"].as_u64().unwrap() * 20 < direct["bytes"].as_u64().unwrap());
    assert!(search["found"][0]["name"].as_str().unwrap().ends_with("_refund"), "{search}");
    assert_eq!(load["result"]["mcp_name"], "github");
    assert_eq!(load["notifications"][0], "notifications/tools/list_changed");
    assert_eq!(call["result"]["content"][0]["type"], "text");
    assert_eq!(asleep["asleep"], "github");
    assert!(woken["milliseconds"].as_f64().unwrap() > 0.0);
    assert_eq!(end["next"], "dormouse import --all");
    let (code, stdout, _) = run(place.path(), &["demo"]).await;
    assert_eq!(code, Some(0));
    assert!(!stdout.contains('\u{1b}'), "no colour where there is no terminal");
    assert!(stdout.lines().all(|line| line.chars().count() <= 80), "{stdout}");
    let bytes = |step: &Value| step["bytes"].as_f64().unwrap();
    let saved = 100.0 - 100.0 * bytes(list) / bytes(direct);
    let shown = stdout.split_once(" % less").and_then(|(before, _)| before.rsplit(' ').next());
    assert!((shown.unwrap().parse::<f64>().unwrap() - saved).abs() < 0.2, "{stdout}");
    assert_eq!(
        stdout.trim_end().lines().last().map(str::trim),
        Some("next: dormouse import --all")
    );
    assert!(!place.path().join("home").exists(), "the demo wrote to the home directory");
}

/// Fails if the README's pictures were drawn from other bytes and tools than these.
fn assert_pictures_show(direct: &Value, list: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures/demo.json");
    let steps: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let outdated = "docs/pictures/demo.json is outdated: run `scripts/pictures record DORMOUSE`";
    assert_eq!([&steps[0]["data"], &steps[2]["data"]], [direct, list], "{outdated}");
}

#[tokio::test]
async fn serve_prints_only_protocol_messages() {
    let mut host = Proxy::with([crate::support::Server::lazy("a")])
        .argument("--log-format")
        .argument("json")
        .serve()
        .await;
    host.load("a").await;
    assert_eq!(host.end().await, Some(0));
    for line in host.received() {
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
    }
    for line in host.log() {
        let entry: Value = serde_json::from_str(&line).unwrap();
        assert!(entry["level"].is_string());
    }
}

#[tokio::test]
async fn shells_complete_servers_and_apps() {
    let home = directory();
    let config = r#"{"mcpServers": {"alpha": {"command": "x"}, "beta": {"command": "x"}}}"#;
    std::fs::write(home.path().join("dormouse.json"), config).unwrap();
    let program = env!("CARGO_BIN_EXE_dormouse");
    for (words, expected) in [
        (&["dormouse", "test", "a"][..], "alpha"),
        (&["dormouse", "remove", "be"], "beta"),
        (&["dormouse", "connect", "claude-c"], "claude-code"),
        (&["dormouse", "refr"], "refresh"),
    ] {
        let mut command = tokio::process::Command::new(program);
        command.arg("--").args(words).current_dir(home.path()).env("HOME", home.path());
        command.env("DORMOUSE_COMPLETE", "fish").env_remove("DORMOUSE_CONFIG");
        let output = command.output().await.unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.starts_with(expected) && said.lines().count() == 1, "{words:?}: {said}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, _) = run(home.path(), &["completions", shell]).await;
        assert_eq!(code, Some(0), "{shell}");
        assert!(script.contains("DORMOUSE_COMPLETE"), "{shell}: {script}");
    }
}

#[tokio::test]
async fn usage_errors_exit_with_2_and_help_with_0() {
    let place = directory();
    assert_eq!(run(place.path(), &["--no-such-flag"]).await.0, Some(2));
    assert_eq!(run(place.path(), &["--eager", "--lazy"]).await.0, Some(2));
    assert_eq!(run(place.path(), &["--help"]).await.0, Some(0));
    assert_eq!(run(place.path(), &["--log-level", "loud=very"]).await.0, Some(2));
    assert_eq!(run(place.path(), &["check", "--", "true"]).await.0, Some(2));
    assert_eq!(run(place.path(), &["trust", "no-such.json"]).await.0, Some(2));
    assert_eq!(run(place.path(), &["check", "--config", "no-such.json"]).await.0, Some(2));
}

#[tokio::test]
async fn misspelt_command_and_value_get_a_suggestion() {
    let place = directory();
    let mut cases = Cases::default();
    let (code, _, said) = run(place.path(), &["chek"]).await;
    assert_eq!(code, Some(2));
    cases.add("dormouse chek", &said);
    std::fs::write(place.path().join("c.json"), r#"{"surface": "discvoer", "mcpServers": {}}"#)
        .unwrap();
    let (code, _, said) = run(place.path(), &["check", "--config", "c.json"]).await;
    assert_eq!(code, Some(2));
    cases.add(r#""surface": "discvoer""#, &said);
    insta::assert_snapshot!(cases);
}
