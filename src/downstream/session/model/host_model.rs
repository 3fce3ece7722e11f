//! The reference model of one host: its handshake, requests, streams and subscriptions.

use std::collections::{BTreeSet, VecDeque};

use super::{
    REQUEST_TIMEOUT,
    scenario::{Item, Millis},
    server_of,
};
use crate::protocol::{Era, LogLevel};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Handshake {
    Silent,
    /// The host has sent `initialize`.
    Initializing,
    /// A legacy host that gets notifications, or a modern one that has sent a request.
    Ready,
}

#[derive(Debug)]
pub(super) struct HostModel {
    pub(super) era: Era,
    pub(super) handshake: Handshake,
    pub(super) level: Option<LogLevel>,
    last_id: u64,
    /// The id of the last tool call, for hosts that use it again.
    last_call: Option<u64>,
    /// The resources that a legacy host has subscribed to.
    subscribed: BTreeSet<String>,
    pub(super) requests: Vec<OpenRequest>,
    pub(super) streams: Vec<StreamModel>,
    pub(super) inbox: Inbox,
}

/// The messages for the host, and the moments at which it reads them.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) expected: Vec<(Millis, Item)>,
    queued: Option<Vec<Item>>,
}

/// A request in flight, with the number of its turn among all requests.
#[derive(Clone, Debug)]
pub(super) struct OpenRequest {
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) answered_at: Millis,
    pub(super) work: Work,
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    Call {
        server: usize,
        text: String,
        level: Option<LogLevel>,
    },
    /// `is_wanted`: the host has not unsubscribed meanwhile.
    Subscribe {
        uri: String,
        outcome: Subscribed,
        is_wanted: bool,
    },
}

impl Work {
    pub(super) fn server(&self) -> usize {
        match self {
            Self::Call { server, .. } => *server,
            Self::Subscribe { uri, .. } => server_of(uri),
        }
    }
}

/// The outcome of a subscription at a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Subscribed {
    Accepted,
    Refused,
    TimedOut,
}

/// A stream of a modern host, which is open when its resources have been subscribed to in turn.
#[derive(Clone, Debug)]
pub(super) struct StreamModel {
    pub(super) id: u64,
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) todo: VecDeque<String>,
    /// The resource in turn, and when its server answers.
    pub(super) current: Option<(String, Millis)>,
    pub(super) accepted: Vec<String>,
    pub(super) is_open: bool,
}

impl HostModel {
    pub(super) fn new(era: Era) -> Self {
        Self {
            era,
            handshake: Handshake::Silent,
            level: None,
            last_id: 0,
            last_call: None,
            subscribed: BTreeSet::new(),
            requests: Vec::new(),
            streams: Vec::new(),
            inbox: Inbox::default(),
        }
    }

    /// Returns the id of the next request.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Returns the id of the next tool call: that of the last one if it is repeated.
    pub(super) fn next_call_id(&mut self, is_repeated: bool) -> u64 {
        let id = self.last_call.filter(|_| is_repeated).unwrap_or_else(|| self.next_id());
        self.last_call = Some(id);
        id
    }

    /// Notes a request, which implies that the host is ready. Returns whether it is refused because
    /// the host has not introduced itself.
    pub(super) fn is_refused(&mut self) -> bool {
        let is_stranger = self.era == Era::Legacy && self.handshake == Handshake::Silent;
        if !is_stranger {
            self.handshake = Handshake::Ready;
        }
        is_stranger
    }

    pub(super) fn is_ready_legacy(&self) -> bool {
        self.era == Era::Legacy && self.handshake == Handshake::Ready
    }

    /// Returns the resources for which the host needs a subscription at their servers.
    pub(super) fn wanted(&self) -> BTreeSet<String> {
        let mut wanted = self.subscribed.clone();
        for request in &self.requests {
            if let Work::Subscribe { uri, outcome, is_wanted: true } = &request.work
                && *outcome != Subscribed::Refused
            {
                wanted.insert(uri.clone());
            }
        }
        for stream in &self.streams {
            wanted.extend(stream.accepted.iter().cloned());
            wanted.extend(stream.current.iter().map(|(uri, _)| uri.clone()));
        }
        wanted.retain(|uri| outcome_of(uri).0 != Subscribed::Refused);
        wanted
    }

    /// Returns the streams on which an update of a resource is sent; `None` stands for a legacy
    /// host without streams.
    pub(super) fn updated_on(&self, uri: &str) -> Vec<Option<u64>> {
        if self.is_ready_legacy() && self.wanted().contains(uri) {
            return vec![None];
        }
        let open = self.streams.iter().filter(|stream| stream.is_open);
        let meant = open.filter(|stream| stream.accepted.iter().any(|other| other == uri));
        meant.map(|stream| Some(stream.id)).collect()
    }

    /// Returns where a change of a list is announced.
    pub(super) fn told_on(&self, wants: impl Fn(&StreamModel) -> bool) -> Vec<Option<u64>> {
        if self.is_ready_legacy() {
            return vec![None];
        }
        let open = self.streams.iter().filter(|stream| stream.is_open && wants(stream));
        open.map(|stream| Some(stream.id)).collect()
    }

    /// Returns the log level of the host's last call in flight at a server, if there is a call.
    #[expect(clippy::option_option, reason = "a call may have no level")]
    pub(super) fn last_call_at(&self, server: usize) -> Option<Option<LogLevel>> {
        let calls = self.requests.iter().filter_map(|request| match &request.work {
            Work::Call { server: at, level, .. } if *at == server => Some((request.number, *level)),
            _ => None,
        });
        calls.max_by_key(|(number, _)| *number).map(|(_, level)| level)
    }

    pub(super) fn finish_subscribing(&mut self, uri: &str, is_accepted: bool) {
        if is_accepted {
            self.subscribed.insert(uri.to_owned());
        }
    }

    /// Ends the subscription to a resource, also one that has not been answered yet.
    pub(super) fn unsubscribe(&mut self, unwanted: &str) {
        self.subscribed.remove(unwanted);
        for request in &mut self.requests {
            if let Work::Subscribe { uri, is_wanted, .. } = &mut request.work
                && uri == unwanted
            {
                *is_wanted = false;
            }
        }
    }

    /// Returns the ids of requests and streams that the host can cancel.
    pub(super) fn cancellable(&self) -> Vec<u64> {
        let requests = self.requests.iter().map(|request| request.id);
        let ids: BTreeSet<u64> =
            requests.chain(self.streams.iter().map(|stream| stream.id)).collect();
        ids.into_iter().collect()
    }

    pub(super) fn cancel(&mut self, id: u64) {
        self.requests.retain(|request| request.id != id);
        self.streams.retain(|stream| stream.id != id);
    }
}

impl Inbox {
    pub(super) fn put(&mut self, now: Millis, item: Item) {
        match &mut self.queued {
            Some(queued) => queued.push(item),
            None => self.expected.push((now, item)),
        }
    }

    pub(super) fn stall(&mut self) {
        self.queued.get_or_insert_default();
    }

    pub(super) fn read(&mut self, now: Millis) {
        let queued = self.queued.take().into_iter().flatten();
        self.expected.extend(queued.map(|item| (now, item)));
    }
}

/// Returns the outcome of a subscription, and how long it takes.
pub(super) fn outcome_of(uri: &str) -> (Subscribed, Millis) {
    match uri.rsplit(':').next() {
        Some("refused") => (Subscribed::Refused, 0),
        Some("hangs") => (Subscribed::TimedOut, REQUEST_TIMEOUT),
        delay => (Subscribed::Accepted, delay.and_then(|delay| delay.parse().ok()).unwrap_or(0)),
    }
}
