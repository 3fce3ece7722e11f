//! The hosts that attach and detach, with everything that ends with them.

use std::sync::Arc;

use super::{
    Event, Fleet, Host, Principal, Subscriber, instance::Instance, known_tasks, large_results,
    notifications, reaper::reap, resources::end_later,
};

impl Fleet {
    pub(crate) fn attach(&self, host: &Arc<dyn Host>) {
        self.audience.attach(host);
        self.events.send(Event::HostAttached);
        if let Some(sink) = self.events.sink() {
            sink.host_attached(host.id());
        }
    }

    /// Forgets a session of a host with its subscriptions, without waiting for servers.
    pub(crate) fn detach(self: &Arc<Self>, host: &dyn Host) {
        let id = host.id();
        if self.audience.detach(id) {
            notifications::tell_log_level(self);
        }
        self.events.send(Event::HostDetached);
        if let Some(sink) = self.events.sink() {
            sink.host_detached(id, host.client().as_deref());
        }
        known_tasks::end_task_streams(self, |of| of.host == id);
        let unwanted = self.audience.subscriptions().remove(|_, of| of.host == id);
        end_later(self, unwanted);
    }

    /// Removes all subscriptions of a stream, without waiting for servers.
    pub(crate) fn end_stream(self: &Arc<Self>, subscriber: &Subscriber) {
        known_tasks::end_task_streams(self, |of| of == subscriber);
        let unwanted = self.audience.subscriptions().remove(|_, of| of == subscriber);
        end_later(self, unwanted);
    }

    /// Ends everything that belongs to this principal alone.
    pub(crate) fn end_instances_of(&self, owner: Principal) {
        // A record that is stored from now on would be empty.
        self.memory.hosts.forget(owner);
        self.board.forget(owner);
        large_results::discard(self, self.calls.results.forget(owner));
        self.calls.consents.forget(owner);
        known_tasks::unsubscribe(self, self.extensions.tasks.forget(owner));
        self.servers.owned().stop_those_of(owner);
    }
}

/// Ends the instances of people who have not used them for some time, and have no session.
pub(super) fn reap_instances(fleet: &Fleet) {
    reap(fleet, fleet.servers.owned().added(), |fleet| {
        let hosts = fleet.audience.hosts();
        let is_needed =
            |instance: Instance| hosts.iter().any(|host| instance.is_for(host.as_ref()));
        fleet.servers.owned().retire_unused(is_needed)
    });
}
