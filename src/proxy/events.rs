//! The events of the fleet: as one broadcast, whose listeners may miss some, and to one sink, which
//! misses none.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use tokio::sync::broadcast;

use super::{HostId, RunningScript, Span};
use crate::{config::ServerConfig, identity::Person, protocol::ClientIdentity, wire::Raw};

/// Events that a listener may be behind before it misses some.
const MAX_BEHIND: usize = 256;

/// An event in the fleet.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// An instance of a server has moved to another phase of its life.
    ServerMoved,
    /// A catalog is new or has changed.
    CatalogLearned,
    /// The catalog of a server that has been connected is stored.
    CatalogStored,
    /// Another snapshot is in force.
    Published,
    /// Another config is in force.
    Reloaded,
    HostAttached,
    HostDetached,
    /// A login that a request needed has ended.
    LoginEnded,
    CallEnded(Arc<EndedCall>),
}

/// A receiver that misses no event. It is told on the thread on which the event happens, before the
/// host gets its answer, and must return at once.
pub(crate) trait EventSink: Send + Sync {
    /// A server has been connected; that took so long.
    fn server_woke(&self, server: &str, took: Duration);

    /// A session of a host has begun.
    fn host_attached(&self, host: HostId);

    /// A session of a host has ended. `client`: what the host has said of itself.
    fn host_detached(&self, host: HostId, client: Option<&ClientIdentity>);

    /// A host has been answered. `result`: the result, if it is not an error object.
    fn request_ended(&self, request: EndedRequest, result: Option<&Raw>);

    /// A request to a server has ended.
    fn call_ended(&self, call: Arc<EndedCall>, bodies: Bodies);

    /// A host has got a preview in place of a result of this server, without `withheld` of its
    /// bytes.
    fn result_cut(&self, server: &str, withheld: usize);

    /// Returns the span of a request that is recorded as a part of a trace. `meta`: the `_meta` of
    /// the request.
    fn trace(&self, meta: Option<&Raw>) -> Option<Arc<Span>>;
}

/// The texts of a call.
pub(crate) struct Bodies {
    pub params: Option<Raw>,
    /// The result or the error object.
    pub answer: Option<Raw>,
    /// The entry of the server, which has its secrets.
    pub config: Arc<ServerConfig>,
}

/// The time that something took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeSpan {
    pub began: SystemTime,
    pub took: Duration,
}

/// A request of a host that has been answered.
#[derive(Clone, Debug)]
pub(crate) struct EndedRequest {
    /// The id of the request, as JSON.
    pub id: String,
    pub client: Arc<ClientIdentity>,
    pub method: String,
    /// The tool, prompt or URI that the request names, in the host's words.
    pub subject: Option<String>,
    pub time: TimeSpan,
    /// `None` if the host got a result that is no error.
    pub fault: Option<CallFault>,
    pub span: Option<Arc<Span>>,
}

/// A request to a server that has ended.
#[derive(Clone, Debug)]
pub(crate) struct EndedCall {
    pub origin: CallOrigin,
    /// The server's name.
    pub server: String,
    pub method: String,
    /// The tool, prompt or URI that the request names, in the server's own words.
    pub subject: Option<String>,
    /// The time from the host's request to the answer, including wake and login.
    pub time: TimeSpan,
    /// The part of that time since the request was sent; `None` if it was not sent.
    pub sent: Option<SentCall>,
    pub size: CallSize,
    /// `None` if the server answered with a result that is no error.
    pub fault: Option<CallFault>,
    /// The effect of the policy; `None` if no rule denies the call or asks about it.
    pub policy: Option<PolicyEffect>,
}

/// The host that has made a call.
#[derive(Clone, Debug)]
pub(crate) struct CallOrigin {
    pub host: HostId,
    pub client: Arc<ClientIdentity>,
    /// The person behind the host, if its token has told.
    pub person: Option<Arc<Person>>,
    /// The script of the host that made the call.
    pub script: Option<RunningScript>,
}

