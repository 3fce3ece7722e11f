//! The balancers of `deploy/`, with their own programs, in front of replicas on this machine.

use std::process::Stdio;

use tokio::process::{Child, Command};

use super::{
    PATIENCE, http_client, not_tested,
    redis::{free_port, libraries, services},
};

#[derive(Clone, Copy, Debug)]
pub enum BalancerKind {
    Nginx,
    Haproxy,
}

pub struct Balancer {
    port: u16,
    _directory: tempfile::TempDir,
    _process: Child,
}

impl Balancer {
    /// Starts the balancer with its file in `deploy/`, in front of three replicas, given as
    /// `HOST:PORT`; `None` on a machine that has no program for it.
    pub async fn start(kind: BalancerKind, replicas: &[String]) -> Option<Self> {
        let (name, text) = match kind {
            BalancerKind::Nginx => ("nginx", include_str!("../../../deploy/nginx.conf")),
            BalancerKind::Haproxy => ("haproxy", include_str!("../../../deploy/haproxy.cfg")),
        };
        let program = services().join("usr/sbin").join(name);
        if !program.exists() {
            not_tested("scripts/services has not been run");
            return None;
        }
        let directory = tempfile::tempdir().expect("the temporary directory is writable");
        let port = free_port();
        let mut text = text
            .replace("/tmp", &directory.path().display().to_string())
            .replace("listen 8080", &format!("listen 127.0.0.1:{port}"))
            .replace("bind :8080", &format!("bind 127.0.0.1:{port}"));
        for (at, replica) in replicas.iter().enumerate() {
            text = text.replace(&format!("dormouse-{}:8080", at + 1), replica);
        }
        let file = directory.path().join(name);
        std::fs::write(&file, text).expect("it is writable");
        let mut command = Command::new(program);
        match kind {
            // As one process of this user.
            BalancerKind::Nginx => {
                command.args(["-g", "daemon off; master_process off;", "-e", "stderr"]);
                command.arg("-p").arg(directory.path()).arg("-c").arg(&file)
            }
            BalancerKind::Haproxy => command.arg("-f").arg(&file),
        };
        command.env("LD_LIBRARY_PATH", libraries()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
        let process = command.spawn().expect("it runs");
        let balancer = Self { port, _directory: directory, _process: process };
        let checked = balancer.url("/healthz");
        let answers = async {
            while !http_client().get(&checked).send().await.is_ok_and(|it| it.status() == 200) {}
        };
        tokio::time::timeout(PATIENCE, answers).await.expect("it passes requests on");
        Some(balancer)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}
