//! A server's process: started in its own process group, and ended with everything that it started.

use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::{
    process::{ChildStdin, ChildStdout, Command},
    sync::watch,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

#[cfg(unix)]
use super::process_group::{group_exists, signal_group};
use super::{
    AttemptError, Watchdog,
    carrier::{Carrier, CarrierFuture, ShutdownPolicy},
    stderr::{StderrOutput, StderrReader},
    strays::{self, MARK_VARIABLE},
};
use crate::{base::run_blocking, config::Launch, peer::Peer, wire::standard_streams};

/// The environment variable in which a dormouse finds the configs that its ancestors serve.
pub(crate) const LINEAGE_VARIABLE: &str = "DORMOUSE_LINEAGE";

pub(super) struct ServerProcess {
    /// The process group, which is the leader's id; `None` once it has been killed.
    group: Option<u32>,
    /// Set when the leader has exited.
    exit: watch::Receiver<Option<ExitStatus>>,
    /// Cancelled to have the task that owns the child kill the rest of the group.
    kill: CancellationToken,
    watchdog: Watchdog,
    /// The mark of the server's processes, by which those that have left the group are found.
    mark: String,
    stderr: StderrReader,
}

/// The streams for MCP messages.
pub(super) struct StdioPipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
}

impl ServerProcess {
    pub(super) fn spawn(
        server: &str,
        launch: &Launch,
        output: StderrOutput,
        lineage: Option<&str>,
        watchdog: &Watchdog,
        tasks: &TaskTracker,
    ) -> Result<(Self, StdioPipes), AttemptError> {
        let own_mark = watchdog.prepare();
        let mut command = build_command(launch, lineage);
        command.env(MARK_VARIABLE, &own_mark);
        let mut command = CommandWrap::from(command);
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        command.wrap(KillOnDrop);
        let mut child = command.spawn().map_err(|source| spawn_error(launch, source))?;
        let group = child.id();
        if let Some(group) = group {
            watchdog.guard(group);
        }
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin().take(), child.stdout().take(), child.stderr().take())
        else {
            unreachable!("all three streams were asked to be pipes");
        };
        standard_streams::widen_pipe(&stdin);
        standard_streams::widen_pipe(&stdout);
        let (exited, exit) = watch::channel(None);
        let kill = CancellationToken::new();
        tasks.spawn(own_child(child, exited, kill.clone()));
        let stderr = StderrReader::listen(server.to_owned(), stderr, output);
        let process =
            Self { group, exit, kill, watchdog: watchdog.clone(), mark: own_mark, stderr };
        Ok((process, StdioPipes { stdin, stdout }))
    }

    /// Resolves when the leader has exited, or the process has no owner any more.
    pub(super) fn exited(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut exit = self.exit.clone();
        async move {
            // An error means that the owner is gone, and the process with it.
            let _ = exit.wait_for(Option::is_some).await;
        }
    }

    /// Ends the process and all that it started. Its input must have been closed before.
    async fn end_group(mut self, policy: ShutdownPolicy) {
        let exited = timeout(policy.end_of_input, self.exited()).await.is_ok();
        let alive = self.signal_term();
        if alive && !exited {
            // The group is killed below in any case; this only lets the leader end by itself.
            let _ = timeout(policy.terminate, self.exited()).await;
        } else if alive {
            // A leader that ended by itself has left other processes, which get as much time.
            self.group_gone(policy.terminate).await;
        }
        self.kill();
        let _ = timeout(Duration::from_secs(5), self.exited()).await;
        if !policy.ends_strays {
            return;
        }
        let mark = std::mem::take(&mut self.mark);
        // Ends processes outside the group. If this has no outcome, dormouse is ending, and the
        // watchdog does it.
        let _ = run_blocking(move || strays::end(&mark, policy.terminate)).await;
    }

    #[cfg(unix)]
    fn signal_term(&self) -> bool {
        self.group.is_some_and(|group| signal_group(group, nix::sys::signal::Signal::SIGTERM))
    }

    #[cfg(not(unix))]
    fn signal_term(&self) -> bool {
        true
    }

    #[cfg(unix)]
    async fn group_gone(&self, patience: Duration) {
        let gone = async {
            while self.group.is_some_and(group_exists) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = timeout(patience, gone).await;
    }

    #[cfg(not(unix))]
    async fn group_gone(&self, _: Duration) {}

    /// Kills the group, or the job, at once.
    fn kill(&mut self) {
        let Some(group) = self.group.take() else { return };
        #[cfg(unix)]
        signal_group(group, nix::sys::signal::Signal::SIGKILL);
        self.kill.cancel();
        self.watchdog.release(group);
    }
}

