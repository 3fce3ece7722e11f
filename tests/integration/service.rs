//! dormouse as a service: TLS, HTTP/2, threads, sockets of systemd, and its end.

use std::{path::Path, process::Stdio, time::Duration};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    process::Command,
};

use crate::support::{
    Host, PATIENCE, Program, Proxy, Server, TestCertificate, dormouse, free_port, not_tested,
    text_of,
};

/// A host that is curl, which speaks every version of HTTP.
struct Curl<'a> {
    options: &'a [&'a str],
    url: String,
}

impl<'a> Curl<'a> {
    async fn to(program: &Program, options: &'a [&'a str]) -> Self {
        // The certificate is for a name, and not for an address.
        let url = program.url("/mcp").await.replace("127.0.0.1", "localhost");
        Self { options, url }
    }

    /// Posts a call of `s/echo`, and returns its text with the version of HTTP; an error of curl or
    /// the refusal otherwise.
    async fn echo(&self, text: &str) -> Result<(String, String), String> {
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {
                "name": "use_tool",
                "arguments": {"tool_name": "s/echo", "tool_input": {"text": text}},
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": {"name": "curl", "version": "1"},
                },
            },
        });
        let ran = Command::new("curl")
            .args(["--silent", "--show-error", "--noproxy", "*", "--max-time", "20"])
            .args(["--write-out", "\n%{http_version}", "--data", &call.to_string()])
            .args(["--header", "content-type: application/json"])
            .args(["--header", "accept: application/json, text/event-stream"])
            .args(["--header", "mcp-protocol-version: 2026-07-28"])
            .args(["--header", "mcp-method: tools/call", "--header", "mcp-name: use_tool"])
            .args(self.options)
            .arg(&self.url)
            .output()
            .await
            .expect("curl");
        if !ran.status.success() {
            return Err(String::from_utf8_lossy(&ran.stderr).into_owned());
        }
        let shown = String::from_utf8(ran.stdout).unwrap();
        let (body, version) = shown.trim_end().rsplit_once('\n').unwrap();
        let answer: Value = serde_json::from_str(body).expect(body);
        if answer.get("error").is_some() {
            return Err(body.to_owned());
        }
        Ok((echoed_by(&answer["result"]), version.to_owned()))
    }
}

async fn has_curl() -> bool {
    let version = Command::new("curl").arg("--version").output().await;
    let has_http2 =
        version.is_ok_and(|ran| String::from_utf8_lossy(&ran.stdout).contains(" HTTP2"));
    if !has_http2 {
        not_tested("there is no curl with HTTP/2");
    }
    has_http2
}

