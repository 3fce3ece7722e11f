//! Reports of instances to the fleet, and the capabilities declared to their servers.

use std::{
    collections::HashSet,
    pin::Pin,
    sync::{Arc, Weak},
};

use super::{
    Caller, Event, Fleet, Host, audience::is_sole, instance::Instance, memory, notifications,
    questions,
};
use crate::{
    catalog::{Origin, Presence, ServerCatalog, ServerId},
    config::Wrapping,
    protocol::Era,
    upstream::{Audience, Observer, Question, Recalled, declared_names},
    wire::{Notification, Raw, edit},
};

/// Reports the life of an instance to the fleet.
pub(super) struct InstanceObserver {
    pub(super) fleet: Weak<Fleet>,
    pub(super) instance: Instance,
}

impl InstanceObserver {
    fn tell(&self, tell: impl FnOnce(&Fleet, ServerId)) {
        // The fleet is gone only when dormouse ends.
        if let Some(fleet) = self.fleet.upgrade() {
            tell(&fleet, self.instance.server);
        }
    }
}

impl Observer for InstanceObserver {
    fn live(&self, catalog: Arc<ServerCatalog>, origin: Origin, audience: Audience) {
        self.tell(|fleet, server| {
            fleet.memory.tell_learned();
            let exposed = memory::expose(fleet, server, &catalog);
            fleet.publish(self.instance, audience, |before| {
                let origin = match before {
                    // The origin of a live catalog does not change while it is live.
                    Presence::Live { origin, .. } => *origin,
                    _ => origin,
                };
                Some(Presence::Live { exposed, origin })
            });
        });
    }

    fn learned(&self, catalog: &Arc<ServerCatalog>) {
        self.tell(|fleet, _| memory::keep(fleet, self.instance, catalog));
    }

    fn recall(&self) -> Option<Recalled> {
        memory::recall(&*self.fleet.upgrade()?, self.instance)
    }

    fn troubled(&self, trouble: Option<String>) {
        self.tell(|fleet, _| {
            fleet.publish(self.instance, Audience::All, |before| match before {
                // The catalog stays: the next call tries to reach the server again.
                Presence::Live { .. } | Presence::Evicted | Presence::Disabled => None,
                Presence::Offered { .. } => Some(Presence::Offered { trouble }),
            });
        });
    }

    fn failed(&self, cause: String) {
        self.tell(|fleet, _| fleet.note_failure(self.instance, cause));
    }

    fn evicted(&self) {
        self.tell(|fleet, _| {
            fleet.publish(self.instance, Audience::All, |before| match before {
                // An instance of another host has shown that the server can be connected.
                Presence::Live { .. } => None,
                _ => Some(Presence::Evicted),
            });
        });
    }

    fn moved(&self) {
        self.tell(|fleet, server| fleet.events.send(Event::ServerMoved(server)));
    }

    fn first_attempt_over(&self) {
        // Only shared instances are started eagerly.
        if self.instance.owner.is_none() {
            self.tell(|fleet, server| fleet.servers.first_attempt_over(server));
        }
    }

    fn notification(&self, notification: Notification, cause: Option<u64>) {
        self.tell(|fleet, _| notifications::relay(fleet, self.instance, &notification, cause));
    }

    fn question(&self, question: Question) {
        self.tell(|fleet, _| questions::ask(fleet, self.instance, question));
    }

    fn capabilities(&self, era: Era) -> Raw {
        let Some(fleet) = self.fleet.upgrade() else { return Raw::empty_object() };
        capabilities_for(&fleet, self.instance, era)
    }

    fn declares_more(&self, declared: &[String], era: Era) -> bool {
        let Some(fleet) = self.fleet.upgrade() else { return false };
        declares_more(&fleet, self.instance, declared, era)
    }

    fn client_info(&self) -> Option<Raw> {
        client_info_for(&*self.fleet.upgrade()?, self.instance)
    }

    fn is_congested(&self) -> bool {
        self.fleet.upgrade().is_some_and(|fleet| fleet.audience.is_congested())
    }

    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            if let Some(fleet) = self.fleet.upgrade() {
                fleet.audience.ready().await;
            }
        })
    }
}

/// Capabilities that are declared to a server while no host is connected. A later caller may be
/// able to answer; a question that its host cannot answer is refused.
const FOR_NOBODY: &[u8] = br#"{"sampling":{},"elicitation":{"form":{},"url":{}}}"#;

fn for_nobody() -> Raw {
    Raw::parse(FOR_NOBODY).unwrap_or_else(|_| Raw::empty_object())
}

/// Returns the union of the capabilities of all hosts that may use an instance.
pub(super) fn capabilities_for(fleet: &Fleet, instance: Instance, era: Era) -> Raw {
    let hosts = fleet.audience.hosts_of(instance);
    let mut clients = hosts.iter().filter_map(|host| host.client()).peekable();
    if clients.peek().is_none() {
        return for_nobody();
    }
    let mut union = Raw::empty_object();
    for client in clients {
        for (name, value) in edit::entries(&client.capabilities_for(era)) {
            let both = match edit::get(&union, &name) {
                Some(known) => with_missing(&known, &value),
                None => value,
            };
            union = edit::set(&union, &name, &both);
        }
    }
    // A server must not work in the roots of one host for another.
    if is_sole(&hosts) { union } else { edit::without(&union, &["roots"]) }
}

fn declares_more(fleet: &Fleet, instance: Instance, declared: &[String], era: Era) -> bool {
    let is_alone = |host: &Arc<dyn Host>| host.endpoint().passes_through() == Some(instance.server);
    declared == declared_names(&for_nobody())
        && fleet.audience.hosts_of(instance).iter().all(is_alone)
        && declared_names(&capabilities_for(fleet, instance, era))
            .iter()
            .any(|name| !declared.contains(name))
}

/// Returns the `clientInfo` of the only host of an instance: its owner, or the host of a wrapped
/// server.
fn client_info_for(fleet: &Fleet, instance: Instance) -> Option<Raw> {
    let hosts = fleet.audience.hosts_of(instance);
    let is_of_one = instance.owner.is_some() || fleet.settings().wrapping != Wrapping::None;
    if !is_of_one || !is_sole(&hosts) {
        return None;
    }
    hosts.iter().find_map(|host| host.client())?.info.clone()
}

/// Returns the server that the caller talks to directly, if the caller has its instance alone.
pub(super) fn sole_of(fleet: &Fleet, caller: &Caller) -> Option<ServerId> {
    let server = caller.endpoint().passes_through()?;
    is_sole(&fleet.audience.hosts_of(fleet.instance(server, caller))).then_some(server)
}

/// Returns `object` with the members of `other` that it lacks.
pub(super) fn with_missing(object: &Raw, other: &Raw) -> Raw {
    let known: HashSet<String> = edit::entries(object).into_iter().map(|(name, _)| name).collect();
    let mut missing = edit::entries(other);
    missing.retain(|(name, _)| !known.contains(name));
    let missing: Vec<_> = missing.iter().map(|(name, value)| (name.as_str(), value)).collect();
    if missing.is_empty() { object.clone() } else { edit::set_each(object, &missing) }
}
