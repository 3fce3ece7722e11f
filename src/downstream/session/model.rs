//! A reference model of sessions and their subscriptions, in virtual time: which messages each host
//! gets, and which resources the servers are subscribed to (docs/design/fidelity.md, eras.md).

mod host_model;
mod scenario;
mod sequences;
mod world;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::protocol::{Era, LogLevel};
use host_model::{Handshake, HostModel, OpenRequest, StreamModel, Subscribed, Work, outcome_of};
use scenario::{Item, Millis, SERVERS};

/// Time without use after which the server that sleeps does so.
const IDLE_TIMEOUT: Millis = 2000;
/// The deadline of requests other than calls.
const REQUEST_TIMEOUT: Millis = 5000;
/// The position of the server that sleeps.
const SLEEPER: usize = 1;

#[derive(Default)]
struct SessionModel {
    now: Millis,
    hosts: BTreeMap<u8, HostModel>,
    /// True while the server that sleeps is awake, and the end of its last use.
    is_awake: bool,
    last_use: Millis,
    /// The turn of the last request of any host.
    last_number: u64,
    /// The number of the last update or log message.
    last_message: u64,
}

fn server_of(uri: &str) -> usize {
    SERVERS.iter().position(|server| uri.starts_with(server)).unwrap_or(0)
}

impl SessionModel {
    fn host(&self, slot: u8) -> Option<&HostModel> {
        self.hosts.get(&slot)
    }

    fn has(&self, slot: u8, era: Era) -> bool {
        self.host(slot).is_some_and(|host| host.era == era)
    }

    // Actions. Each returns the id of its request, or `None` if it does not apply.

    fn attach(&mut self, slot: u8, era: Era) -> bool {
        let is_free = !self.hosts.contains_key(&slot);
        if is_free {
            self.hosts.insert(slot, HostModel::new(era));
        }
        is_free
    }

    fn detach(&mut self, slot: u8) -> bool {
        let had_level = self.host(slot).is_some_and(|host| host.level.is_some());
        let is_attached = self.change(|model| model.hosts.remove(&slot).is_some());
        if had_level && self.hosts.values().any(|host| host.level.is_some()) {
            // Servers are told the level of the others.
            self.touch();
        }
        is_attached
    }

    fn initialize(&mut self, slot: u8) -> Option<u64> {
        let host = self.hosts.get_mut(&slot).filter(|host| host.era == Era::Legacy)?;
        host.handshake = Handshake::Initializing;
        Some(self.answer_now(slot, Some("")))
    }

    fn initialized(&mut self, slot: u8) -> bool {
        let host = self.hosts.get_mut(&slot).filter(|host| host.era == Era::Legacy);
        let host = host.filter(|host| host.handshake == Handshake::Initializing);
        host.map(|host| host.handshake = Handshake::Ready).is_some()
    }

    fn ping(&mut self, slot: u8) -> Option<u64> {
        let is_modern = self.host(slot)?.era == Era::Modern;
        Some(self.answer_now(slot, if is_modern { None } else { Some("") }))
    }

    fn set_level(&mut self, slot: u8, level: LogLevel) -> Option<u64> {
        let host = self.hosts.get_mut(&slot).filter(|host| host.era == Era::Legacy)?;
        if host.is_refused() {
            return Some(self.answer_now(slot, None));
        }
        host.level = Some(level);
        self.touch();
        Some(self.answer_now(slot, Some("")))
    }

    fn call(
        &mut self,
        slot: u8,
        (server, delay): (usize, Millis),
        level: Option<LogLevel>,
        is_repeated: bool,
    ) -> Option<(u64, String)> {
        let number = self.next_number();
        let host = self.hosts.get_mut(&slot)?;
        let id = host.next_call_id(is_repeated);
        let text = format!("payload {number}");
        if host.is_refused() {
            host.inbox.put(self.now, Item::Answer { id, text: None });
            return Some((id, text));
        }
        let work = Work::Call { server, text: text.clone(), level };
        let answered_at = self.now + delay;
        host.requests.push(OpenRequest { id, number, answered_at, work });
        self.wake(server);
        Some((id, text))
    }

