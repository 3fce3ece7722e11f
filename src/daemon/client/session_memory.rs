//! The part of a session that a thin client remembers, so that another daemon can continue it.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use indexmap::IndexMap;

use crate::{
    protocol::{error, method},
    wire::{Id, Message, Notification, Raw, Request, Response, edit, parse_line},
};

/// The messages between one host and its daemon, as far as a later daemon needs them.
#[derive(Default)]
pub(super) struct SessionMemory {
    handshake: Handshake,
    /// The host's requests without an answer, in the order in which they were sent.
    requests: IndexMap<Id, SentRequest>,
    /// The streams that another daemon than this one has taken over, whose end at this one the host
    /// must not see.
    moved: HashSet<(Id, DaemonNumber)>,
    /// The daemons' requests without an answer of the host.
    questions: HashMap<Id, DaemonNumber>,
    /// The ids of repeated messages, whose answers the host must not see.
    repeated: HashMap<Id, DaemonNumber>,
    last_repeat: u64,
}

/// The messages with which a legacy host has opened and changed its session.
#[derive(Default)]
struct Handshake {
    initialize: Option<Request>,
    initialized: Option<Notification>,
    log_level: Option<Request>,
    /// By URI, as the host spells it.
    subscriptions: BTreeMap<String, Request>,
}

/// The number of daemons that have served the host before this one.
pub(super) type DaemonNumber = u32;

/// A request of the host that has no answer.
struct SentRequest {
    /// The daemon that it was sent to.
    daemon: DaemonNumber,
    /// The number of requests with this id: a host may use one twice, against the protocol.
    count: usize,
    /// The request, if it can be sent again: it has no effect on a server, or the same however
    /// often it is sent.
    repeatable: Option<Request>,
}

/// The requests that a line added, for [`SessionMemory::retract`].
#[must_use]
pub(super) struct Sent(Vec<Id>);

/// The treatment of a line of the daemon.
#[derive(Debug, PartialEq)]
pub(super) enum Received {
    ForHost,
    /// An answer that the host must not see: to a repeated message, or to a request that another
    /// daemon answers.
    NotForHost,
    /// A notification of the method that only the daemon and the client know.
    Notice(Raw),
}

/// Requests that another daemon can be sent again.
const REPEATABLE: [&str; 11] = [
    method::INITIALIZE,
    method::PING,
    method::SERVER_DISCOVER,
    method::SUBSCRIPTIONS_LISTEN,
    method::TOOLS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCE_TEMPLATES_LIST,
    method::RESOURCES_SUBSCRIBE,
    method::RESOURCES_UNSUBSCRIBE,
    method::PROMPTS_LIST,
    method::LOGGING_SET_LEVEL,
];

/// The text for a request that was lost with its daemon.
const LOST: &str = "the dormouse daemon ended before it answered; the request may have \
    been executed";

impl SessionMemory {
    /// Notes a line of the host that is about to be sent to a daemon.
    pub(super) fn note_sent(&mut self, line: &Bytes, daemon: DaemonNumber) -> Sent {
        let mut sent = Vec::new();
        let messages = parse_line(line);
        // A batch is answered as a whole, so none of its requests can be repeated alone.
        let is_alone = messages.len() == 1;
        for message in messages.into_iter().flatten() {
            match message {
                Message::Request(request) => {
                    sent.push(request.id.clone());
                    self.note_request(request, daemon, is_alone);
                }
                Message::Notification(notification) => self.note_notification(notification),
                Message::Response(Response { id, .. }) => {
                    id.as_ref().map(|id| self.questions.remove(id));
                }
            }
        }
        Sent(sent)
    }

    fn note_request(&mut self, request: Request, daemon: DaemonNumber, is_alone: bool) {
        let id = request.id.clone();
        let is_repeatable = is_alone && REPEATABLE.contains(&request.method.as_str());
        if is_repeatable {
            self.handshake.note(&request);
        }
        let repeatable = is_repeatable.then_some(request);
        let count = 1 + self.requests.get(&id).map_or(0, |earlier| earlier.count);
        self.requests.insert(id, SentRequest { daemon, count, repeatable });
    }

