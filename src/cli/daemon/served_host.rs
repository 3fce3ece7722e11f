//! One host within the daemon: a thread with a fleet, a log and an environment of its own, as if
//! its client served it.

use std::{io::Write as _, os::unix::net::UnixStream, sync::Arc, time::Duration};

use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use url::Url;

use super::{choice, daemon_state::DaemonState};
use crate::{
    auth::{Browser, has_screen},
    base::random_token,
    cli::{
        config_source::ConfigSource, failure, logging, options, runtime, served_fleet::ServedFleet,
        settings, shared_flags::Options,
    },
    config::{LaunchContext, ParsedConfig},
    control::{ChangeSender, ConfigChange},
    daemon::{
        ClientNotice, DaemonNotice, Greeting, Hello, Redial, Welcome, read_greeting, write_greeting,
    },
    downstream::{
        SideChannel,
        only_host::{self, EarlierSession, HostLink},
    },
    proxy::Fleet,
    upstream::Joining,
    wire::{HostStreams, Message, Notification, Raw},
};

/// Maximum time for a client to send its greeting.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of notices that wait for the client. Further lines of the log are dropped.
const MAX_WAITING_NOTICES: usize = 1024;

/// Greets a new client, and serves its host until the host ends.
pub(super) fn greet(stream: &UnixStream, state: &DaemonState) {
    let greeting = stream
        .set_read_timeout(Some(GREETING_TIMEOUT))
        .and_then(|()| stream.set_write_timeout(Some(GREETING_TIMEOUT)))
        .and_then(|()| read_greeting(stream));
    match greeting {
        Ok(Greeting::Hello(hello)) => {
            // Counted first, so that the daemon does not end in between.
            let _counted = state.count_host();
            if state.yields_to(&hello) {
                // A client that is gone needs no answer.
                let _ = write_greeting(stream, &Welcome::Ending);
            } else {
                serve(*hello, stream, state);
            }
        }
        Ok(Greeting::Join { hello, server }) => {
            let _counted = state.count_host();
            if state.ending().borrow().is_some() {
                let _ = write_greeting(stream, &Welcome::Ending);
            } else {
                serve_server(&hello, &server, stream, state);
            }
        }
        Ok(Greeting::Command(command)) => {
            if let Some(status) = state.obey(command) {
                let _ = write_greeting(stream, &Welcome::Status(status));
            }
        }
        // The text of the error might quote a part of the environment.
        Err(error) => tracing::debug!(kind = %error.kind(), "a client has sent no greeting"),
    }
}

/// Serves the host of a client until the host ends.
pub(super) fn serve(hello: Hello, stream: &UnixStream, state: &DaemonState) {
    let method = format!("dormouse/{}", random_token::<16>());
    let (notices, outgoing) = mpsc::channel(MAX_WAITING_NOTICES);
    let host = match ServedHost::prepare(&hello, &notices, state) {
        Ok(Some(host)) => host,
        Ok(None) => {
            let _ = write_greeting(stream, &Welcome::InProcess);
            return;
        }
        Err(error) => {
            let (message, exit_code) = (failure::report(&error), failure::exit_code(&error));
            let _ = write_greeting(stream, &Welcome::Refused { message, exit_code });
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

/// Gives a command the stream to a server that hosts share, until the command ends.
fn serve_server(hello: &Hello, server: &str, stream: &UnixStream, state: &DaemonState) {
    // The log of the command is its own.
    let (notices, _unread) = mpsc::channel(1);
    let prepared = ServedHost::prepare(hello, &notices, state).ok().flatten();
    let config = prepared.map(|prepared| prepared.parsed.config);
    let wanted = config.as_ref().and_then(|config| {
        let server = config.servers.iter().find(|known| known.name == server && known.enabled)?;
        Some((server, &config.settings, server.shared_identity()?))
    });
    let (Some((config, settings, identity)), Some(pool)) = (wanted, state.pool()) else {
        let _ = write_greeting(stream, &Welcome::InProcess);
        return;
    };
    let joining = Joining {
        config,
        lineage: settings.lineage.as_deref(),
        max_message_bytes: settings.limits.max_message_bytes,
    };
    let outcome = write_greeting(stream, &Welcome::Joined)
        .and_then(|()| stream.set_read_timeout(None))
        .and_then(|()| stream.set_write_timeout(None))
        .and_then(|()| pool.serve_process(identity, &joining, stream.try_clone()?, &state.stop));
    if let Err(error) = outcome {
        tracing::debug!(%error, "cannot serve a command");
    }
}

/// The notices from and to the client.
struct Channel {
    method: String,
    notices: mpsc::Sender<Raw>,
    outgoing: mpsc::Receiver<Raw>,
}

/// The config, the environment and the log of a host.
struct ServedHost {
    source: ConfigSource,
    parsed: ParsedConfig,
    browser: Browser,
    log: tracing::Dispatch,
}

impl ServedHost {
    /// Reads the config as the client would. Returns `None` if the client has to serve the host.
    fn prepare(
        hello: &Hello,
        notices: &mpsc::Sender<Raw>,
        state: &DaemonState,
    ) -> anyhow::Result<Option<Self>> {
        // The client's own parser reports what is wrong.
        let Ok(arguments) = options::parse(hello.arguments.clone()) else { return Ok(None) };
        let mut options = arguments.options;
        options.env_file = options.env_file.map(|path| hello.directory.join(path));
        let directory = &hello.directory;
        let variables = hello.variables.iter().cloned();
        let context = Arc::new(LaunchContext::new(Some(directory.clone()), variables));
        let log = log_of(&options, &context, hello.has_terminal, notices.clone())?;
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
        runtime.shutdown_timeout(Duration::from_millis(50));
        let (method, unsent) = served?;
        let Some(mut unsent) = unsent else { return Ok(()) };
        // The session is closed, so that the last lines of the log are written directly.
        kept.set_nonblocking(false)?;
        kept.set_write_timeout(Some(Duration::from_millis(500)))?;
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
        let auth = settings::auth_with(Some(&source.file), &source.options, browser);
        let served = ServedFleet::start(parsed, Some(source), auth, &state.services, &stop);
        let fleet = served.fleet().clone();
        let _told = [
            AbortOnDropHandle::new(tokio::spawn(tell_loads(fleet.clone(), notices.clone()))),
            AbortOnDropHandle::new(tokio::spawn(tell_ending(state.ending(), notices))),
        ];
        let leaving = CancellationToken::new();
        let changes = served.control().changes.clone();
        let (left, stopped) = (leaving.clone(), stop.clone());
        let incoming = Arc::new(move |notice: Raw| match notice.read() {
            Ok(ClientNotice::Leaving) => left.cancel(),
            Ok(ClientNotice::Stop) => stopped.cancel(),
            Ok(ClientNotice::Reload) => reload(&changes),
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
async fn tell_ending(mut ending: watch::Receiver<Option<Redial>>, notices: mpsc::Sender<Raw>) {
    if let Ok(redial) = ending.wait_for(Option::is_some).await.map(|redial| *redial)
        && let Some(redial) = redial
    {
        // A client that is gone needs no notice.
        let _ = notices.send(Raw::encode(&DaemonNotice::Ending(redial))).await;
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

/// Has the config read again.
fn reload(changes: &ChangeSender) {
    let changes = changes.clone();
    tokio::spawn(async move {
        // The log has the outcome.
        let _ = changes.make(ConfigChange::Reload).await;
    });
}
