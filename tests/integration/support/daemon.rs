//! The daemons that serve the hosts of a test.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use serde_json::json;

use super::{Host, Proxy, Server, dormouse, eventually, text_of};

/// Returns whether the suite is run with the daemon: each host is served by one.
pub fn by_daemon() -> bool {
    std::env::var_os("TEST_BY_DAEMON").is_some_and(|value| value == "1")
}

/// Returns the daemons whose configs are in a directory.
pub fn daemons_of(directory: &Path) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("Linux has it").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let directory = directory.to_string_lossy();
    let is_daemon = |id: &u32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        let mut words = words.split('\0');
        words.nth(1) == Some("daemon") && words.any(|word| word.starts_with(&*directory))
    };
    ids.filter(is_daemon).collect()
}

/// Ends the daemons whose configs are in a directory, and waits until they have ended.
pub fn end_daemons(directory: &Path) {
    for id in daemons_of(directory) {
        let process = Pid::from_raw(i32::try_from(id).expect("a process id"));
        // The daemon may have ended by itself.
        let _ = kill(process, Signal::SIGTERM);
        for _ in 0..500 {
            if !super::is_alive(id) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Has the server "a" return a text.
pub async fn echo(host: &mut Host, text: &str) -> String {
    text_of(&host.use_tool("a/echo", json!({"text": text})).await).to_owned()
}

/// A home whose hosts are served by a daemon.
pub struct DaemonHome(tempfile::TempDir);

impl DaemonHome {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("the temporary directory is writable"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn proxy(&self, servers: impl IntoIterator<Item = Server>) -> Proxy {
        let proxy = Proxy::with(servers).at_home(self.path());
        proxy.environment("DORMOUSE_DAEMON", "1").set("daemonIdleTimeout", "1s")
    }

    pub fn daemons(&self) -> Vec<u32> {
        daemons_of(self.path())
    }

    pub fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path().join("dormouse/daemon")).into_iter().flatten();
        entries.flatten().map(|entry| entry.path()).collect()
    }

    pub fn socket(&self) -> PathBuf {
        let is_socket = |path: &PathBuf| path.extension().is_some_and(|it| it == "sock");
        self.files().into_iter().find(is_socket).expect("a daemon runs")
    }

    /// Kills the daemon, and waits until clients have started another one.
    pub async fn kill_daemon(&self) {
        let before = self.daemons();
        let process = Pid::from_raw(i32::try_from(before[0]).expect("a process id"));
        kill(process, Signal::SIGKILL).expect("it runs");
        let is_other = || self.daemons().iter().any(|id| !before.contains(id));
        eventually("there is another daemon", is_other).await;
    }

    /// Runs `dormouse daemon` for the config that the hosts use.
    pub async fn command(&self, arguments: &[&str]) -> (Option<i32>, String) {
        self.run(&[&["daemon"], arguments].concat()).await
    }

    /// Runs a command of dormouse for the config that the hosts use, and returns its exit code and
    /// its output.
    pub async fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.prepare(arguments).output().await.expect("dormouse runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).expect("UTF-8"))
    }

    /// Returns the text of the config.
    pub fn config(&self) -> String {
        fs::read_to_string(self.path().join("dormouse.json")).expect("it was written")
    }

    /// Returns the command that [`Self::run`] runs.
    pub fn prepare(&self, arguments: &[&str]) -> tokio::process::Command {
        let mut command = dormouse();
        command.args(arguments).arg("--config").arg(self.path().join("dormouse.json"));
        command.env("XDG_CACHE_HOME", self.path().join("cache"));
        command.env("XDG_RUNTIME_DIR", self.path());
        command.env("XDG_DATA_HOME", self.path().join("data"));
        command.stdin(Stdio::null());
        command
    }

    pub async fn wait_until_nothing_is_left(&self) {
        eventually("the daemon ends", || self.daemons().is_empty()).await;
        eventually("its files are removed", || self.files().is_empty()).await;
    }
}

impl Drop for DaemonHome {
    fn drop(&mut self) {
        end_daemons(self.path());
    }
}