    fn subscribe(&mut self, slot: u8, uri: &str) -> Option<u64> {
        let number = self.next_number();
        let host = self.hosts.get_mut(&slot).filter(|host| host.era == Era::Legacy)?;
        if host.is_refused() {
            return Some(self.answer_now(slot, None));
        }
        let id = host.next_id();
        let (outcome, delay) = outcome_of(uri);
        let work = Work::Subscribe { uri: uri.to_owned(), outcome, is_wanted: true };
        host.requests.push(OpenRequest { id, number, answered_at: self.now + delay, work });
        self.wake(server_of(uri));
        Some(id)
    }

    fn unsubscribe(&mut self, slot: u8, uri: &str) -> Option<u64> {
        let host = self.hosts.get_mut(&slot).filter(|host| host.era == Era::Legacy)?;
        if !host.is_refused() {
            self.change(|model| {
                model.hosts.get_mut(&slot).map(|host| host.unsubscribe(uri));
            });
            return Some(self.answer_now(slot, Some("")));
        }
        Some(self.answer_now(slot, None))
    }

    fn listen(&mut self, slot: u8, (tools, resources): (bool, bool), uris: &[&str]) -> Option<u64> {
        let now = self.now;
        let host = self.hosts.get_mut(&slot).filter(|host| host.era == Era::Modern)?;
        host.handshake = Handshake::Ready;
        let id = host.next_id();
        let todo: VecDeque<String> = uris.iter().map(|uri| (*uri).to_owned()).collect();
        let (current, accepted) = (None, Vec::new());
        let is_open = false;
        let stream = StreamModel { id, tools, resources, todo, current, accepted, is_open };
        host.streams.push(stream);
        self.continue_stream(slot, id, now);
        Some(id)
    }

    fn cancel(&mut self, slot: u8, id: u64) {
        let uses_sleeper = |host: &HostModel| {
            host.requests.iter().any(|one| one.id == id && one.work.server() == SLEEPER)
                || host.streams.iter().any(|stream| {
                    let current = stream.current.as_ref();
                    stream.id == id && current.is_some_and(|(uri, _)| server_of(uri) == SLEEPER)
                })
        };
        if self.host(slot).is_some_and(uses_sleeper) {
            self.touch();
        }
        self.change(|model| {
            model.hosts.get_mut(&slot).map(|host| host.cancel(id));
        });
    }

    fn stall(&mut self, slot: u8) {
        self.hosts.get_mut(&slot).map(|host| host.inbox.stall());
    }

    fn read(&mut self, slot: u8) {
        let now = self.now;
        self.hosts.get_mut(&slot).map(|host| host.inbox.read(now));
    }

    /// Returns whether the lists of a server can change now with a defined effect: a server that
    /// may fall asleep could show the change later.
    fn can_change(&self, server: usize) -> bool {
        let calls = self.hosts.values().flat_map(|host| &host.requests);
        let is_called = calls
            .filter(|request| request.work.server() == SLEEPER)
            .any(|request| request.answered_at > self.now + 400);
        server != SLEEPER || self.is_awake && (is_called || self.is_wanted(SLEEPER))
    }

    /// Announces that the tools, or the resources, of a server have changed.
    fn announce(&mut self, is_of_tools: bool) {
        for host in self.hosts.values_mut() {
            let wants =
                |stream: &StreamModel| if is_of_tools { stream.tools } else { stream.resources };
            for stream in host.told_on(wants) {
                let item = if is_of_tools {
                    Item::ToolsChanged { stream }
                } else {
                    Item::ResourcesChanged { stream }
                };
                host.inbox.put(self.now, item);
            }
        }
    }

    /// Sends an update of a resource, if its server is subscribed to it. Returns its number.
    fn update(&mut self, uri: &str) -> Option<u64> {
        if !self.subscribed(server_of(uri))?.contains(uri) {
            return None;
        }
        self.last_message += 1;
        let number = self.last_message;
        for host in self.hosts.values_mut() {
            for stream in host.updated_on(uri) {
                host.inbox.put(self.now, Item::Updated { number, stream });
            }
        }
        Some(number)
    }

