//! The reference model of what servers do: changes, messages, ends, and reloads.

use super::{
    Millis, SLEEPER, SessionModel,
    host_model::{Handshake, HostModel, OpenRequest, StreamModel},
    scenario::Item,
    server_of,
};
use crate::protocol::{Era, LogLevel};

impl SessionModel {
    /// Returns whether the lists of a server can change now with a defined effect: a server that
    /// may fall asleep could show the change later.
    pub(super) fn can_change(&self, server: usize) -> bool {
        let calls = self.hosts.values().flat_map(|host| &host.requests);
        let is_called = calls
            .filter(|request| request.work.server() == SLEEPER)
            .any(|request| request.answered_at > self.now + 400);
        server != SLEEPER || self.is_awake && (is_called || self.is_wanted(SLEEPER))
    }

    /// Announces that the tools, or the resources, of a server have changed.
    pub(super) fn announce(&mut self, is_of_tools: bool) {
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
    pub(super) fn update(&mut self, uri: &str) -> Option<u64> {
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
    pub(super) fn log(&mut self, server: usize, level: LogLevel) -> Option<u64> {
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
    pub(super) fn die(&mut self) -> bool {
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
    pub(super) fn reload(&mut self, server: usize) -> bool {
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
}
