//! A service of one and of three replicas, with and without a store, behind nginx.

use std::{
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::json;

use crate::{
    contender::{config_with, dormouse, server},
    http::{HttpClient, Service},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaContender {
    One,
    OneWithStore,
    OneBehindNginx,
    ThreeBehindNginx,
    /// The store has been ended.
    ThreeWithoutTheirStore,
}

impl ReplicaContender {
    pub const ALL: [Self; 5] = [
        Self::One,
        Self::OneWithStore,
        Self::OneBehindNginx,
        Self::ThreeBehindNginx,
        Self::ThreeWithoutTheirStore,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::One => "one replica",
            Self::OneWithStore => "one replica with a store",
            Self::OneBehindNginx => "one replica with a store behind nginx",
            Self::ThreeBehindNginx => "three replicas behind nginx",
            Self::ThreeWithoutTheirStore => "three replicas whose store has ended",
        }
    }

    /// Starts the contender, and returns a modern client.
    pub fn connect(self) -> HttpClient {
        let mut parts = Parts::default();
        let store = (self != Self::One).then(|| parts.start_store());
        let replicas = match self {
            Self::One | Self::OneWithStore | Self::OneBehindNginx => 1,
            Self::ThreeBehindNginx | Self::ThreeWithoutTheirStore => 3,
        };
        let settings = store.map_or(json!({}), |port| {
            json!({
                "store": format!("redis://127.0.0.1:{port}/0"),
                "storeKeys": ["a key of at least thirty-two bytes"],
            })
        });
        let command = dormouse(&config_with(&settings, &[server(1, 2, 0)]));
        let http = ["--http", "127.0.0.1:0", "--surface", "direct", "--eager"].map(str::to_owned);
        let command = [command, http.to_vec()].concat();
        let services: Vec<Service> = (0..replicas).map(|_| Service::start(&command)).collect();
        let url = match self {
            Self::One | Self::OneWithStore => services[0].url.clone(),
            _ => parts.start_nginx(&services),
        };
        let mut client = HttpClient::modern(&url, services);
        if self == Self::ThreeWithoutTheirStore {
            parts.end_store();
        }
        client.keep(parts);
        client
    }
}

/// The programs around dormouse, which are ended on drop.
#[derive(Default)]
pub struct Parts {
    store: Option<Child>,
    nginx: Option<Child>,
    directories: Vec<tempfile::TempDir>,
}

impl Parts {
    fn directory(&mut self) -> PathBuf {
        let directory = tempfile::tempdir().expect("it is writable");
        let path = directory.path().to_owned();
        self.directories.push(directory);
        path
    }

    fn start_store(&mut self) -> u16 {
        let (port, data) = (free_port(), self.directory());
        let mut command = program("bin/redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string()]);
        self.store = Some(start(command.arg("--dir").arg(data), port));
        port
    }

    fn end_store(&mut self) {
        end(&mut self.store);
    }

    fn start_nginx(&mut self, services: &[Service]) -> String {
        let (port, directory) = (free_port(), self.directory());
        let mut text = include_str!("../../deploy/nginx.conf")
            .replace("/tmp", &directory.display().to_string())
            .replace("listen 8080", &format!("listen 127.0.0.1:{port}"))
            .replace("access_log off;", "access_log off; keepalive_requests 1000000;");
        for number in 1..=3 {
            let line = format!("        server dormouse-{number}:8080 max_fails=0;\n");
            let address = services.get(number - 1).map(|service| {
                let address = service.url.trim_start_matches("http://").trim_end_matches("/mcp");
                format!("        server {address} max_fails=0;\n")
            });
            text = text.replace(&line, &address.unwrap_or_default());
        }
        let file = directory.join("nginx.conf");
        std::fs::write(&file, text).expect("it is writable");
        let mut command = program("sbin/nginx");
        command.args(["-g", "daemon off; master_process off;", "-e", "stderr"]);
        command.arg("-p").arg(directory).arg("-c").arg(file);
        self.nginx = Some(start(&mut command, port));
        format!("http://127.0.0.1:{port}/mcp")
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        end(&mut self.nginx);
        end(&mut self.store);
    }
}

/// Returns a program that `scripts/services` unpacks.
fn program(path: &str) -> Command {
    let services = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/services/usr");
    let mut command = Command::new(services.join(path));
    command.env("LD_LIBRARY_PATH", services.join("lib/x86_64-linux-gnu"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it listens").port()
}

/// Starts a program, and waits until it listens.
fn start(command: &mut Command, port: u16) -> Child {
    let child = command.spawn().expect("scripts/services has been run");
    while TcpStream::connect(("127.0.0.1", port)).is_err() {}
    child
}

fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }
}
