//! A Redis or Valkey server, of the programs that `scripts/services` unpacks.

use std::{
    net::TcpListener,
    ops::Range,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::{PATIENCE, not_tested};

/// A key for what dormouse keeps in the server.
pub const STORE_KEY: &str = "the key of the tests, which has 32 bytes or more";

pub struct Redis {
    /// The name of the program.
    server: &'static str,
    data: tempfile::TempDir,
    port: u16,
    options: Vec<String>,
    process: Option<Child>,
}

impl Redis {
    /// Starts a server; `None` on a machine that has no program for it.
    pub async fn start() -> Option<Self> {
        Self::start_with(&[]).await
    }

    /// Starts a server with more options.
    pub async fn start_with(options: &[&str]) -> Option<Self> {
        let redis = Self::of("redis-server", options).await;
        if redis.is_none() {
            not_tested("scripts/services has not been run");
        }
        redis
    }

    /// Starts a server of Redis, and one of Valkey where Debian still has its package.
    pub async fn start_each() -> Vec<Self> {
        let valkey = Self::of("valkey-server", &[]).await;
        Self::start().await.into_iter().chain(valkey).collect()
    }

    async fn of(server: &'static str, options: &[&str]) -> Option<Self> {
        if !program(server).exists() {
            return None;
        }
        let data = tempfile::tempdir().expect("the temporary directory is writable");
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut redis = Self { server, data, port: free_port(), options, process: None };
        redis.resume().await;
        Some(redis)
    }

    /// Starts the server again, with what it has written to disk.
    pub async fn resume(&mut self) {
        let mut command = Command::new(program(self.server));
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
        command.args(["--appendfsync", "always", "--port", &self.port.to_string()]);
        command.arg("--dir").arg(self.data.path()).args(&self.options);
        command.env("LD_LIBRARY_PATH", libraries()).stdout(Stdio::null()).kill_on_drop(true);
        self.process = Some(command.spawn().expect("it runs"));
        let answers = async { while !self.command(&["PING"]).await.contains("PONG") {} };
        tokio::time::timeout(PATIENCE, answers).await.expect("it answers");
    }

    /// Ends the server, as a crash would.
    pub async fn kill(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().await.expect("it ran");
    }

    pub fn address(&self) -> (&'static str, u16) {
        ("127.0.0.1", self.port)
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Returns a config with this store.
    pub fn config(&self, servers: &Value) -> Value {
        json!({"store": self.url(), "storeKeys": [STORE_KEY], "mcpServers": servers})
    }

    /// Runs a command of Redis, and returns what it prints.
    pub async fn command(&self, words: &[&str]) -> String {
        let mut command = Command::new(program("redis-cli"));
        command.env("LD_LIBRARY_PATH", libraries()).args(["-p", &self.port.to_string()]);
        let output = command.args(words).output().await.expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns everything that the server has written to disk.
    pub fn content(&self) -> Vec<u8> {
        let directory = self.data.path().join("appendonlydir");
        let files = std::fs::read_dir(directory).expect("the server has written something");
        files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }

    /// Returns the names of all values.
    pub async fn names(&self) -> Vec<String> {
        let names = self.command(&["KEYS", "*"]).await;
        let mut names: Vec<String> = names.lines().map(str::to_owned).collect();
        names.retain(|name| !name.is_empty());
        names.sort();
        names
    }
}

pub(super) fn services() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/services");
    std::env::var_os("DORMOUSE_SERVICES").map_or(own, PathBuf::from)
}

fn program(name: &str) -> PathBuf {
    services().join("usr/bin").join(name)
}

/// Returns the directories of the libraries that were unpacked with the programs.
pub(super) fn libraries() -> String {
    let of = |machine| services().join("usr/lib").join(machine).display().to_string();
    ["x86_64-linux-gnu", "aarch64-linux-gnu"].map(of).join(":")
}

/// The ports of programs that cannot choose one themselves. The system chooses higher ones: it
/// would give a port that is free now to the next connection.
const PORTS: Range<u32> = 10_000..30_000;

/// Returns a port that nothing listens on now, and that no other test gets soon.
pub fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Each test is a process, and few of them need more ports than this.
    let first = std::process::id().wrapping_mul(16);
    let next = || first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
    let port = || u16::try_from(PORTS.start + next() % (PORTS.end - PORTS.start));
    let mut ports = std::iter::repeat_with(|| port().expect("all of them fit"));
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).expect("the ports have no end")
}
