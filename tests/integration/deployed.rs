//! The files of `deploy/`, each run or checked with the programs that read it.

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::json;
use tokio::process::Command;

use crate::support::{
    Balancer, BalancerKind, Host, Program, Proxy, Redis, STORE_KEY, Server, User, http_client,
    not_tested, text_of,
};

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)
}

/// Runs a program; `None` on a machine without it.
async fn run(command: &mut Command) -> Option<(bool, String)> {
    match command.output().await {
        Ok(Output { status, stdout, stderr }) => {
            let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
            Some((status.success(), said))
        }
        Err(error) => {
            not_tested(format!("{}: {error}", command.as_std().get_program().display()));
            None
        }
    }
}

/// Starts three replicas, and returns them with their addresses.
async fn replicas(redis: &Redis, home: &Path) -> (Vec<Program>, Vec<String>) {
    let replica = || {
        let proxy = Proxy::with([Server::lazy("s")]).at_home(home).set("store", redis.url());
        let proxy = proxy.set("storeKeys", json!([STORE_KEY])).set("authTokens", json!(["t"]));
        proxy.set("apiTokens", json!(["operator"])).start_http()
    };
    let replicas: Vec<Program> = (0..3).map(|_| replica()).collect();
    let mut addresses = Vec::new();
    for replica in &replicas {
        addresses.push(replica.url("").await.replace("http://", ""));
    }
    for replica in &replicas {
        replica.logged("sees 2 other replicas").await;
    }
    (replicas, addresses)
}

async fn balancer_passes_everything_on(kind: BalancerKind) {
    let Some(redis) = Redis::start().await else { return };
    let home = tempfile::tempdir().unwrap();
    let (replicas, addresses) = replicas(&redis, home.path()).await;
    let Some(balancer) = Balancer::start(kind, &addresses).await else { return };
    let token = [("authorization", "Bearer t")];
    for _ in 0..6 {
        let mut host = Host::over_http(&balancer.url("/mcp"), &token);
        host.initialize(json!({"elicitation": {}})).await;
        // Progress arrives on the stream of its call, and a question is answered on another.
        let question = json!({"method": "elicitation/create", "params": {"message": "who?"}});
        let arguments = json!({"tool_name": "s/ask", "tool_input": question});
        let id = host.send("tools/call", json!({"name": "use_tool", "arguments": arguments})).await;
        let question = host.message("elicitation/create", |_| true).await;
        host.reply(&question, json!({"action": "accept", "content": {"name": "n"}})).await;
        assert!(text_of(&host.answer(id).await["result"]).contains("accept"));

        let mut modern = Host::over_http(&balancer.url("/mcp"), &token).into_modern();
        let stream = modern.listen(json!({"toolsListChanged": true})).await;
        let echo = json!({"tool_name": "s/echo", "tool_input": {"text": "hello"}});
        assert!(text_of(&modern.call("use_tool", echo).await).contains("hello"));
        modern.0.http_mut().close(stream);
    }
    assert!(replicas[0].started("s").len() > 1, "the requests are spread");
    for path in ["/api/v1/status", "/ui/", "/metrics"] {
        let asked = http_client().get(balancer.url(path)).bearer_auth("operator").send().await;
        assert_eq!(asked.unwrap().status(), 403, "{path}");
    }
}

#[tokio::test]
async fn nginx_passes_everything_on_but_the_api() {
    balancer_passes_everything_on(BalancerKind::Nginx).await;
}

#[tokio::test]
async fn haproxy_passes_everything_on_but_the_api() {
    balancer_passes_everything_on(BalancerKind::Haproxy).await;
}

#[tokio::test]
async fn config_of_the_replicas_is_valid() {
    let user = User::with_config(&json!({}));
    std::fs::copy(deploy("dormouse.json"), user.home.path().join("dormouse.json")).unwrap();
    let mut check = user.command(&["check"]);
    for name in ["REPLICA_HOST", "TEAM_TOKEN", "OPERATOR_TOKEN", "STORE_HOST"] {
        check.env(name, "localhost");
    }
    let (is_valid, said) = run(check.env("STORE_KEY", STORE_KEY)).await.expect("it is built");
    assert!(is_valid && !said.contains("warning"), "{said}");
}

#[tokio::test]
async fn manifests_of_kubernetes_fit_its_schemas() {
    let validate =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/.venv/bin/kubernetes-validate");
    let mut files = Vec::new();
    for file in std::fs::read_dir(deploy("kubernetes")).unwrap() {
        let path = file.unwrap().path();
        // Values of a chart, which no schema of Kubernetes describes.
        if !path.ends_with("prometheus-adapter.yaml") {
            files.push(path);
        }
    }
    assert!(files.len() >= 5);
    let run = run(Command::new(validate).arg("--strict").args(&files)).await;
    if let Some((are_valid, said)) = run {
        assert!(are_valid, "{said}");
    }
}

#[tokio::test]
async fn units_of_systemd_are_valid() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for name in ["dormouse.service", "dormouse.socket"] {
        let text = std::fs::read_to_string(deploy("systemd").join(name)).unwrap();
        let text = text.replace("/usr/local/bin/dormouse", env!("CARGO_BIN_EXE_dormouse"));
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        files.push(file);
    }
    let run = run(Command::new("systemd-analyze").arg("verify").args(&files)).await;
    if let Some((are_valid, said)) = run {
        assert!(are_valid && said.is_empty(), "{said}");
    }
}
