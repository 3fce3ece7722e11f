//! Notifications from servers to hosts, and from hosts to servers.

use std::collections::HashSet;

use super::{
    Caller, Fleet, Host, Viewer,
    audience::is_sole,
    calls::{self, Call},
    declared,
    in_flight::InFlightCall,
    instance::Instance,
    known_tasks, resources, streams,
};
use crate::{
    catalog::Changes,
    config::Wrapping,
    protocol::{Era, LogLevel, error, method},
    wire::{Notification, Outcome, Raw, edit},
};

impl Fleet {
    /// Passes a notification of a host on to the servers that it concerns.
    pub(crate) fn notice(&self, host: &dyn Host, notification: &Notification) {
        let is_roots = notification.method == method::ROOTS_LIST_CHANGED;
        let only = host.endpoint().only_server();
        for (instance, upstream) in self.servers.instances() {
            let is_theirs = instance.is_for(host);
            let is_concerned = is_theirs
                && if is_roots {
                    // Roots are declared to a server only if it has one host.
                    self.board.shows(&host.endpoint(), instance.server)
                        && is_sole(&self.hosts_of(instance))
                } else {
                    only == Some(instance.server)
                };
            let lease = is_concerned.then(|| upstream.awake()).flatten();
            let Some(lease) = lease else { continue };
            if lease.greeting().era == Era::Legacy || !is_roots {
                lease.peer().notify(&notification.method, notification.params.clone());
            }
        }
    }
}

/// Passes a server's notification on to the hosts that it concerns. `cause` is the call on whose
/// stream it came, if the transport tells.
pub(super) fn relay(
    fleet: &Fleet,
    instance: Instance,
    notification: &Notification,
    cause: Option<u64>,
) {
    let Notification { method, params } = notification;
    if streams::relay_on_stream(fleet, instance, notification)
        || relay_unchanged(fleet, instance, notification)
    {
        return;
    }
    let none = Changes::default();
    match method.as_str() {
        method::TOOLS_LIST_CHANGED => {
            relay_list_change(fleet, instance, Changes { tools: true, ..none });
        }
        method::RESOURCES_LIST_CHANGED => {
            relay_list_change(fleet, instance, Changes { resources: true, ..none });
        }
        method::PROMPTS_LIST_CHANGED => {
            relay_list_change(fleet, instance, Changes { prompts: true, ..none });
        }
        method::RESOURCE_UPDATED => {
            let Some(params) = params else { return };
            let Some(uri) = edit::get_str(params, "uri") else { return };
            resources::relay_update(fleet, instance, &uri, params);
        }
        method::MESSAGE => {
            let level = params.as_ref().and_then(LogLevel::of_params);
            relay_to_callers(fleet, instance, notification, cause, |caller| {
                fleet.audience.wants_log(caller, level)
            });
        }
        method::TASK_UPDATED | method::TASK_STATUS
            if known_tasks::relay_task(fleet, instance, notification) => {}
        method::ELICITATION_COMPLETE => {
            relay_to_callers(fleet, instance, notification, cause, |_| true);
        }
        // Unknown notifications pass if it is clear which server they come from.
        _ if cause.is_some() => {
            relay_to_callers(fleet, instance, notification, cause, |caller| {
                caller.endpoint().only_server() == Some(instance.server)
            });
        }
        _ => relay_to_hosts(fleet, instance, notification),
    }
}

/// Passes a notification on unchanged to the only host of a server, if both speak one era. Returns
/// whether it did. A modern host listens only on its streams, except for those of a wrapped server.
fn relay_unchanged(fleet: &Fleet, instance: Instance, notification: &Notification) -> bool {
    let hosts = fleet.hosts_of(instance);
    let ([host], Some(upstream)) = (hosts.as_slice(), fleet.servers.existing(instance)) else {
        return false;
    };
    let era = upstream.connected_era();
    let has_stream =
        era == Some(Era::Legacy) || fleet.settings().launch.wrapping == Wrapping::Exclusive;
    let passes = era.is_some()
        && host.endpoint().passes_through() == Some(instance.server)
        && host.client().map(|client| client.era) == era
        && has_stream
        && is_stateless(&notification.method);
    if passes {
        host.peer().notify(&notification.method, notification.params.clone());
    }
    passes
}

