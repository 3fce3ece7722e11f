//! A Redis server, of the programs that `scripts/services` unpacks.

use std::{
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// A server that keeps its values in memory, and ends when it is dropped.
pub(super) struct RedisServer {
    process: Child,
    port: u16,
}

impl RedisServer {
    /// Starts a server; `None` on a machine without the program.
    pub(super) fn start() -> Option<Self> {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/services");
        let services = std::env::var_os("DORMOUSE_SERVICES").map_or(own, PathBuf::from);
        let program = services.join("usr/bin/redis-server");
        if !program.exists() {
            eprintln!("not tested: scripts/services has not been run");
            return None;
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it listens").port();
        drop(listener);
        let libraries = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
            .map(|machine| services.join("usr/lib").join(machine).display().to_string());
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string()]);
        command.env("LD_LIBRARY_PATH", libraries.join(":")).stdout(Stdio::null());
        let process = command.spawn().expect("it runs");
        let server = Self { process, port };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(server)
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
