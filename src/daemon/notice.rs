//! Notifications between a running session's daemon and its thin client.

use serde::{Deserialize, Serialize};

/// A notification of the daemon.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum DaemonNotice {
    /// Lines of the log for standard error.
    Log(String),
    /// The names of all offers that the host has loaded.
    Loads(Vec<String>),
    /// The address of a page for the browser of the user.
    OpenBrowser(String),
    /// The daemon is ending: the client sends [`ClientNotice::Leaving`], and all further messages
    /// to another daemon.
    Ending(Redial),
}

/// The reason for which a daemon ends in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum EndReason {
    /// No host was served for a time.
    Idle,
    /// The files by which clients find the daemon were removed.
    FilesLost,
    /// Another process starts one in its place.
    Replaced,
    /// A user has stopped it, or a signal.
    Stopped,
}

impl EndReason {
    /// Returns the time at which the clients connect to another daemon.
    pub(crate) fn redial(self) -> Redial {
        match self {
            Self::Idle | Self::FilesLost => Redial::AtOnce,
            Self::Replaced => Redial::Replaced,
            Self::Stopped => Redial::WhenNeeded,
        }
    }
}

/// The time at which a client connects to another daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Redial {
    AtOnce,
    /// As soon as the process that has ended the daemon has started another one. Clients of the
    /// older build would otherwise start their own build again.
    Replaced,
    /// At the next message of the host, since a user has stopped the daemon.
    WhenNeeded,
}

/// A notification of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
// Parameters are an object (JSON-RPC 2.0 section 4.2), and not a text.
#[serde(rename_all = "camelCase", tag = "notice")]
pub(crate) enum ClientNotice {
    /// Only answers of the host follow. The session ends once its requests have been answered.
    Leaving,
    /// The client was asked to end: the session ends now.
    Stop,
    /// The client was asked to reload the config.
    Reload,
    /// The host has sent a message of this size, in bytes, which is not carried because it is too
    /// large, and which needs no answer.
    Skipped { size: usize },
}
