//! The reference model of the passage of time: answers, streams that open, and sleep.

use super::{
    IDLE_TIMEOUT, SLEEPER, SessionModel,
    host_model::{OpenRequest, Subscribed, Work, outcome_of},
    scenario::{Item, Millis},
    server_of,
};

impl SessionModel {
    pub(super) fn next_timer(&self) -> Option<Millis> {
        let hosts = self.hosts.values();
        let requests = hosts.clone().flat_map(|host| &host.requests);
        let answers = requests.map(|request| request.answered_at);
        let streams = hosts.flat_map(|host| &host.streams);
        let steps = streams.filter_map(|stream| stream.current.as_ref().map(|(_, at)| *at));
        answers.chain(steps).chain(self.sleeps_at()).min()
    }

    pub(super) fn sleeps_at(&self) -> Option<Millis> {
        let is_used = self.is_wanted(SLEEPER) || self.is_used();
        (self.is_awake && !is_used).then_some(self.last_use + IDLE_TIMEOUT)
    }

    pub(super) fn is_used(&self) -> bool {
        let mut requests = self.hosts.values().flat_map(|host| &host.requests);
        requests.any(|request| request.work.server() == SLEEPER)
    }

    /// Lets everything happen that is due until `to`.
    pub(super) fn advance(&mut self, to: Millis) {
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
    pub(super) fn continue_stream(&mut self, slot: u8, id: u64, now: Millis) {
        let Some(host) = self.hosts.get_mut(&slot) else { return };
        let Some(stream) = host.streams.iter_mut().find(|stream| stream.id == id) else { return };
        if let Some(uri) = stream.todo.pop_front() {
            let server = server_of(&uri);
            let due = now + outcome_of(&uri).1;
            stream.current = Some((uri, due));
            self.wake(server);
        } else {
            stream.is_open = true;
            let uris = stream.accepted.clone();
            host.inbox.put(now, Item::Acknowledged { stream: id, uris });
        }
    }
}
