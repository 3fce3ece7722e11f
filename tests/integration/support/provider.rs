//! `FastMCP`'s in-memory OAuth provider as a process. `scripts/check` installs it.

use std::path::Path;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use super::http_client;

pub struct Provider {
    pub url: String,
    _child: Child,
}

impl Provider {
    /// Starts a provider whose access tokens are valid for `lifetime` seconds.
    pub async fn start(lifetime: u32) -> Self {
        let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
        let python = clients.join(".venv/bin/python");
        assert!(python.exists(), "{} is missing: run scripts/check", python.display());
        let mut command = Command::new(python);
        command.arg(clients.join("provider.py")).arg(lifetime.to_string());
        command.stdout(std::process::Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = lines.next_line().await.expect("it can be read").expect("it says where it is");
        let url = line.rsplit(' ').next().expect("an address").to_owned();
        Self { url, _child: child }
    }

    fn at(&self, path: &str) -> String {
        self.url.replace("/mcp", path)
    }

    /// Triggers an event at the provider: `expire`, `revoke` or `forget`.
    pub async fn trigger(&self, what: &str) {
        let told = http_client().post(self.at(&format!("/test/{what}"))).send().await;
        assert!(told.expect("an answer").status().is_success());
    }

    /// Returns how often an event was counted.
    pub async fn count(&self, what: &str) -> u64 {
        let counts = http_client().get(self.at("/test/counts")).send().await.expect("an answer");
        let counts: Value = serde_json::from_str(&counts.text().await.unwrap()).expect("JSON");
        counts[what].as_u64().unwrap_or(0)
    }
}
