//! The stage *lease*: an instance for a request. The server is woken or loaded, and a user logs in
//! if needed.

use super::{
    forward_error::ForwardError,
    heartbeat::with_beats,
    logins::{self, AskLogin},
};
use crate::{
    catalog::ServerId,
    proxy::{Caller, Fleet, instance::Instance},
    upstream::{Lease, LoadError, Upstream},
};

/// Maximum number of logins for one request: some servers demand another login as soon as one is
/// used.
const MAX_LOGINS: usize = 2;

/// Returns the caller's instance of a server, awake. If the server demands a login, `ask` names the
/// user that is asked for it.
pub(in crate::proxy) async fn lease(
    fleet: &Fleet,
    server: ServerId,
    caller: &Caller,
    ask: AskLogin,
) -> Result<(Instance, Lease), ForwardError> {
    let mut logins = 0;
    loop {
        let required = match lease_unasked(fleet, server, caller).await {
            Err(required @ LoadError::LoginRequired { .. }) if logins < MAX_LOGINS => required,
            leased => return Ok(leased?),
        };
        logins += 1;
        if !Box::pin(logins::log_in(fleet, server, caller, ask)).await? {
            return Err(required.into());
        }
    }
}

/// As [`lease`], without asking for a login.
async fn lease_unasked(
    fleet: &Fleet,
    server: ServerId,
    caller: &Caller,
) -> Result<(Instance, Lease), LoadError> {
    loop {
        let instance = fleet.instance(server, caller);
        let is_shown = fleet.board.shows(&caller.endpoint(), server);
        if !fleet.servers.is_current(instance) || !is_shown {
            return Err(LoadError::Gone { server: fleet.servers.config(server).name.clone() });
        }
        match wake(fleet, instance, caller).await {
            // The config has changed meanwhile, and another instance is current.
            Err(_) if !fleet.servers.is_current(instance) => {}
            leased => return leased.map(|lease| (instance, lease)),
        }
    }
}

async fn wake(fleet: &Fleet, instance: Instance, caller: &Caller) -> Result<Lease, LoadError> {
    let upstream = upstream(fleet, instance);
    let era = caller.client.era;
    let message = format!("starting server {}", upstream.name());
    with_beats(caller, &message, upstream.lease(era)).await
}

/// Returns the handle of an instance, which is made at the first use.
pub(in crate::proxy) fn upstream(fleet: &Fleet, instance: Instance) -> Upstream {
    let upstream = fleet.servers.upstream(instance, || {
        let snapshot = fleet.board.snapshot();
        let mut offers = snapshot.offers_of(instance.server);
        let is_live = offers.any(|(_, offer)| offer.presence.origin().is_some());
        // Another login may show something else.
        let is_same = instance.login_owner().is_none();
        (is_live && is_same).then(|| fleet.servers.shared(instance.server).catalog()).flatten()
    });
    if instance.owner.is_some() {
        for uri in fleet.audience.subscriptions().uris_of(instance) {
            upstream.restore_subscription(&uri);
        }
    }
    upstream
}