    /// Sends a log message of a server. Returns its number.
    fn log(&mut self, server: usize, level: LogLevel) -> Option<u64> {
        if server == SLEEPER && !self.is_awake {
            return None;
        }
        self.last_message += 1;
        let (now, number) = (self.now, self.last_message);
        let is_called = |host: &HostModel| host.last_call_at(server).is_some();
        let has_caller = self.hosts.values().any(is_called);
        for host in self.hosts.values_mut() {
            let level_of_call = host.last_call_at(server);
            let is_told = match host.era {
                Era::Legacy => {
                    let is_meant = level_of_call.is_some() || !has_caller;
                    let is_known = host.handshake != Handshake::Silent;
                    is_meant && is_known && host.level.is_none_or(|wanted| level >= wanted)
                }
                Era::Modern => level_of_call.flatten().is_some_and(|wanted| level >= wanted),
            };
            if is_told {
                host.inbox.put(now, Item::Logged { number });
            }
        }
        Some(number)
    }

    /// Ends the connection of the server that sleeps: what waits for it fails.
    fn die(&mut self) -> bool {
        if !std::mem::take(&mut self.is_awake) {
            return false;
        }
        let now = self.now;
        let mut interrupted = Vec::new();
        for (slot, host) in &mut self.hosts {
            let (failed, kept) = std::mem::take(&mut host.requests)
                .into_iter()
                .partition(|request| request.work.server() == SLEEPER);
            host.requests = kept;
            let failed: Vec<OpenRequest> = failed;
            for request in failed {
                host.inbox.put(now, Item::Answer { id: request.id, text: None });
            }
            for stream in &mut host.streams {
                let is_interrupted = |(uri, _): &mut (String, Millis)| server_of(uri) == SLEEPER;
                if stream.current.take_if(is_interrupted).is_some() {
                    interrupted.push((*slot, stream.id));
                }
            }
        }
        for (slot, stream) in interrupted {
            self.continue_stream(slot, stream, now);
        }
        true
    }

    /// Replaces the instance of a server that answers nothing at the moment: subscriptions move to
    /// the new one.
    fn reload(&mut self, server: usize) -> bool {
        let requests = self.hosts.values().flat_map(|host| &host.requests);
        let streams = self.hosts.values().flat_map(|host| &host.streams);
        let being_opened = streams.filter_map(|stream| stream.current.as_ref());
        let is_in_use = requests.map(|request| request.work.server()).any(|of| of == server)
            || being_opened.map(|(uri, _)| server_of(uri)).any(|of| of == server);
        if !is_in_use && server == SLEEPER {
            self.is_awake = self.is_wanted(SLEEPER);
            self.touch();
        }
        !is_in_use
    }

    // The passage of time.

    fn next_timer(&self) -> Option<Millis> {
        let hosts = self.hosts.values();
        let requests = hosts.clone().flat_map(|host| &host.requests);
        let answers = requests.map(|request| request.answered_at);
        let streams = hosts.flat_map(|host| &host.streams);
        let steps = streams.filter_map(|stream| stream.current.as_ref().map(|(_, at)| *at));
        answers.chain(steps).chain(self.sleeps_at()).min()
    }

    fn sleeps_at(&self) -> Option<Millis> {
        let is_used = self.is_wanted(SLEEPER) || self.is_used();
        (self.is_awake && !is_used).then_some(self.last_use + IDLE_TIMEOUT)
    }

    fn is_used(&self) -> bool {
        let mut requests = self.hosts.values().flat_map(|host| &host.requests);
        requests.any(|request| request.work.server() == SLEEPER)
    }

    /// Lets everything happen that is due until `to`.
    fn advance(&mut self, to: Millis) {
        while let Some(at) = self.next_timer().filter(|at| *at <= to) {
            self.now = at;
            if self.sleeps_at() == Some(at) {
                self.is_awake = false;
            }
            self.answer_due();
            self.step_streams();
        }
        self.now = to;
    }