    fn note_notification(&mut self, notification: Notification) {
        match notification.method.as_str() {
            method::INITIALIZED => self.handshake.initialized = Some(notification),
            // A cancelled request gets no answer, and a cancelled stream must not be opened again.
            method::CANCELLED => {
                cancelled(&notification).map(|id| self.requests.shift_remove(&id));
            }
            _ => {}
        }
    }

    /// Forgets the requests of a line that could not be sent.
    pub(super) fn retract(&mut self, sent: Sent) {
        for id in sent.0 {
            self.forget(&id);
        }
    }

    /// Returns the daemon to which a line belongs, if it is not the present one: the answer to a
    /// question, or the cancellation of a request.
    pub(super) fn addressee(&self, line: &Bytes) -> Option<DaemonNumber> {
        let Ok(message) = parse_line(line).pop()? else { return None };
        match message {
            Message::Response(Response { id, .. }) => self.questions.get(&id?).copied(),
            Message::Notification(notification) if notification.method == method::CANCELLED => {
                let request = self.requests.get(&cancelled(&notification)?)?;
                Some(request.daemon)
            }
            Message::Request(_) | Message::Notification(_) => None,
        }
    }

    /// Notes a line of a daemon. `notices`: the method of notices to this client.
    pub(super) fn note_received(
        &mut self,
        line: &Bytes,
        daemon: DaemonNumber,
        notices: &str,
    ) -> Received {
        let mut received = Received::ForHost;
        for message in parse_line(line) {
            let Ok(message) = message else {
                // A daemon that was killed has written only a part of the line.
                return Received::NotForHost;
            };
            match message {
                Message::Request(Request { id, .. }) => {
                    self.questions.insert(id, daemon);
                }
                Message::Notification(notification) if notification.method == notices => {
                    let params = notification.params.unwrap_or_else(Raw::empty_object);
                    received = Received::Notice(params);
                }
                Message::Notification(notification) => {
                    if notification.method == method::CANCELLED {
                        cancelled(&notification).map(|id| self.questions.remove(&id));
                    }
                }
                Message::Response(Response { id: Some(id), .. }) => {
                    if !self.note_answer(&id, daemon) {
                        received = Received::NotForHost;
                    }
                }
                Message::Response(Response { id: None, .. }) => {}
            }
        }
        received
    }

    /// Notes an answer. Returns whether it is for the host.
    fn note_answer(&mut self, id: &Id, daemon: DaemonNumber) -> bool {
        if self.repeated.remove(id).is_some() {
            return false;
        }
        let is_elsewhere = self.moved.contains(&(id.clone(), daemon));
        if !is_elsewhere {
            self.forget(id);
        }
        !is_elsewhere
    }

    /// Forgets one request with this id.
    fn forget(&mut self, id: &Id) {
        if let Some(sent) = self.requests.get_mut(id) {
            sent.count -= 1;
            if sent.count == 0 {
                self.requests.shift_remove(id);
            }
        }
    }

    /// Forgets what was lost with a daemon, and returns the messages that tell the host.
    pub(super) fn lose_daemon(&mut self, daemon: DaemonNumber) -> Vec<Message> {
        self.repeated.retain(|_, sent_to| *sent_to != daemon);
        self.moved.retain(|(_, moved_from)| *moved_from != daemon);
        let is_lost = |sent: &SentRequest| sent.daemon == daemon && sent.repeatable.is_none();
        let mut told = self.fail(is_lost, LOST);
        self.questions.retain(|id, asking| {
            if *asking == daemon {
                let params = edit::set(&Raw::empty_object(), "requestId", id.raw());
                let method = method::CANCELLED.to_owned();
                told.push(Message::Notification(Notification { method, params: Some(params) }));
            }
            *asking != daemon
        });
        told
    }

