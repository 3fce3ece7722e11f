//! Other SDKs as hosts, over every transport. `scripts/check` installs them.

use std::path::{Path, PathBuf};

use rmcp::{
    model::{CallToolRequestParams, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{Proxy, Server, dormouse, fixture};

fn in_tests(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path);
    assert!(path.exists(), "{} is missing: run scripts/check", path.display());
    path
}

fn conformance_server() -> Server {
    let script = json!({"conformance": true}).to_string();
    Server::lazy("u").set("command", json!(fixture())).set("args", json!([script]))
}

/// Runs a client program against dormouse over each transport; the program must succeed.
async fn run_over_every_transport(program: &[PathBuf], arguments: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("dormouse.json");
    let entry = json!({
        "description": "d", "command": fixture(), "args": [r#"{"conformance":true}"#],
    });
    std::fs::write(&config, json!({"mcpServers": {"u": entry}}).to_string()).unwrap();
    let on_stdio = dormouse().as_std().get_program().to_string_lossy().into_owned();
    let on_stdio = [on_stdio, "--config".to_owned(), config.to_string_lossy().into_owned()];
    let service = || Proxy::with([conformance_server()]).start_http();
    let (streamable, sse) = (service(), service());
    for (way, target) in [
        ("stdio", on_stdio.to_vec()),
        ("http", vec![streamable.url("/mcp").await]),
        ("sse", vec![sse.url("/sse").await]),
    ] {
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]).args(arguments).arg(way).args(target).kill_on_drop(true);
        // The SDKs pass HOME to a server that they start. The test leaves no files in the real one.
        command.env("HOME", directory.path());
        let output = command.output().await.expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?} {way}: {said}");
    }
}

#[tokio::test]
async fn typescript_sdk_connects_over_every_transport() {
    run_over_every_transport(&["node".into(), in_tests("npm/client.mjs")], &[]).await;
}

#[tokio::test]
async fn legacy_python_sdk_connects_over_every_transport() {
    let python = in_tests("clients/.venv/bin/python");
    run_over_every_transport(&[python, in_tests("clients/python.py")], &["legacy"]).await;
}

#[tokio::test]
async fn modern_python_sdk_connects_over_every_transport() {
    let python = in_tests("clients/.venv/bin/python");
    run_over_every_transport(&[python, in_tests("clients/python.py")], &["auto"]).await;
}

#[tokio::test]
async fn rmcp_client_of_either_era_connects_over_http() {
    let program = Proxy::with([conformance_server()]).start_http();
    let url = program.url("/mcp").await;
    // Installs the process-wide TLS provider, which the rmcp client needs.
    drop(crate::support::http_client());
    let modern =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    for lifecycle in [ClientLifecycleMode::Initialize, modern] {
        let transport = StreamableHttpClientTransport::from_uri(url.as_str());
        let client = ().serve_with_lifecycle(transport, lifecycle).await.unwrap();
        assert_eq!(client.list_all_tools().await.unwrap().len(), 3);
        let arguments = |value: Value| value.as_object().unwrap().clone();
        let call = CallToolRequestParams::new("use_tool")
            .with_arguments(arguments(json!({"tool_name": "u/test_simple_text"})));
        let called = client.call_tool(call).await.unwrap();
        assert_ne!(called.is_error, Some(true));
        client.cancel().await.unwrap();
    }
}
