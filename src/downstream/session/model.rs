//! A reference model of sessions and their subscriptions, in virtual time: which messages each host
//! gets, and which resources the servers are subscribed to (docs/design/fidelity.md, eras.md).

mod host_model;
mod recording_host;
mod scenario;
mod sequences;
mod server_events;
mod timers;
mod world;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::protocol::{Era, LogLevel};
use host_model::{Handshake, HostModel, OpenRequest, StreamModel, Work, outcome_of};
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
                if let Some(host) = model.hosts.get_mut(&slot) {
                    host.unsubscribe(uri);
                }
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
            if let Some(host) = model.hosts.get_mut(&slot) {
                host.cancel(id);
            }
        });
    }

    fn stall(&mut self, slot: u8) {
        if let Some(host) = self.hosts.get_mut(&slot) {
            host.inbox.stall();
        }
    }

    fn read(&mut self, slot: u8) {
        let now = self.now;
        if let Some(host) = self.hosts.get_mut(&slot) {
            host.inbox.read(now);
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