    /// Fails the requests that have no answer at the end of the session, and returns the messages
    /// that tell the host. Streams of notifications end with the session.
    pub(super) fn end(&mut self) -> Vec<Message> {
        let is_stream = |request: &Request| request.method == method::SUBSCRIPTIONS_LISTEN;
        self.fail(|sent| !sent.repeatable.as_ref().is_some_and(is_stream), LOST)
    }

    /// Fails all requests without an answer, and returns the messages that tell the host.
    pub(super) fn fail_all(&mut self, reason: &str) -> Vec<Message> {
        self.fail(|_| true, reason)
    }

    fn fail(&mut self, is_failed: impl Fn(&SentRequest) -> bool, reason: &str) -> Vec<Message> {
        let mut told = Vec::new();
        self.requests.retain(|id, sent| {
            let is_failed = is_failed(sent);
            if is_failed {
                let failure = || {
                    let outcome = Err(error::internal(reason));
                    Message::Response(Response { id: Some(id.clone()), outcome })
                };
                told.extend(std::iter::repeat_with(failure).take(sent.count));
            }
            !is_failed
        });
        told
    }

    /// Returns the messages that open the session at a daemon. `living`: other daemons that may
    /// still answer.
    pub(super) fn open(&mut self, daemon: DaemonNumber, living: &[DaemonNumber]) -> Vec<Message> {
        let Handshake { initialize, initialized, log_level, subscriptions } = &self.handshake;
        let requests = &self.requests;
        // A request that a daemon has lost is sent again under its own id.
        let is_remembered = |request: &&Request| {
            requests.get(&request.id).is_none_or(|sent| living.contains(&sent.daemon))
        };
        let opening: Vec<_> = initialize.iter().filter(is_remembered).cloned().collect();
        let settings = log_level.iter().chain(subscriptions.values());
        let settings: Vec<_> = settings.filter(is_remembered).cloned().collect();
        let initialized = initialized.clone().map(Message::Notification);
        let mut messages: Vec<Message> = Vec::new();
        messages.extend(opening.into_iter().map(|request| self.repeat(request, daemon)));
        messages.extend(initialized);
        messages.extend(settings.into_iter().map(|request| self.repeat(request, daemon)));
        messages.extend(self.take_over(daemon, living));
        messages
    }

    /// Returns the requests to send to a daemon again: those that another one has lost, and the
    /// streams of notifications, which end with the session at the other one.
    pub(super) fn take_over(
        &mut self,
        daemon: DaemonNumber,
        living: &[DaemonNumber],
    ) -> Vec<Message> {
        let moved = self.requests.values_mut().filter_map(|sent| {
            let request = sent.repeatable.as_ref()?;
            let is_stream = request.method == method::SUBSCRIPTIONS_LISTEN;
            let is_lost = !living.contains(&sent.daemon);
            if sent.daemon == daemon || !(is_stream || is_lost) {
                return None;
            }
            if !is_lost {
                self.moved.insert((request.id.clone(), sent.daemon));
            }
            sent.daemon = daemon;
            Some(Message::Request(request.clone()))
        });
        moved.collect()
    }

    /// Returns a request with an id of this client.
    fn repeat(&mut self, request: Request, daemon: DaemonNumber) -> Message {
        self.last_repeat += 1;
        let id = Id::named(&format!("dormouse-again-{}", self.last_repeat));
        self.repeated.insert(id.clone(), daemon);
        Message::Request(Request { id, ..request })
    }
}

impl Handshake {
    fn note(&mut self, request: &Request) {
        let uri = || edit::get_str(request.params.as_ref()?, "uri");
        match request.method.as_str() {
            method::INITIALIZE => {
                *self = Self { initialize: Some(request.clone()), ..Self::default() };
            }
            method::LOGGING_SET_LEVEL => self.log_level = Some(request.clone()),
            method::RESOURCES_SUBSCRIBE => {
                uri().map(|uri| self.subscriptions.insert(uri, request.clone()));
            }
            method::RESOURCES_UNSUBSCRIBE => {
                uri().map(|uri| self.subscriptions.remove(&uri));
            }
            _ => {}
        }
    }
}

