//! The first message of a client of the daemon, and what the client gets for it.

use std::{os::unix::net::UnixStream, time::Duration};

use tokio::sync::mpsc;

use super::{
    daemon_state::{Connected, DaemonState},
    served_host::{self, ServedHost},
};
use crate::{
    daemon::{
        ClientGreeting, ClientWorld, CommandAnswer, DaemonCommand, JoinAnswer, read_greeting,
        write_greeting,
    },
    upstream::Joining,
};

/// Maximum time for a client to send its greeting.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// Greets a new client, and serves its host or its command until it ends.
pub(super) fn greet(stream: UnixStream, state: &DaemonState) {
    let greeting = stream
        .set_read_timeout(Some(GREETING_TIMEOUT))
        .and_then(|()| stream.set_write_timeout(Some(GREETING_TIMEOUT)))
        .and_then(|()| read_greeting(&stream));
    match greeting {
        Ok(ClientGreeting::Hello(hello)) => {
            // Counted first, so that the daemon does not end in between.
            let _counted = state.count(Connected::Host);
            served_host::serve(*hello, &stream, state);
        }
        Ok(ClientGreeting::Join { world, server }) => {
            let _counted = state.count(Connected::Command);
            serve_server(&world, &server, &stream, state);
        }
        Ok(ClientGreeting::Command(command)) => answer_command(command, stream, state),
        // The text of the error might quote a part of the environment.
        Err(error) => tracing::debug!(kind = %error.kind(), "a client has sent no greeting"),
    }
}

fn answer_command(command: DaemonCommand, stream: UnixStream, state: &DaemonState) {
    let answer = state.obey(command).map_or(CommandAnswer::Ending, CommandAnswer::Done);
    let is_end = matches!((command, &answer), (DaemonCommand::End(_), CommandAnswer::Done(_)));
    // A command that is gone needs no answer.
    if write_greeting(&stream, &answer).is_ok() && is_end {
        state.keep_until_end(stream);
    }
}

/// Gives a command the stream to a server that hosts share, until the command ends.
fn serve_server(world: &ClientWorld, server: &str, stream: &UnixStream, state: &DaemonState) {
    // The log of the command is its own.
    let (notices, _unread) = mpsc::channel(1);
    let prepared = ServedHost::prepare(world, &notices, state).ok().flatten();
    let config = prepared.map(ServedHost::into_config);
    let wanted = config.as_ref().filter(|_| !state.is_ending()).and_then(|config| {
        let server = config.servers.iter().find(|known| known.name == server && known.enabled)?;
        Some((server, &config.settings, server.shared_identity()?))
    });
    let (Some((config, settings, identity)), Some(pool)) = (wanted, state.pool()) else {
        let _ = write_greeting(stream, &JoinAnswer::NotShared);
        return;
    };
    let joining = Joining {
        config,
        lineage: settings.launch.lineage.as_deref(),
        max_message_bytes: settings.limits.max_message_bytes,
    };
    let outcome = write_greeting(stream, &JoinAnswer::Joined)
        .and_then(|()| stream.set_read_timeout(None))
        .and_then(|()| stream.set_write_timeout(None))
        .and_then(|()| pool.serve_process(identity, &joining, stream.try_clone()?, &state.stop));
    if let Err(error) = outcome {
        tracing::debug!(%error, "cannot serve a command");
    }
}