/// Tells the hosts that talk to the server directly of a changed list. All others are told when the
/// list has been read and differs.
fn relay_list_change(fleet: &Fleet, instance: Instance, changes: Changes) {
    let is_told = |host: &dyn Host| {
        host.endpoint().passes_through() == Some(instance.server)
            && instance.is_for(host)
            && fleet.board.has_loaded(&Viewer::of(host), instance.server)
    };
    fleet.audience.announce(changes, is_told);
}

/// Passes a notification that belongs to a call on to the host of the call, and any other to the
/// legacy hosts that see the server. A modern host is told only about its calls.
fn relay_to_callers(
    fleet: &Fleet,
    instance: Instance,
    notification: &Notification,
    cause: Option<u64>,
    is_wanted: impl Fn(&Caller) -> bool,
) {
    let callers = fleet.calls.in_flight.candidates(instance, cause);
    if callers.is_empty() && cause.is_none() {
        return relay_to_hosts(fleet, instance, notification);
    }
    let mut told = HashSet::new();
    // The latest call of each host.
    for InFlightCall { caller, .. } in callers.iter().rev() {
        if told.insert(caller.host.id()) && is_wanted(caller) {
            caller.peer.notify(&notification.method, notification.params.clone());
        }
    }
}

fn relay_to_hosts(fleet: &Fleet, instance: Instance, notification: &Notification) {
    let Notification { method, params } = notification;
    let is_known = matches!(method.as_str(), method::MESSAGE | method::ELICITATION_COMPLETE);
    let level = params.as_ref().and_then(LogLevel::of_params);
    let is_concerned = |host: &dyn Host| {
        let endpoint = host.endpoint();
        instance.is_for(host)
            && (endpoint.only_server() == Some(instance.server)
                || is_known && endpoint.only.is_none())
            && fleet.board.has_loaded(&Viewer::of(host), instance.server)
            && host.client().is_some_and(|client| client.era == Era::Legacy)
            && (method != method::MESSAGE || fleet.audience.levels().wants(host.id(), level))
    };
    for host in fleet.audience.hosts().into_iter().filter(|host| is_concerned(host.as_ref())) {
        host.peer().notify(method, params.clone());
    }
}

/// Sets the least severe log messages that a legacy host wants. Servers are told the lowest level
/// of all hosts; the server of a host that talks to it directly is asked by that host.
pub(super) async fn set_log_level(fleet: &Fleet, caller: &Caller, params: Option<Raw>) -> Outcome {
    let level = params.as_ref().and_then(LogLevel::of_params);
    let host = caller.host.id();
    let Some(server) = declared::sole_of(fleet, caller) else {
        let unknown = || error::invalid_params("logging/setLevel needs a known \"level\"");
        fleet.audience.levels().set(host, level.ok_or_else(unknown)?);
        tell_log_level(fleet);
        return Ok(Raw::empty_object());
    };
    let call = Call::new(server, caller, method::LOGGING_SET_LEVEL, params);
    let accepted = calls::answer(fleet, call).await?;
    if let Some(level) = level {
        fleet.audience.levels().set(host, level);
        if let Some(upstream) = fleet.servers.existing(fleet.instance(server, caller)) {
            upstream.want_log_level(level);
        }
    }
    Ok(accepted)
}

pub(super) fn tell_log_level(fleet: &Fleet) {
    let Some(level) = fleet.audience.levels().most_verbose() else { return };
    for (_, upstream) in fleet.servers.instances() {
        upstream.want_log_level(level);
        fleet.context.tasks.spawn(async move { upstream.tell_log_level().await });
    }
}

/// Returns whether dormouse keeps nothing that notifications of this method change.
fn is_stateless(method: &str) -> bool {
    !matches!(
        method,
        method::MESSAGE | method::TASK_UPDATED | method::TASK_STATUS | method::ELICITATION_COMPLETE
    )
}
