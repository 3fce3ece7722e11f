//! The events of the fleet, as one broadcast.

use std::time::Duration;

use tokio::sync::broadcast;

use super::HostId;

/// Events that a listener may be behind before it misses some.
const MAX_BEHIND: usize = 256;

/// An event in the fleet.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// An instance of a server has moved to another phase of its life.
    ServerMoved,
    /// A catalog is new or has changed.
    CatalogLearned,
    /// Another snapshot is in force.
    Published,
    /// Another config is in force.
    Reloaded,
    HostAttached,
    HostDetached,
    /// A login that a request needed has ended.
    LoginEnded,
    CallEnded(EndedCall),
}

/// A request to a server that has ended.
#[derive(Clone, Debug)]
pub(crate) struct EndedCall {
    pub host: HostId,
    /// The server's name.
    pub server: String,
    pub method: String,
    /// The tool, prompt or URI that the request names, in the server's own words.
    pub subject: Option<String>,
    /// The time from the host's request to the answer, with waking and logging in.
    pub took: Duration,
    pub ending: CallEnding,
}

/// The end of a request to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnding {
    /// With a result.
    Succeeded,
    /// With a result that says `isError`.
    Failed,
    /// With an error object.
    Refused,
    /// Without an answer of the server.
    Unanswered,
}

/// The sender of events. Sending is cheap without a listener.
#[derive(Clone)]
pub(super) struct Events(broadcast::Sender<Event>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_BEHIND))
    }
}

impl Events {
    pub(super) fn send(&self, event: Event) {
        // An error means only that there is no listener.
        let _ = self.0.send(event);
    }

    pub(super) fn has_listeners(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}
