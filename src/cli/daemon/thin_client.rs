//! The thin client: has the daemon serve the host that has started this process.

use std::{
    env,
    ffi::OsString,
    io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use super::{choice, daemon_state::DaemonState, invocation::Invocation, own_place, served_host};
use crate::{
    auth::open_here,
    base::own_program,
    cli::{config_source::ConfigSource, lineage, settings, shared_flags::Options},
    config::Settings,
    daemon::{
        Build, ClientWorld, Connection, DaemonPlace, Dialed, Hello, RedialAttempt, Redialed,
        Resumption, StartError, Welcome, dial, read_greeting, relay, start,
    },
};

/// The outcome of the attempt to have the daemon serve the host.
pub(in crate::cli) enum Attempt {
    /// The host has ended, or cannot be served.
    Done(ExitCode),
    /// This process has to serve the host, or has another task.
    NotForDaemon,
    /// This process has to serve the host, because the daemon cannot. The reason is for the log.
    NoDaemon(String),
}

/// Serves the host of this process by way of the daemon.
pub(in crate::cli) fn serve_by_daemon(arguments: &[OsString]) -> Attempt {
    let client = Invocation::read(arguments).and_then(|invocation| ThinClient::new(&invocation));
    let Some(client) = client else { return Attempt::NotForDaemon };
    match client.serve() {
        Ok(Some(code)) => Attempt::Done(code),
        Ok(None) => Attempt::NotForDaemon,
        Err(error) => Attempt::NoDaemon(format!("{error:#}")),
    }
}

/// Maximum time for which the process that has ended a daemon may take to start the next one.
const REPLACEMENT_TIMEOUT: Duration = Duration::from_secs(2);
/// Daemons that carry no message, one after the other, before this process serves the host itself.
const MAX_FAILURES: u32 = 5;

/// The client of the daemon of one config.
struct ThinClient {
    place: DaemonPlace,
    /// The absolute path of the config.
    config: PathBuf,
    /// The build of this process. An update may replace its file later.
    build: Build,
    program: PathBuf,
}

impl ThinClient {
    /// Returns the client for a command line. Returns `None` if the daemon is not wanted, and if
    /// there is any problem: the command reports it then.
    fn new(invocation: &Invocation) -> Option<Self> {
        let variable = |name: &str| env::var(name).ok();
        let options = Options { config: invocation.config.clone(), ..Options::default() };
        if !choice::may_be_for_daemon(variable) {
            return None;
        }
        let source = ConfigSource::of_process(&options).ok()?;
        lineage::check(&source.file).ok()?;
        // Most configs do not mention the keys that decide, and need not be parsed here.
        let settings = if choice::is_decided_by(&source.file.text()) {
            source.parse().ok()?.config.settings
        } else {
            Settings::default()
        };
        if !choice::is_for_daemon(&options, &settings, variable) {
            return None;
        }
        // A pipe has been read, so that the daemon could not read it.
        let config = std::path::absolute(&source.file.path).ok()?;
        if !config.metadata().is_ok_and(|file| file.is_file()) {
            return None;
        }
        Some(Self {
            place: own_place::place_of(&config)?,
            config,
            build: Build::of_process().ok()?,
            program: env::current_exe().ok()?,
        })
    }

    /// Serves the host until it ends. Returns `None` if this process has to serve it.
    ///
    /// # Errors
    /// If there can be no daemon.
    fn serve(&self) -> anyhow::Result<Option<ExitCode>> {
        let connection = match self.dial(&RedialAttempt::default())? {
            Dialed::Serving(connection) => connection,
            Dialed::InProcess => return Ok(None),
            Dialed::Refused { message, exit_code } => {
                errln!("{message}");
                return Ok(Some(ExitCode::from(exit_code)));
            }
        };
        let open_browser = |address: &str| {
            // The user can open the address from the answer of the call.
            let _ = open_here(address);
        };
        let ended = relay(connection, open_browser, |attempt| self.redial(&attempt));
        Ok(Some(match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                errln!("dormouse: {error:#}");
                ExitCode::FAILURE
            }
        }))
    }

    fn dial(&self, attempt: &RedialAttempt) -> anyhow::Result<Dialed> {
        // After an update, the path may lead to a newer build. If it leads nowhere, the system
        // still has the file of this process.
        let program = if self.program.exists() { self.program.clone() } else { own_program()? };
        let start = || start_daemon(&self.place, &program, &self.config);
        let patience = if attempt.is_replaced { REPLACEMENT_TIMEOUT } else { Duration::ZERO };
        Ok(dial(&self.place, self.hello(&attempt.resumption)?, patience, start)?)
    }

    /// Connects to the next daemon. If there can be none, this process serves the host itself.
    fn redial(&self, attempt: &RedialAttempt) -> anyhow::Result<Redialed> {
        if attempt.failures >= MAX_FAILURES {
            errln!("dormouse: continuing without the daemon: it ends whenever it is connected");
            return self.serve_here(&attempt.resumption);
        }
        match self.dial(attempt) {
            Ok(Dialed::Serving(connection)) => return Ok(Redialed::Connected(connection)),
            Ok(Dialed::Refused { message, .. }) => return Ok(Redialed::Refused(message)),
            Ok(Dialed::InProcess) => {}
            Err(error) => errln!("dormouse: continuing without the daemon: {error:#}"),
        }
        self.serve_here(&attempt.resumption)
    }

    /// Serves the host on a thread of this process.
    fn serve_here(&self, resumption: &Resumption) -> anyhow::Result<Redialed> {
        serve_here(self.hello(resumption)?)
    }

    fn hello(&self, resumption: &Resumption) -> anyhow::Result<Hello> {
        let Resumption { earlier_daemons, loads } = resumption.clone();
        Ok(Hello {
            world: own_world()?,
            build: self.build.clone(),
            can_start_build: Build::at(&self.program).is_ok_and(|present| present == self.build),
            earlier_daemons,
            loads,
        })
    }
}

/// Returns what a daemon has to know of this process.
pub(super) fn own_world() -> anyhow::Result<ClientWorld> {
    Ok(ClientWorld {
        arguments: env::args_os().collect(),
        directory: settings::working_directory()?,
        variables: env::vars_os().collect(),
        has_terminal: io::IsTerminal::is_terminal(&io::stderr()),
    })
}

fn serve_here(hello: Hello) -> anyhow::Result<Redialed> {
    let (near, far) = UnixStream::pair()?;
    thread::spawn(move || {
        let state = DaemonState::of_one_host();
        served_host::serve(hello, &far, &state);
        drop(far);
        state.services.watchdog.end();
    });
    match read_greeting(&near)? {
        Welcome::Serving { notices, max_line } => {
            let (writing, reading) = (near.try_clone()?, near);
            Ok(Redialed::Connected(Connection { reading, writing, notices, max_line }))
        }
        Welcome::Refused { message, .. } => Ok(Redialed::Refused(message)),
        Welcome::Ending | Welcome::Yields | Welcome::InProcess => {
            anyhow::bail!("the config no longer allows to serve this host")
        }
    }
}

/// Starts a daemon, which outlives this process.
pub(super) fn start_daemon(
    place: &DaemonPlace,
    program: &Path,
    config: &Path,
) -> Result<(), StartError> {
    let arguments = ["daemon", "run", "--config"].map(OsString::from);
    let arguments: Vec<OsString> = arguments.into_iter().chain([config.into()]).collect();
    start(place, program, &arguments, &own_place::variables_of_daemon())
}