/// Returns the text that `s/echo` has returned.
fn echoed_by(result: &Value) -> String {
    let call: Value = serde_json::from_str(text_of(result)).unwrap();
    call["arguments"]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn hosts_choose_their_version_of_http_with_and_without_tls() {
    if !has_curl().await {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let Some(made) = TestCertificate::make(directory.path()).await else { return };
    let proxy = || Proxy::with([Server::lazy("s")]);
    let plain = proxy().start_http();
    let over_tls = proxy()
        .set("certificate", made.certificate.as_str())
        .set("certificateKey", made.key.as_str())
        .start_http();
    let trusted = ["--cacert", &made.certificate];
    for (program, options, version) in [
        (&plain, vec!["--http1.1"], "1.1"),
        (&plain, vec!["--http1.0"], "1"),
        (&plain, vec!["--http2-prior-knowledge"], "2"),
        (&over_tls, [&trusted[..], &["--http1.1"]].concat(), "1.1"),
        (&over_tls, [&trusted[..], &["--http2"]].concat(), "2"),
    ] {
        let host = Curl::to(program, &options).await;
        let echoed = host.echo("hello").await.unwrap();
        assert_eq!(echoed, ("hello".to_owned(), version.to_owned()), "{options:?}");
    }
    let strange = Curl::to(&plain, &["--http2-prior-knowledge", "--header", "host: evil"]).await;
    let refused = strange.echo("hello").await.unwrap_err();
    assert!(refused.contains("Host header"), "{refused}");
}

#[tokio::test]
async fn renewed_certificate_is_read_and_a_broken_one_is_not() {
    if !has_curl().await {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let Some(made) = TestCertificate::make(directory.path()).await else { return };
    let program = Proxy::with([Server::lazy("s")])
        .set("certificate", made.certificate.as_str())
        .set("certificateKey", made.key.as_str())
        .start_http();
    let first = directory.path().join("first.pem").display().to_string();
    std::fs::copy(&made.certificate, &first).unwrap();
    let trusts_first = ["--cacert", &first];
    let of_first = Curl::to(&program, &trusts_first).await;
    assert!(of_first.echo("one").await.is_ok());

    let renewed = std::fs::read(&made.key).unwrap();
    std::fs::write(&made.key, "-----BEGIN PRIVATE KEY-----\n?\n").unwrap();
    program.logged("the certificate cannot be used; the earlier one stays").await;
    assert!(of_first.echo("two").await.is_ok());
    std::fs::write(&made.key, renewed).unwrap();
    program.logged("the certificate was read again").await;

    TestCertificate::make(directory.path()).await.unwrap();
    let trusts_second = ["--cacert", made.certificate.as_str()];
    let of_second = Curl::to(&program, &trusts_second).await;
    let renewed = async { while of_second.echo("three").await.is_err() {} };
    tokio::time::timeout(PATIENCE, renewed).await.expect("the second certificate is shown");
    assert!(of_first.echo("four").await.unwrap_err().contains("certificate"));
}

#[tokio::test]
async fn certificate_that_cannot_be_used_prevents_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (directory.path().join("one"), directory.path().join("other"));
    for path in [&one, &other] {
        std::fs::create_dir(path).unwrap();
    }
    let Some(one) = TestCertificate::make(&one).await else { return };
    let Some(other) = TestCertificate::make(&other).await else { return };
    for (certificate, key, expected) in [
        ("/nowhere.pem", one.key.as_str(), "cannot read /nowhere.pem"),
        (&one.key, &one.key, "it has no certificate"),
        (&one.certificate, &one.certificate, "it has no private key"),
        (&one.certificate, &other.key, "cannot use the private key"),
    ] {
        let config = json!({"mcpServers": {}, "certificate": certificate, "certificateKey": key});
        let said = refusal(directory.path(), &config).await;
        assert!(said.contains(expected), "{said}");
    }
}

/// Starts a service that refuses its config, and returns what it says.
async fn refusal(directory: &Path, config: &Value) -> String {
    let file = directory.join("dormouse.json");
    std::fs::write(&file, config.to_string()).unwrap();
    let mut command = dormouse();
    command.args(["serve", "--http", ":0", "--config"]).arg(&file).env("HOME", directory);
    let ran = command.stdin(Stdio::null()).output().await.unwrap();
    assert!(!ran.status.success());
    String::from_utf8(ran.stderr).unwrap()
}

#[tokio::test]
async fn answers_of_many_hosts_do_not_cross_on_several_threads() {
    let program = Proxy::with([Server::lazy("s")]).set("threads", 3).start_http();
    let hosts = (0..12).map(|number| {
        let program = &program;
        async move {
            let mut host = program.host("/mcp").await;
            host.initialize(json!({})).await;
            for round in 0..20 {
                let text = format!("{number} {round}");
                let answer = host.use_tool("s/echo", json!({"text": text})).await;
                assert_eq!(echoed_by(&answer), text);
            }
        }
    });
    futures_util::future::join_all(hosts).await;
    assert_eq!(program.started("s").len(), 1);
}

#[tokio::test]
async fn socket_that_systemd_has_opened_is_served() {
    let launcher = Command::new("systemd-socket-activate").arg("--version").output().await;
    if !launcher.is_ok_and(|ran| ran.status.success()) {
        return not_tested("there is no systemd-socket-activate");
    }
    let home = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let mut proxy = Proxy::with([Server::lazy("s")])
        .at_home(home.path())
        .running(Path::new("systemd-socket-activate"))
        .argument("--listen")
        .argument(&address);
    for name in ["HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME"] {
        proxy = proxy.argument("--setenv").argument(name);
    }
    let program = proxy.argument(env!("CARGO_BIN_EXE_dormouse")).argument("serve").start_service();
    program.logged("Listening on").await;
    let url = format!("http://{address}/mcp");
    // The first connection starts dormouse, and waits for it.
    let mut host = Host::over_http(&url, &[]);
    host.initialize(json!({})).await;
    assert_eq!(echoed_by(&host.use_tool("s/echo", json!({"text": "hi"})).await), "hi");
    assert!(program.url("").await.contains(&address));
}

#[tokio::test]
async fn request_that_outlasts_the_drain_timeout_gets_an_error() {
    let mut program = Proxy::with([Server::lazy("s")]).set("drainTimeout", "0s").start_http();
    let mut host = program.host("/mcp").await;
    host.initialize(json!({})).await;
    host.use_tool("s/echo", json!({"text": "load"})).await;
    let call = json!({"name": "use_tool", "arguments": {"tool_name": "s/slow", "tool_input": {"ms": 3000}}});
    let id = host.send("tools/call", call).await;
    program.server_noted("s", r#"tools/call {"name":"slow""#).await;
    program.signal(Signal::SIGTERM);
    assert_eq!(program.exit().await, Some(0));
    assert_eq!(host.answer(id).await["error"]["code"], -32800);
}

#[tokio::test]
async fn accepted_connections_are_answered_when_the_socket_closes() {
    let mut program = Proxy::with([Server::lazy("s")]).start_http();
    let address = program.url("").await.trim_start_matches("http://").to_owned();
    let mut clients = Vec::new();
    for _ in 0..16 {
        let address = address.clone();
        clients.push(tokio::spawn(async move {
            let mut answered = 0_u32;
            // A connection that is refused has cost nothing; any other one has to be answered.
            while let Ok(mut connection) = TcpStream::connect(&address).await {
                let asked = connection.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await;
                asked.expect("the connection was accepted");
                let mut answer = String::new();
                connection.read_to_string(&mut answer).await.expect("it is not reset");
                assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
                answered += 1;
            }
            answered
        }));
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    program.signal(Signal::SIGTERM);
    assert_eq!(program.exit().await, Some(0));
    for client in clients {
        assert!(client.await.expect("each connection was answered") > 0);
    }
}
