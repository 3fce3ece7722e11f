//! One host within the daemon: a thread with a fleet, a log and an environment of its own, as if
//! its client served it.

use std::{io::Write as _, os::unix::net::UnixStream, sync::Arc, time::Duration};

use tokio::sync::{Notify, broadcast, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use url::Url;

use super::{choice, daemon_state::DaemonState};
use crate::{
    auth::{Browser, has_screen},
    base::{is_exhaustion, random_token},
    cli::{
        config_source::ConfigSource,
        failure, logging, options, runtime,
        served_fleet::{KeptState, ServedFleet},
        shared_flags::Options,
        state_stores::StateStores,
    },
    config::{Config, LaunchContext, ParsedConfig},
    control::{ChangeSender, ConfigChange},
    daemon::{ClientNotice, ClientWorld, DaemonNotice, EndReason, Hello, Welcome, write_greeting},
    downstream::{
        SideChannel,
        only_host::{self, EarlierSession, HostLink},
    },
    proxy::Fleet,
    wire::{HostStreams, Message, Notification, Raw},
};

/// Maximum time for blocking work of a host whose session has ended.
const RUNTIME_STOP_TIMEOUT: Duration = Duration::from_millis(50);
/// Maximum time for a client to read the last lines of the log.
const LAST_LINES_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum number of notices that wait for the client. Further lines of the log are dropped.
const MAX_WAITING_NOTICES: usize = 1024;

/// Serves the host of a client until the host ends.
pub(super) fn serve(hello: Hello, stream: &UnixStream, state: &DaemonState) {
    let method = format!("dormouse/{}", random_token::<16>());
    let (notices, outgoing) = mpsc::channel(MAX_WAITING_NOTICES);
    let prepared = match ServedHost::prepare(&hello.world, &notices, state) {
        // A client whose config cannot be served ends no daemon.
        Ok(Some(host)) => state.farewell(&hello).map_or(Ok(host), Err),
        Ok(None) => Err(Welcome::InProcess),
        Err(error) => Err(refusal(&error, state)),
    };
    let host = match prepared {
        Ok(host) => host,
        Err(answer) => {
            // A client that is gone needs no answer.
            let _ = write_greeting(stream, &answer);
            return;
        }
    };
    let max_line = host.parsed.config.settings.limits.max_message_bytes;
    let welcome = Welcome::Serving { notices: method.clone(), max_line };
    if write_greeting(stream, &welcome).is_err() {
        return;
    }
    let log = host.log.clone();
    let channel = Channel { method, notices, outgoing };
    let earlier = EarlierSession {
        // The ids of each daemon are in a range of their own.
        last_id: u64::from(hello.earlier_daemons) << 32,
        loads: hello.loads,
    };
    tracing::dispatcher::with_default(&log, || {
        if let Err(error) = host.run(stream, channel, earlier, state) {
            tracing::error!(error = %format!("{error:#}"), "cannot serve the host");
        }
    });
}

/// Returns the answer to a client whose host cannot be served. A process of its own may have what
/// this one lacks.
fn refusal(error: &anyhow::Error, state: &DaemonState) -> Welcome {
    let is_lack =
        |cause: &(dyn std::error::Error + 'static)| cause.downcast_ref().is_some_and(is_exhaustion);
    if state.is_shared() && error.chain().any(is_lack) {
        return Welcome::InProcess;
    }
    Welcome::Refused { message: failure::report(error), exit_code: failure::exit_code(error) }
}

/// The notices from and to the client.
struct Channel {
    method: String,
    notices: mpsc::Sender<Raw>,
    outgoing: mpsc::Receiver<Raw>,
}

/// The config, the environment and the log of a host.
pub(super) struct ServedHost {
    source: ConfigSource,
    parsed: ParsedConfig,
    browser: Browser,
    log: tracing::Dispatch,
}

impl ServedHost {
    /// Reads the config as the client would. Returns `None` if the client has to serve the host.
    pub(super) fn prepare(
        world: &ClientWorld,
        notices: &mpsc::Sender<Raw>,
        state: &DaemonState,
    ) -> anyhow::Result<Option<Self>> {
        let directory = &world.directory;
        let variables = world.variables.iter().cloned();
        let context = Arc::new(LaunchContext::new(Some(directory.clone()), variables));
        // The client's own parser reports what is wrong.
        let variable = |name: &str| context.get_os(name).map(ToOwned::to_owned);
        let Ok(arguments) = options::parse(world.arguments.clone(), variable) else {
            return Ok(None);
        };
        let mut options = arguments.options;
        options.env_file = options.env_file.map(|path| directory.join(path));
        let log = log_of(&options, &context, world.has_terminal, notices.clone())?;
        tracing::dispatcher::with_default(&log.clone(), || {
            let source = ConfigSource::of_client(options, directory, context.clone())?;
            let parsed = source.parse()?;
            let variable = |name: &str| context.get(name).map(str::to_owned);
            let is_for_daemon =
                choice::is_for_daemon(&source.options, &parsed.config.settings, variable);
            if !is_for_daemon && state.is_shared() {
                return Ok(None);
            }
            let browser = browser_of(&context, notices.clone());
            Ok(Some(Self { source, parsed, browser, log }))
        })
    }

    /// Returns the config, for a command that has no host.
    pub(super) fn into_config(self) -> Config {
        self.parsed.config
    }

    /// Serves the host until it ends, and then ends its servers.
    fn run(
        self,
        stream: &UnixStream,
        channel: Channel,
        earlier: EarlierSession,
        state: &DaemonState,
    ) -> anyhow::Result<()> {
        let log = self.log.clone();
        let runtime = runtime::runtime_with_log(&log)?;
        // The servers have ended when the client sees the end of the stream.
        let kept = stream.try_clone()?;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
        let streams = {
            let _runtime = runtime.enter();
            HostStreams::of_socket(stream.try_clone()?)?
        };
        let served = runtime.block_on(self.serve(streams, channel, earlier, state));
        runtime.shutdown_timeout(RUNTIME_STOP_TIMEOUT);
        let (method, unsent) = served?;
        let Some(mut unsent) = unsent else { return Ok(()) };
        // The servers have ended after the session, which had the writer of the stream until then.
        kept.set_nonblocking(false)?;
        kept.set_write_timeout(Some(LAST_LINES_TIMEOUT))?;
        while let Ok(notice) = unsent.try_recv() {
            let notice = Notification { method: method.clone(), params: Some(notice) };
            (&kept).write_all(&Message::Notification(notice).to_line())?;
        }
        Ok(())
    }

    async fn serve(
        self,
        streams: HostStreams,
        channel: Channel,
        earlier: EarlierSession,
        state: &DaemonState,
    ) -> anyhow::Result<(String, Option<mpsc::Receiver<Raw>>)> {
        let Self { source, parsed, browser, .. } = self;
        let Channel { method, notices, outgoing } = channel;
        if let Some(dialect) = source.file.dialect() {
            tracing::info!("reading the config as one of {}", dialect.name());
        }
        for warning in &parsed.warnings {
            tracing::warn!("{warning}");
        }
        let limit = parsed.config.settings.limits.max_message_bytes;
        let stop = state.stop.child_token();
        let stores = StateStores::of(&parsed.config.settings)?;
        let kept = KeptState {
            storage: stores.storage(Some(&source.file)),
            auth: stores.auth_with(Some(&source.file), &source.options, browser),
            shared: stores.shared().cloned(),
        };
        let served = ServedFleet::start(parsed, Some(source), kept, &state.services, &stop);
        let fleet = served.fleet().clone();
        let reload_wanted = Arc::new(Notify::new());
        let changes = served.control().changes.clone();
        let _companions = [
            AbortOnDropHandle::new(tokio::spawn(tell_loads(fleet.clone(), notices.clone()))),
            AbortOnDropHandle::new(tokio::spawn(tell_ending(state.ending(), notices))),
            AbortOnDropHandle::new(tokio::spawn(reload_when_wanted(
                changes,
                reload_wanted.clone(),
            ))),
        ];
        let leaving = CancellationToken::new();
        let (left, stopped) = (leaving.clone(), stop.clone());
        let incoming = Arc::new(move |notice: Raw| match notice.read() {
            Ok(ClientNotice::Leaving) => left.cancel(),
            Ok(ClientNotice::Stop) => stopped.cancel(),
            Ok(ClientNotice::Reload) => reload_wanted.notify_one(),
            Ok(ClientNotice::Skipped { size }) => {
                tracing::warn!(size, limit, "skipped a message that exceeds maxMessageBytes");
            }
            // A newer client may have notices that this daemon does not know.
            Err(_) => {}
        });
        let side_channel = Some(SideChannel { method: method.clone(), outgoing, incoming });
        let link = HostLink { streams, earlier, side_channel, leaving };
        let unsent = only_host::serve(fleet, link, stop).await;
        served.stop().await;
        Ok((method, unsent?))
    }
}

/// Tells the client which offers its host has loaded, whenever that changes.
async fn tell_loads(fleet: Arc<Fleet>, notices: mpsc::Sender<Raw>) {
    let mut events = fleet.operator().events();
    let mut told = Vec::new();
    // A receiver that has missed events looks again, as after an event.
    while !matches!(events.recv().await, Err(broadcast::error::RecvError::Closed)) {
        let loaded = fleet.operator().loaded();
        if loaded != told {
            told.clone_from(&loaded);
            // A session that has ended needs no notice.
            let _ = notices.send(Raw::encode(&DaemonNotice::Loads(loaded))).await;
        }
    }
}

/// Tells the client that the daemon ends.
async fn tell_ending(mut ending: watch::Receiver<Option<EndReason>>, notices: mpsc::Sender<Raw>) {
    if let Ok(reason) = ending.wait_for(Option::is_some).await.map(|reason| *reason)
        && let Some(reason) = reason
    {
        // A client that is gone needs no notice.
        let _ = notices.send(Raw::encode(&DaemonNotice::Ending(reason.redial()))).await;
    }
}

/// Has the config read again whenever the client wants it.
async fn reload_when_wanted(changes: ChangeSender, wanted: Arc<Notify>) {
    loop {
        wanted.notified().await;
        // The log has the outcome.
        let _ = changes.make(ConfigChange::Reload).await;
    }
}

/// Returns the browser of the user of a host, which the client opens.
fn browser_of(context: &LaunchContext, notices: mpsc::Sender<Raw>) -> Browser {
    let can_open = has_screen(|name| context.get(name).is_some_and(|value| !value.is_empty()));
    let open = move |address: &Url| {
        // A client that does not read cannot open it; the user has the address from the host.
        let _ = notices.try_send(Raw::encode(&DaemonNotice::OpenBrowser(address.to_string())));
    };
    Browser::There { can_open, open: Arc::new(open) }
}

/// Returns the log of a host, whose lines the client writes to its standard error.
fn log_of(
    options: &Options,
    context: &LaunchContext,
    has_terminal: bool,
    notices: mpsc::Sender<Raw>,
) -> anyhow::Result<tracing::Dispatch> {
    let write = move |lines: &str| {
        // Lines that the client does not read are dropped.
        let _ = notices.try_send(Raw::encode(&DaemonNotice::Log(lines.to_owned())));
    };
    let level = context.get(logging::LEVEL_VARIABLE).map(str::to_owned);
    logging::to_function(options, level, has_terminal, write)
}