/// The effect of the policy on a call that it does not simply allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyEffect {
    /// The user has consented, now or before.
    Approved,
    /// The user has declined.
    Declined,
    /// The user could not be asked, or has not answered.
    Unapproved,
    Denied,
}

/// The sizes of a call, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSize {
    /// Of the parameters.
    pub params: usize,
    /// Of the part of these between programs, `_meta`.
    pub meta: usize,
    /// Of the result or the error object.
    pub answer: usize,
}

/// A request that was sent to a server.
#[derive(Clone, Debug)]
pub(crate) struct SentCall {
    pub time: TimeSpan,
    /// True if the server is connected by HTTP.
    pub is_remote: bool,
    /// The id of the request on the connection to the server.
    pub id: u64,
    /// The version of MCP that the server speaks.
    pub protocol: String,
    pub span: Option<Arc<Span>>,
}

/// The reason that a request has not succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFault {
    /// The result says `isError`.
    Tool,
    /// The answer is an error object with this code.
    Refused(i64),
    /// The server could not be connected.
    NotLoaded,
    /// The user has not logged in.
    NotLoggedIn,
    /// The config does not allow the request.
    Forbidden,
    TimedOut,
    /// The connection to the server has failed.
    Unreachable,
    /// The host has cancelled the request, or left.
    Cancelled,
}

impl CallFault {
    /// Returns the value of `error.type` in the semantic conventions of OpenTelemetry.
    pub(crate) fn kind(self) -> Cow<'static, str> {
        match self {
            Self::Tool => "tool_error".into(),
            Self::Refused(code) => code.to_string().into(),
            Self::NotLoaded => "not_loaded".into(),
            Self::NotLoggedIn => "not_logged_in".into(),
            Self::Forbidden => "forbidden".into(),
            Self::TimedOut => "timeout".into(),
            Self::Unreachable => "unreachable".into(),
            Self::Cancelled => "cancelled".into(),
        }
    }
}

impl PolicyEffect {
    /// Returns the word of the log and of the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Declined => "declined",
            Self::Unapproved => "unapproved",
            Self::Denied => "denied",
        }
    }
}

/// The sender of events. Sending is cheap without a listener.
#[derive(Clone)]
pub(super) struct Events(Arc<EventTargets>);

struct EventTargets {
    listeners: broadcast::Sender<Event>,
    sink: OnceLock<Arc<dyn EventSink>>,
}

impl Default for Events {
    fn default() -> Self {
        let listeners = broadcast::Sender::new(MAX_BEHIND);
        Self(Arc::new(EventTargets { listeners, sink: OnceLock::new() }))
    }
}

impl Events {
    pub(super) fn send(&self, event: Event) {
        // An error means only that there is no listener.
        let _ = self.0.listeners.send(event);
    }

    /// Tells everything from now on to this sink. The first sink stays.
    pub(super) fn set_sink(&self, sink: Arc<dyn EventSink>) {
        // An error means that there is a sink.
        let _ = self.0.sink.set(sink);
    }

    pub(super) fn sink(&self) -> Option<&dyn EventSink> {
        self.0.sink.get().map(AsRef::as_ref)
    }

    pub(super) fn end_call(&self, call: EndedCall, bodies: Bodies) {
        let call = Arc::new(call);
        if let Some(sink) = self.sink() {
            sink.call_ended(call.clone(), bodies);
        }
        self.send(Event::CallEnded(call));
    }

    pub(super) fn cut_result(&self, server: &str, withheld: usize) {
        if let Some(sink) = self.sink() {
            sink.result_cut(server, withheld);
        }
    }

    /// Returns whether anyone hears of the ends of calls.
    pub(super) fn has_listeners(&self) -> bool {
        self.sink().is_some() || self.0.listeners.receiver_count() > 0
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<Event> {
        self.0.listeners.subscribe()
    }
}
