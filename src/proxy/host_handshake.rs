//! The answers to the handshakes of hosts.

use std::collections::HashMap;

use super::{
    Caller, Fleet, Host, Viewer,
    calls::{AskLogin, ForwardError},
    declared::with_missing,
    loading::load_offer,
};
use crate::{
    catalog::{OfferId, Presence},
    config::Wrapping,
    protocol::{Greeting, error, introduced, offered_capabilities, routed_capabilities},
    upstream::LoadError,
    wire::{Outcome, Raw, edit},
};

/// Maximum number of extensions of all servers that a host is told of.
const MAX_EXTENSIONS: usize = 1000;

impl Fleet {
    /// Returns the `instructions` for a host that connects now.
    pub(crate) fn instructions(&self, host: &dyn Host) -> String {
        let viewer = Viewer::of(host);
        self.board.view(&viewer, &self.board.snapshot_for(&viewer)).instructions()
    }

    /// Returns the capabilities for a host that connects now and requests the revision `version`:
    /// the common ones, and those beyond them of servers whose catalog is known.
    pub(crate) fn capabilities(&self, host: &dyn Host, version: &str) -> Raw {
        let mut offered = Raw::encode(&offered_capabilities());
        let snapshot = self.board.snapshot_for(&Viewer::of(host));
        if host.endpoint().only.is_some() {
            for exposed in snapshot.offers.iter().filter_map(|server| server.exposed()) {
                offered = with_missing(&offered, &exposed.catalog.greeting.capabilities);
            }
            return offered;
        }
        offered = with_missing(&offered, &Raw::encode(&routed_capabilities(version)));
        let live = snapshot.live();
        let of_servers = live.map(|(_, _, exposed)| &exposed.catalog.greeting.capabilities);
        let extensions: HashMap<String, Raw> = of_servers
            .filter_map(|capabilities| edit::get(capabilities, "extensions"))
            .flat_map(|extensions| edit::entries(&extensions))
            .take(MAX_EXTENSIONS)
            .collect();
        let mut extensions: Vec<(&str, &Raw)> =
            extensions.iter().map(|(name, value)| (name.as_str(), value)).collect();
        extensions.sort_unstable_by_key(|(name, _)| *name);
        if extensions.is_empty() {
            return offered;
        }
        edit::set_within(&offered, "extensions", &extensions)
    }

    /// Answers a host's `initialize` or `server/discover` in the words of its only server, which is
    /// started for that unless they are known. Returns `None` if dormouse has to answer itself,
    /// because the endpoint has several servers or its server cannot be reached.
    pub(crate) async fn introduce(&self, caller: &Caller) -> Option<Outcome> {
        let greeting = match greeting_of_sole(self, caller).await? {
            Ok(greeting) => greeting,
            Err(refusal) => return Some(Err(refusal)),
        };
        let own = introduced(&greeting, caller.client.era, &caller.client.version)?;
        Some(Ok(with_kept_results(self, caller, own)))
    }
}

/// Adds the capability of resources to the handshake of a server whose results may be cut: the rest
/// of them is a resource.
fn with_kept_results(fleet: &Fleet, caller: &Caller, handshake: Raw) -> Raw {
    let server = caller.endpoint().passes_through();
    if !server.is_some_and(|it| fleet.servers.config(it).settings.cuts_everywhere()) {
        return handshake;
    }
    let own = edit::get(&handshake, "capabilities").unwrap_or_else(Raw::empty_object);
    let resources = edit::set(&Raw::empty_object(), "resources", &Raw::empty_object());
    edit::set(&handshake, "capabilities", &with_missing(&own, &resources))
}

async fn greeting_of_sole(fleet: &Fleet, caller: &Caller) -> Option<Result<Greeting, Raw>> {
    let endpoint = caller.endpoint();
    let (server, only) = (endpoint.passes_through()?, endpoint.only?);
    let own = fleet.servers.existing(fleet.instance(server, caller));
    if fleet.servers.config(server).connecting.has_own_instances() {
        let known = own.and_then(|own| own.catalog()).map(|catalog| catalog.greeting.clone());
        if let Some(greeting) = known.filter(|greeting| greeting.answer.is_some()) {
            return Some(Ok(greeting));
        }
        return greeting_of_started(fleet, only, caller).await;
    }
    let snapshot = fleet.board.snapshot_for(&caller.viewer());
    if let Some(Presence::Live { exposed, .. }) = snapshot.offer(only).map(|offer| &offer.presence)
        && exposed.whole.greeting.answer.is_some()
    {
        return Some(Ok(exposed.whole.greeting.clone()));
    }
    greeting_of_started(fleet, only, caller).await
}

async fn greeting_of_started(
    fleet: &Fleet,
    offer: OfferId,
    caller: &Caller,
) -> Option<Result<Greeting, Raw>> {
    // Hosts connect at their start, and must not ask their users then.
    match load_offer(fleet, caller, offer, AskLogin::InBrowser).await {
        Ok(lease) => Some(Ok(lease.greeting().clone())),
        Err(error) if fleet.settings().launch.wrapping == Wrapping::Pooled => {
            Some(Err(error::internal(reason_of(&error))))
        }
        Err(error) => refused_handshake(&error).map(Err),
    }
}

/// Returns why a server cannot be connected, without its name.
fn reason_of(error: &ForwardError) -> String {
    match error {
        ForwardError::Load(load) => {
            load.cause().map_or_else(|| load.to_string(), ToString::to_string)
        }
        other => other.to_string(),
    }
}

/// Returns the error with which the server has refused dormouse's `initialize`.
fn refused_handshake(error: &ForwardError) -> Option<Raw> {
    let ForwardError::Load(error) = error else { return None };
    match error {
        LoadError::Failed { cause, .. }
        | LoadError::GivenUp { cause, .. }
        | LoadError::Unreachable { cause, .. } => cause.refused_handshake(),
        _ => None,
    }
}
