//! The first messages between a thin client and the daemon: one from each side, before the messages
//! of the host.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::PathBuf,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Build, EndReason, os_text};

/// Maximum size of one of these messages, in bytes. The environment of a process may have several
/// hundred kilobytes.
const MAX_BYTES: u32 = 16 * 1024 * 1024;

/// The first message of a connection to the daemon.
#[derive(Deserialize, Serialize)]
pub(crate) enum ClientGreeting {
    /// A client wants its host to be served. The answer is a [`Welcome`].
    Hello(Box<Hello>),
    /// A command wants a stream to a server that hosts share. The answer is a [`JoinAnswer`].
    Join { world: Box<ClientWorld>, server: String },
    /// The answer is a [`CommandAnswer`].
    Command(DaemonCommand),
}

/// A request of a command to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum DaemonCommand {
    Status,
    /// Ends the daemon. The connection stays open until the daemon has ended.
    End(EndReason),
}

/// The state of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct DaemonStatus {
    pub pid: u32,
    pub build: Build,
    #[serde(with = "os_text::path")]
    pub config: PathBuf,
    /// The time since its start, in seconds.
    pub uptime_seconds: u64,
    /// The number of hosts that it serves.
    pub hosts: usize,
    /// The servers that hosts share now.
    pub shared: Vec<SharedProcess>,
}

/// The process of a server that several hosts can use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct SharedProcess {
    /// The name of the server.
    pub server: String,
    /// The number of hosts, and of commands like `dormouse call`, that use it.
    pub users: usize,
    /// Bytes of its memory, if the system tells.
    #[serde(default)]
    pub memory: Option<u64>,
}

/// A client that wants its host to be served.
#[derive(Deserialize, Serialize)]
pub(crate) struct Hello {
    pub world: ClientWorld,
    pub build: Build,
    /// True if the client's program is still where it was, so that it can start a daemon of its
    /// build.
    pub can_start_build: bool,
    /// The number of daemons that have served the host before.
    pub earlier_daemons: u32,
    /// The names of the offers that the host has loaded at an earlier daemon.
    pub loads: Vec<String>,
}

/// Everything outside the config's text that decides how the servers of a client run, and how its
/// log looks.
///
/// The environment may contain secrets: it is neither stored nor logged, and there is no `Debug`.
#[derive(Deserialize, Serialize)]
pub(crate) struct ClientWorld {
    /// The command line of the client, with the name of the program.
    #[serde(with = "os_text::list")]
    pub arguments: Vec<OsString>,
    #[serde(with = "os_text::path")]
    pub directory: PathBuf,
    #[serde(with = "os_text::pairs")]
    pub variables: Vec<(OsString, OsString)>,
    /// True if the log of this client is read on a terminal.
    pub has_terminal: bool,
}

/// The daemon's answer to a [`Hello`].
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum Welcome {
    /// The messages of the host follow.
    Serving {
        /// The method of the notifications between daemon and client, which neither hosts nor
        /// servers can guess.
        notices: String,
        /// The size limit of a line of the host, in bytes.
        max_line: usize,
    },
    /// The daemon is ending: a new one has to be started.
    Ending,
    /// The daemon ends for this client, whose program is newer: the client starts the next one.
    Yields,
    /// The config requires that the client serves its host itself.
    InProcess,
    /// The host cannot be served: the text for standard error, and the exit code.
    Refused { message: String, exit_code: u8 },
}

/// The daemon's answer to a command that wants a server.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum JoinAnswer {
    /// The stream leads to the server.
    Joined,
    /// The command has to start the server itself: it is not shared, or the daemon is ending.
    NotShared,
}

/// The daemon's answer to a [`DaemonCommand`].
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum CommandAnswer {
    /// The state before the command.
    Done(DaemonStatus),
    /// The daemon is ending already.
    Ending,
}

/// Writes a message with its length before it.
///
/// # Errors
/// If the stream cannot be written, or the message is too large.
pub(crate) fn write<T: Serialize>(mut stream: impl Write, message: &T) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).ok().filter(|length| *length <= MAX_BYTES);
    let length = length.ok_or_else(too_large)?;
    stream.write_all(&[&length.to_be_bytes(), &*text].concat())
}

/// Reads a message.
///
/// # Errors
/// If the stream ends or cannot be read, or the message is too large or not a `T`.
pub(crate) fn read<T: DeserializeOwned>(mut stream: impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MAX_BYTES {
        return Err(too_large());
    }
    // The memory is taken as the message arrives, not as its length announces.
    let mut text = Vec::new();
    stream.take(length.into()).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a greeting above {MAX_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_arrives_as_it_was_sent() {
        let mut stream = Vec::new();
        write(&mut stream, &ClientGreeting::Command(DaemonCommand::Status)).unwrap();
        let read: ClientGreeting = read(&*stream).unwrap();
        assert!(matches!(read, ClientGreeting::Command(DaemonCommand::Status)));
    }

    #[test]
    fn hostile_greetings_are_refused() {
        for bytes in [
            &b""[..],
            b"GET / HTTP/1.1\r\n\r\n",
            &[0xff, 0xff, 0xff, 0xff],
            &[0, 0, 0, 9, b'{'],
            &[0, 0, 0, 2, b'{', b'}'],
        ] {
            assert!(read::<ClientGreeting>(bytes).is_err(), "{bytes:?}");
        }
    }
}
