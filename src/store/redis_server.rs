//! A Redis server for tests, of the programs that `scripts/services` unpacks.

use std::{
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use super::{SharedStores, Store, StoreAddress, Stores};
use crate::base::SealingKeys;

/// A server that keeps its values in memory, and ends when it is dropped.
pub(crate) struct RedisServer {
    process: Child,
    port: u16,
}

impl RedisServer {
    /// Starts a server; `None` on a machine without the program.
    pub(crate) fn start() -> Option<Self> {
        if !services().join("usr/bin/redis-server").exists() {
            eprintln!("not tested: scripts/services has not been run");
            return None;
        }
        // Below the ports that the system gives to connections.
        let mut ports = (0..).map(|_| fastrand::u16(10_000..30_000));
        let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        let port = ports.find(is_free).expect("there is one");
        Some(Self { process: start(port), port })
    }

    /// Ends the server and starts it again, without its values.
    pub(super) fn restart(&mut self) {
        self.end();
        self.process = start(self.port);
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Runs a command of Redis, and returns what it prints.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        let mut command = program("redis-cli");
        let output = command.args(["-p", &self.port.to_string()]).args(words).output();
        String::from_utf8(output.expect("it runs").stdout).expect("it is text").trim().to_owned()
    }

    /// Returns the logins, as one process sees them.
    pub(crate) fn logins(&self) -> Arc<dyn Store> {
        self.all_stores().logins
    }

    /// Returns what replicas share, as one process sees it.
    pub(super) fn stores(&self) -> SharedStores {
        self.all_stores().shared.expect("they are in this server")
    }

    fn all_stores(&self) -> Stores {
        let keys = SealingKeys::new(["a key with at least thirty-two bytes"]).unwrap();
        let (url, prefix) = (self.url(), "p".to_owned());
        let address = StoreAddress { url, prefix, keys, certificates: None };
        Stores::shared(&address).expect("the address is valid")
    }
}

fn services() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/services");
    std::env::var_os("DORMOUSE_SERVICES").map_or(own, PathBuf::from)
}

fn program(name: &str) -> Command {
    let services = services();
    let libraries = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
        .map(|machine| services.join("usr/lib").join(machine).display().to_string());
    let mut command = Command::new(services.join("usr/bin").join(name));
    command.env("LD_LIBRARY_PATH", libraries.join(":"));
    command
}

/// Starts a server, and waits until it listens.
fn start(port: u16) -> Child {
    let mut command = program("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string()]);
    command.stdout(Stdio::null());
    let mut process = command.spawn().expect("it runs");
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert_eq!(process.try_wait().expect("it is ours"), None, "it has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    process
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.end();
    }
}
