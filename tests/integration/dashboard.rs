//! The dashboard for Grafana, against a real Prometheus that reads the metrics.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Host, Proxy, Server, http_client, not_tested};

/// A token that opens the metrics.
const TOKEN: &str = "of-operators";

fn dashboard() -> Value {
    serde_json::from_str(include_str!("../../deploy/grafana.json")).expect("JSON")
}

/// Returns each query of the dashboard, with the title of its panel.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let queries = panels.flat_map(|panel| {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array().unwrap().iter();
        targets.map(move |target| (title.to_owned(), target["expr"].as_str().unwrap().to_owned()))
    });
    queries.collect()
}

#[test]
fn dashboard_has_what_grafana_needs() {
    let dashboard = dashboard();
    assert_eq!(dashboard["uid"], "dormouse");
    assert!(dashboard["schemaVersion"].as_u64() >= Some(36));
    let mut ids = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let place = &panel["gridPos"];
        let edge =
            |at: &str, size: &str| place[at].as_u64().unwrap() + place[size].as_u64().unwrap();
        assert!(edge("x", "w") <= 24, "{}: Grafana has 24 columns", panel["title"]);
        assert!(["stat", "timeseries"].contains(&panel["type"].as_str().unwrap()));
        assert_eq!(panel["datasource"]["uid"], "${datasource}");
        ids.push(panel["id"].as_u64().unwrap());
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "each panel has its own id");
}

/// A Prometheus that is ended with the value.
struct Prometheus {
    process: Child,
    url: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).expect("it can be ended");
    }
}

impl Prometheus {
    /// Starts a Prometheus that reads the metrics at `target` each second. Returns `None` if it is
    /// not installed.
    fn start(directory: &Path, target: &str) -> Option<Self> {
        let config = json!({
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{
                "job_name": "dormouse",
                "authorization": {"credentials": TOKEN},
                "static_configs": [{"targets": [target]}],
            }],
        });
        // JSON is YAML.
        std::fs::write(directory.join("prometheus.yml"), config.to_string()).unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", directory.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("data").display()))
            .arg(format!("--web.listen-address={free}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn().ok()?;
        Some(Self { process, url: format!("http://{free}") })
    }

    /// Returns the result of a query; `None` if there is no answer.
    async fn query(&self, query: &str) -> Option<Value> {
        let url = reqwest::Url::parse_with_params(
            &format!("{}/api/v1/query", self.url),
            [("query", query)],
        );
        let answer = http_client().get(url.unwrap()).send().await.ok()?;
        let text = answer.text().await.ok()?;
        let answer: Value = serde_json::from_str(&text).ok()?;
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        Some(answer["data"]["result"].clone())
    }
}

async fn call_both_ways(host: &mut Host) {
    host.use_tool("a/echo", json!({"text": "x"})).await;
    host.use_tool("a/raw", json!({"result": r#"{"content": [], "isError": true}"#})).await;
}

#[tokio::test]
async fn every_panel_shows_something_after_calls() {
    let proxy = Proxy::with([Server::lazy("a")]).set("apiTokens", json!([TOKEN]));
    let program = proxy.start_http();
    let mut host = program.host("/mcp").await;
    host.initialize(json!({})).await;
    let url = program.url("/metrics").await;
    let target = url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let Some(prometheus) = Prometheus::start(directory.path(), target) else {
        return not_tested("Prometheus is not installed");
    };
    let mut waiting = queries(&dashboard());
    for _ in 0..120 {
        call_both_ways(&mut host).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut empty = Vec::new();
        for (title, query) in waiting {
            let shown = query.replace("$__rate_interval", "10s").replace("$server", ".*");
            let result = prometheus.query(&shown).await;
            let has_value = |series: &Value| series["value"][1].as_str() != Some("NaN");
            if !result.is_some_and(|it| it.as_array().unwrap().iter().any(has_value)) {
                empty.push((title, query));
            }
        }
        if empty.is_empty() {
            return;
        }
        waiting = empty;
    }
    panic!("these panels stay empty: {waiting:#?}");
}