    fn answer_due(&mut self) {
        let now = self.now;
        let mut finished = Vec::new();
        for (slot, host) in &mut self.hosts {
            let due = |request: &mut OpenRequest| request.answered_at <= now;
            finished.extend(host.requests.extract_if(.., due).map(|request| (*slot, request)));
        }
        finished.sort_by_key(|(_, request)| request.number);
        for (slot, request) in finished {
            if request.work.server() == SLEEPER {
                self.touch();
            }
            let Some(host) = self.hosts.get_mut(&slot) else { continue };
            let text = match request.work {
                Work::Call { text, .. } => Some(text),
                Work::Subscribe { uri, outcome, is_wanted } => {
                    let is_accepted = outcome == Subscribed::Accepted;
                    host.finish_subscribing(&uri, is_accepted && is_wanted);
                    is_accepted.then(String::new)
                }
            };
            host.inbox.put(now, Item::Answer { id: request.id, text });
        }
    }

    fn step_streams(&mut self) {
        let now = self.now;
        let mut stepped = Vec::new();
        for (slot, host) in &mut self.hosts {
            for stream in &mut host.streams {
                let due = |(_, at): &mut (String, Millis)| *at <= now;
                let Some((uri, _)) = stream.current.take_if(due) else { continue };
                if outcome_of(&uri).0 == Subscribed::Accepted {
                    stream.accepted.push(uri.clone());
                }
                stepped.push((*slot, stream.id, server_of(&uri)));
            }
        }
        for (slot, stream, server) in stepped {
            if server == SLEEPER {
                self.touch();
            }
            self.continue_stream(slot, stream, now);
        }
    }

    /// Subscribes to the next resource of a stream, or opens the stream.
    fn continue_stream(&mut self, slot: u8, id: u64, now: Millis) {
        let Some(host) = self.hosts.get_mut(&slot) else { return };
        let Some(stream) = host.streams.iter_mut().find(|stream| stream.id == id) else { return };
        match stream.todo.pop_front() {
            Some(uri) => {
                let server = server_of(&uri);
                let due = now + outcome_of(&uri).1;
                stream.current = Some((uri, due));
                self.wake(server);
            }
            None => {
                stream.is_open = true;
                let uris = stream.accepted.clone();
                host.inbox.put(now, Item::Acknowledged { stream: id, uris });
            }
        }
    }

    // The server that sleeps.

    fn wake(&mut self, server: usize) {
        if server == SLEEPER {
            self.is_awake = true;
            self.last_use = self.now;
        }
    }

    /// Notes a use of the server that sleeps, which does not wake it.
    fn touch(&mut self) {
        self.last_use = self.now;
    }

    /// Makes a change, after which the server that sleeps may be asked to end subscriptions.
    fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.wanted();
        let was_used = self.is_used();
        let result = change(self);
        let after = self.wanted();
        let has_ended = |uri: &String| server_of(uri) == SLEEPER && !after.contains(uri);
        if before.iter().any(has_ended) || was_used && !self.is_used() {
            self.touch();
        }
        result
    }

    fn wanted(&self) -> BTreeSet<String> {
        self.hosts.values().flat_map(HostModel::wanted).collect()
    }

    fn is_wanted(&self, server: usize) -> bool {
        self.wanted().iter().any(|uri| server_of(uri) == server)
    }

    /// Returns the resources that a server is subscribed to; `None` while it sleeps.
    fn subscribed(&self, server: usize) -> Option<BTreeSet<String>> {
        let mut wanted = self.wanted();
        wanted.retain(|uri| server_of(uri) == server);
        (server != SLEEPER || self.is_awake).then_some(wanted)
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Answers the next request of a host at once. Returns its id.
    fn answer_now(&mut self, slot: u8, text: Option<&str>) -> u64 {
        let now = self.now;
        let Some(host) = self.hosts.get_mut(&slot) else { return 0 };
        let id = host.next_id();
        host.inbox.put(now, Item::Answer { id, text: text.map(str::to_owned) });
        id
    }
}