/// Returns the answers to the requests of a line that no daemon gets.
pub(super) fn refusals(line: &Bytes, reason: &str) -> Vec<Message> {
    let requests = parse_line(line).into_iter().filter_map(|message| match message {
        Ok(Message::Request(Request { id, .. })) => Some(id),
        _ => None,
    });
    let refusal = |id| Response { id: Some(id), outcome: Err(error::internal(reason)) };
    requests.map(|id| Message::Response(refusal(id))).collect()
}

/// Returns the request that a notification cancels.
fn cancelled(notification: &Notification) -> Option<Id> {
    Id::new(edit::get(notification.params.as_ref()?, "requestId")?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOTICES: &str = "dormouse/secret";

    /// A host, and the daemons that it has had.
    #[derive(Default)]
    struct World {
        memory: SessionMemory,
        /// The daemons that live, with what each was sent and has not answered. The last one is the
        /// present one, unless `is_between`.
        daemons: Vec<(DaemonNumber, Vec<Id>)>,
        next_daemon: DaemonNumber,
        is_between: bool,
        sent: Vec<Id>,
        executed: Vec<Id>,
        answered: Vec<Id>,
    }

    #[derive(Clone, Debug)]
    enum Step {
        Send(&'static str),
        /// One of the daemons answers one of its requests.
        Answer(usize, usize),
        /// The present daemon tells that it ends.
        Leave,
        /// A daemon is killed, or a leaving one ends.
        Kill(usize),
        Open,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let methods = [
            method::TOOLS_CALL,
            method::TOOLS_LIST,
            method::SUBSCRIPTIONS_LISTEN,
            method::LOGGING_SET_LEVEL,
        ];
        let step = prop_oneof![
            4 => proptest::sample::select(methods.to_vec()).prop_map(Step::Send),
            4 => (0..9_usize, 0..9_usize).prop_map(|(daemon, at)| Step::Answer(daemon, at)),
            1 => Just(Step::Leave),
            1 => (0..9_usize).prop_map(Step::Kill),
            2 => Just(Step::Open),
        ];
        proptest::collection::vec(step, 0..60)
    }

    fn line(message: &Message) -> Bytes {
        message.to_bytes()
    }

    impl World {
        fn new() -> Self {
            let mut world = Self { is_between: true, ..Self::default() };
            world.open();
            world.send(method::INITIALIZE);
            world
        }

        fn send(&mut self, method: &str) {
            if self.is_between {
                return;
            }
            let id = Id::from(self.sent.len() as u64);
            let request = Request { id: id.clone(), method: method.to_owned(), params: None };
            let Some((daemon, received)) = self.daemons.last_mut() else { return };
            let _ = self.memory.note_sent(&line(&Message::Request(request)), *daemon);
            received.push(id.clone());
            self.sent.push(id);
        }

        fn answer(&mut self, daemon: usize, at: usize) {
            if self.daemons.is_empty() {
                return;
            }
            let count = self.daemons.len();
            let (daemon, received) = &mut self.daemons[daemon % count];
            if received.is_empty() {
                return;
            }
            let id = received.remove(at % received.len());
            let response = Response { id: Some(id.clone()), outcome: Ok(Raw::empty_object()) };
            let line = line(&Message::Response(response));
            if self.memory.note_received(&line, *daemon, NOTICES) == Received::ForHost {
                self.answered.push(id);
            }
        }

        fn kill(&mut self, daemon: usize) {
            if self.daemons.is_empty() {
                return;
            }
            let at = daemon % self.daemons.len();
            self.is_between |= at + 1 == self.daemons.len();
            let (daemon, _) = self.daemons.remove(at);
            self.tell(daemon);
        }

        fn tell(&mut self, lost: DaemonNumber) {
            for message in self.memory.lose_daemon(lost) {
                if let Message::Response(Response { id, .. }) = message {
                    self.answered.extend(id);
                }
            }
            if !self.is_between {
                let living = self.living();
                let Some((daemon, _)) = self.daemons.last() else { return };
                let again = self.memory.take_over(*daemon, &living);
                self.receive(&again);
            }
        }

        fn living(&self) -> Vec<DaemonNumber> {
            self.daemons.iter().map(|(daemon, _)| *daemon).collect()
        }

        fn open(&mut self) {
            if !self.is_between {
                return;
            }
            let living = self.living();
            let messages = self.memory.open(self.next_daemon, &living);
            self.daemons.push((self.next_daemon, Vec::new()));
            self.next_daemon += 1;
            self.is_between = false;
            self.receive(&messages);
        }

        /// Gives messages of the client to the present daemon.
        fn receive(&mut self, messages: &[Message]) {
            let Some((_, received)) = self.daemons.last_mut() else { return };
            for message in messages {
                if let Message::Request(Request { id, method, .. }) = message {
                    if method == method::TOOLS_CALL {
                        self.executed.push(id.clone());
                    }
                    received.push(id.clone());
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_request_gets_one_answer_and_no_call_is_repeated(steps in steps()) {
            let mut world = World::new();
            for step in steps {
                match step {
                    Step::Send(method) => world.send(method),
                    Step::Answer(daemon, at) => world.answer(daemon, at),
                    Step::Leave => world.is_between |= !world.daemons.is_empty(),
                    Step::Kill(daemon) => world.kill(daemon),
                    Step::Open => world.open(),
                }
            }
            world.open();
            while world.daemons.len() > 1 {
                world.kill(0);
            }
            while !world.daemons[0].1.is_empty() {
                world.answer(0, 0);
            }
            let mut answered = world.answered.clone();
            answered.sort_by_key(Id::as_u64);
            prop_assert_eq!(answered, world.sent);
            prop_assert!(world.executed.is_empty(), "a call was sent again");
        }
    }

    #[test]
    fn session_is_opened_again_with_its_settings() {
        let mut memory = SessionMemory::default();
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:1"}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a:2"}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"resources/unsubscribe","params":{"uri":"a:1"}}"#,
        ] {
            let _ = memory.note_sent(&Bytes::from_static(text.as_bytes()), 0);
        }
        for id in 1..=5_u64 {
            let answer = Response { id: Some(id.into()), outcome: Ok(Raw::empty_object()) };
            let answer = line(&Message::Response(answer));
            assert_eq!(memory.note_received(&answer, 0, NOTICES), Received::ForHost);
        }
        assert!(memory.lose_daemon(0).is_empty());
        let opening = memory.open(1, &[]);
        let text = |it| String::from_utf8(line(it).to_vec()).unwrap();
        let texts: Vec<String> = opening.iter().map(text).collect();
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[test]
    fn line_that_could_not_be_sent_is_forgotten() {
        let mut memory = SessionMemory::default();
        let call = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#);
        let sent = memory.note_sent(&call, 0);
        memory.retract(sent);
        assert!(memory.lose_daemon(0).is_empty());
    }

    #[test]
    fn part_of_a_line_is_not_for_the_host() {
        let mut memory = SessionMemory::default();
        let call = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#);
        let _ = memory.note_sent(&call, 0);
        let part = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{"content"#);
        assert_eq!(memory.note_received(&part, 0, NOTICES), Received::NotForHost);
        assert_eq!(memory.lose_daemon(0).len(), 1);
    }

    #[test]
    fn answers_to_questions_go_to_the_daemon_that_asks() {
        let mut memory = SessionMemory::default();
        let question = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
        assert_eq!(memory.note_received(&question, 0, NOTICES), Received::ForHost);
        let answer = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(memory.addressee(&answer), Some(0));
        let _ = memory.note_sent(&answer, 0);
        assert_eq!(memory.addressee(&answer), None);
    }
}