impl Carrier for ServerProcess {
    fn end(self: Box<Self>, peer: Peer, policy: ShutdownPolicy) -> CarrierFuture<'static, ()> {
        Box::pin(async move {
            peer.close();
            self.end_group(policy).await;
        })
    }

    fn describe_exit(&self) -> CarrierFuture<'_, String> {
        Box::pin(async {
            let _ = timeout(Duration::from_millis(200), self.exited()).await;
            match *self.exit.borrow() {
                Some(status) => format!(" with {status}"),
                None => String::new(),
            }
        })
    }

    fn stderr_quote(&self) -> String {
        self.stderr.quote()
    }

    fn must_end_before_next(&self) -> bool {
        true
    }

    fn process_group(&self) -> Option<u32> {
        self.group
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Owns the child until it has been killed: the leader may exit long before the processes that it
/// started.
async fn own_child(
    mut child: Box<dyn ChildWrapper>,
    exited: watch::Sender<Option<ExitStatus>>,
    kill: CancellationToken,
) {
    tokio::select! {
        status = child.wait() => {
            exited.send_replace(status.ok());
            kill.cancelled().await;
            // An error means that nothing is left to kill.
            let _ = child.start_kill();
        }
        () = kill.cancelled() => {
            let _ = child.start_kill();
            exited.send_replace(child.wait().await.ok());
        }
    }
}

fn build_command(launch: &Launch, lineage: Option<&str>) -> Command {
    let mut command = Command::new(resolve_program(&launch.command));
    command.args(&launch.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Clearing makes the standard library fork, where it spawns otherwise.
    if !launch.inherits_from_this_process() {
        command.env_clear().envs(launch.inherited_variables());
    }
    command.envs(&launch.env);
    if let Some(lineage) = lineage {
        command.env(LINEAGE_VARIABLE, lineage);
    }
    if let Some(directory) = launch.changed_directory() {
        command.current_dir(directory);
    }
    command
}

/// Resolves the program, since on Windows a bare `npx` is a script that is found only through
/// `PATHEXT`.
#[cfg(windows)]
fn resolve_program(command: &str) -> std::path::PathBuf {
    which::which(command).unwrap_or_else(|_| command.into())
}

#[cfg(not(windows))]
fn resolve_program(command: &str) -> &str {
    command
}

fn spawn_error(launch: &Launch, source: io::Error) -> AttemptError {
    let command = launch.command.clone();
    match (source.kind(), launch.changed_directory()) {
        (io::ErrorKind::NotFound, Some(cwd)) if !cwd.is_dir() => AttemptError::Spawn {
            command,
            source: io::Error::other(format!("the directory {} does not exist", cwd.display())),
        },
        (io::ErrorKind::NotFound, _) => AttemptError::CommandNotFound { command },
        _ => AttemptError::Spawn { command, source },
    }
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsString,
        path::{Path, PathBuf},
        sync::Arc,
    };

    use super::*;
    use crate::config::LaunchContext;

    fn launch() -> Launch {
        let variables = [("PATH", "/there/bin"), ("SECRET", "s"), ("LC_ALL", "C")];
        let variables = variables.map(|(name, value)| (OsString::from(name), value.into()));
        let context = LaunchContext::new(Some(PathBuf::from("/there")), variables);
        Launch::new("server", Arc::new(context))
    }

    fn variables_of(command: &Command) -> Vec<(&str, &str)> {
        let set = command.as_std().get_envs();
        set.filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?))).collect()
    }

    #[test]
    fn server_starts_in_the_context_of_its_host() {
        let command = build_command(&launch(), None);
        assert_eq!(command.as_std().get_current_dir(), Some(Path::new("/there")));
        assert_eq!(variables_of(&command), [("LC_ALL", "C"), ("PATH", "/there/bin")]);
    }

    #[test]
    fn entry_precedes_the_context_of_the_host() {
        let env = [("PATH".to_owned(), "/own".to_owned())].into();
        let cwd = Some(PathBuf::from("/elsewhere"));
        let command = build_command(&Launch { env, cwd, inherit_env: true, ..launch() }, None);
        assert_eq!(command.as_std().get_current_dir(), Some(Path::new("/elsewhere")));
        let expected = [("LC_ALL", "C"), ("PATH", "/own"), ("SECRET", "s")];
        assert_eq!(variables_of(&command), expected);
    }
}
