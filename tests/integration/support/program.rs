//! A running dormouse.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt as _,
    process::{Child, ChildStderr},
};

use super::{
    Host, ModernHost, PATIENCE,
    daemon::{by_daemon, daemons_of, end_daemons},
    lines::Lines,
    redacted,
};

pub struct Program {
    pub(super) child: Child,
    log: Arc<Lines>,
    /// The standard error, kept open and unread.
    unread: Option<ChildStderr>,
    server_logs: HashMap<String, PathBuf>,
    /// True if the host may be served without a daemon although one is wanted.
    may_daemon_fail: bool,
    /// The directory of the config.
    home: PathBuf,
    directory: TempDir,
}

impl Program {
    pub(super) fn new(
        mut child: Child,
        directory: TempDir,
        home: PathBuf,
        server_logs: HashMap<String, PathBuf>,
        reads_log: bool,
    ) -> Self {
        let mut unread = child.stderr.take();
        let log = match unread.take_if(|_| reads_log) {
            Some(stderr) => Lines::follow(stderr),
            None => Arc::default(),
        };
        let may_daemon_fail = false;
        Self { child, log, unread, server_logs, may_daemon_fail, home, directory }
    }

    pub(super) fn expect_failing_daemon(&mut self) {
        self.may_daemon_fail = true;
    }

    /// Waits for the address of the service, and returns it with `path`, which begins with a slash.
    pub async fn url(&self, path: &str) -> String {
        let address = |line: &str| {
            let address = line.split_once("listening on ")?.1;
            Some(address.strip_suffix("/mcp")?.to_owned())
        };
        let address = self.log.find("the address", address).await;
        format!("{address}{path}")
    }

    /// Connects a host over streamable HTTP.
    pub async fn host(&self, path: &str) -> Host {
        Host::over_http(&self.url(path).await, &[])
    }

    /// Connects a host over HTTP that speaks 2026-07-28.
    pub async fn modern(&self, path: &str) -> ModernHost {
        self.host(path).await.into_modern()
    }

    /// Connects a host over HTTP+SSE.
    pub async fn sse_host(&self, path: &str) -> Host {
        Host::over_sse(&self.url(path).await).await
    }

    /// Takes the standard input, so that the test itself is the host.
    pub fn take_stdin(&mut self) -> tokio::process::ChildStdin {
        self.child.stdin.take().expect("a pipe that is taken once")
    }

    /// Takes the standard output, so that the test itself is the host.
    pub fn take_stdout(&mut self) -> tokio::process::ChildStdout {
        self.child.stdout.take().expect("a pipe that is taken once")
    }

    /// Returns the id of the process that the host has started.
    pub fn id(&self) -> u32 {
        self.child.id().expect("it has not been waited for")
    }

    /// Returns the id of the process that serves the host: the daemon, or the program itself.
    pub fn serving_id(&self) -> u32 {
        let daemon =
            by_daemon().then(|| daemons_of(&self.home)).and_then(|ids| ids.first().copied());
        daemon.unwrap_or_else(|| self.id())
    }

    /// Waits for a line of the log that contains `text`.
    pub async fn logged(&self, text: &str) {
        self.log.find(text, |line| line.contains(text).then_some(())).await;
    }

    /// Waits for a line of this level that contains `text`, and returns it without its time.
    pub async fn logged_at(&self, level: &str, text: &str) -> String {
        let found = |line: &str| {
            let (_, line) = line.split_once(&format!(" {level} "))?;
            line.contains(text).then(|| redacted(line))
        };
        self.log.find(&format!("{level} {text}"), found).await
    }

    /// Returns the lines of the log that report a reload of the config.
    pub fn reloads(&self) -> Vec<String> {
        let log = self.log.all();
        let is_reload = |line: &&String| line.contains(" INFO ") && line.contains(" removed=");
        log.iter().filter(is_reload).cloned().collect()
    }

    /// Returns the lines of level WARN, without their times.
    pub fn warnings(&self) -> Vec<String> {
        let log = self.log.all();
        log.iter().filter_map(|line| Some(redacted(line.split_once(" WARN ")?.1))).collect()
    }

    pub fn log(&self) -> Vec<String> {
        self.log.all()
    }

    /// Returns the lines that the fixture server has noted.
    pub fn server_log(&self, server: &str) -> Vec<String> {
        let text = std::fs::read_to_string(&self.server_logs[server]).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the ids of all processes of this server, also of ended ones.
    pub fn started(&self, server: &str) -> Vec<u32> {
        let log = self.server_log(server);
        log.iter().filter_map(|line| line.strip_prefix("start ")?.parse().ok()).collect()
    }

    /// Waits until the server has noted a line that begins with `start`.
    pub async fn server_noted(&self, server: &str, start: &str) {
        super::eventually(&format!("{server} notes {start}"), || {
            self.server_log(server).iter().any(|line| line.starts_with(start))
        })
        .await;
    }

    /// Reads the standard error that was left unread, until the program closes it.
    pub async fn read_log(&mut self) -> String {
        let mut unread = self.unread.take().expect("it was started without reading the log");
        let mut log = String::new();
        unread.read_to_string(&mut log).await.expect("UTF-8");
        log
    }

    pub async fn exit(&mut self) -> Option<i32> {
        let exited = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        exited.expect("dormouse ends").expect("it can be waited for").code()
    }

    pub fn signal(&self, signal: Signal) {
        let process = nix::unistd::Pid::from_raw(i32::try_from(self.id()).expect("a process id"));
        nix::sys::signal::kill(process, signal).expect("it runs");
    }
}

impl Drop for Program {
    /// Ends dormouse in order, so that no process of the test is left for the next one.
    fn drop(&mut self) {
        let Some(process) = self.child.id().and_then(|id| i32::try_from(id).ok()) else { return };
        // The process may have ended already. A stuck one is killed when the child is dropped.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), Signal::SIGTERM);
        for _ in 0..500 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if by_daemon() {
            end_daemons(self.directory.path());
            let is_alone = |line: &String| line.contains("serving the host without the daemon");
            let log = self.log.all();
            if !std::thread::panicking() && !self.may_daemon_fail {
                assert!(!log.iter().any(is_alone), "the daemon has failed: {log:?}");
            }
        }
    }
}
