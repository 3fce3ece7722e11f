//! The capabilities and the client information that dormouse declares to servers for their hosts.

use std::{collections::HashSet, sync::Arc};

use super::{
    Caller, Fleet, Host,
    audience::is_sole,
    instance::{Instance, InstanceOwner},
};
use crate::{
    catalog::ServerId,
    config::Wrapping,
    protocol::Era,
    upstream::declared_names,
    wire::{Raw, edit},
};

/// Capabilities that are declared to a server while no host is connected. A later caller may be
/// able to answer; a question that its host cannot answer is refused.
const WITHOUT_HOSTS: &[u8] = br#"{"sampling":{},"elicitation":{"form":{},"url":{}}}"#;

fn without_hosts() -> Raw {
    Raw::parse(WITHOUT_HOSTS).unwrap_or_else(|_| Raw::empty_object())
}

/// Returns the union of the capabilities of all hosts that may use an instance.
pub(super) fn capabilities_for(fleet: &Fleet, instance: Instance, era: Era) -> Raw {
    // The hosts of a pool come and go, and so do those of a service of several replicas.
    let settings = fleet.settings();
    let is_service = settings.store.store.is_some()
        && !matches!(instance.owner, Some(InstanceOwner::Host { .. }));
    if is_service || settings.launch.wrapping == Wrapping::Pooled {
        return without_hosts();
    }
    let hosts = fleet.hosts_of(instance);
    let mut clients = hosts.iter().filter_map(|host| host.client()).peekable();
    if clients.peek().is_none() {
        return without_hosts();
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

pub(super) fn declares_more(
    fleet: &Fleet,
    instance: Instance,
    declared: &[String],
    era: Era,
) -> bool {
    let is_alone = |host: &Arc<dyn Host>| host.endpoint().passes_through() == Some(instance.server);
    declared == declared_names(&without_hosts())
        && fleet.hosts_of(instance).iter().all(is_alone)
        && declared_names(&capabilities_for(fleet, instance, era))
            .iter()
            .any(|name| !declared.contains(name))
}

/// Returns the `clientInfo` of the only host of an instance: its owner, or the host of a wrapped
/// server.
pub(super) fn client_info_for(fleet: &Fleet, instance: Instance) -> Option<Raw> {
    let hosts = fleet.hosts_of(instance);
    let is_of_one = instance.owner.is_some() || fleet.settings().launch.wrapping != Wrapping::None;
    if !is_of_one || !is_sole(&hosts) {
        return None;
    }
    hosts.iter().find_map(|host| host.client())?.info.clone()
}

/// Returns the server that the caller talks to directly, if the caller has its instance alone.
pub(super) fn sole_of(fleet: &Fleet, caller: &Caller) -> Option<ServerId> {
    let server = caller.endpoint().passes_through()?;
    is_sole(&fleet.hosts_of(fleet.instance(server, caller))).then_some(server)
}

/// Returns `object` with the members of `other` that it lacks.
pub(super) fn with_missing(object: &Raw, other: &Raw) -> Raw {
    let known: HashSet<String> = edit::entries(object).into_iter().map(|(name, _)| name).collect();
    let mut missing = edit::entries(other);
    missing.retain(|(name, _)| !known.contains(name));
    let missing: Vec<_> = missing.iter().map(|(name, value)| (name.as_str(), value)).collect();
    if missing.is_empty() { object.clone() } else { edit::set_each(object, &missing) }
}
