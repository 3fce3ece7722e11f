//! A server that is awake for a request: it is woken or loaded, and somebody logs in to it if need be.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::json;

use super::forward::ForwardError;
use crate::{
    catalog::{Presence, ServerId},
    protocol::method,
    proxy::{Caller, Fleet, instance::Instance, logins, logins::LoginOutcome},
    upstream::{Lease, LoadError, Upstream},
    wire::{Raw, edit},
};

/// Maximum number of logins for one request: some servers want another login as soon as one is used.
const MAX_LOGINS: usize = 2;

/// How often a host that waits is told that its request goes on.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Who may be asked to log in for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum AskLogin {
    /// The host's user, through the host or in a browser.
    ThroughHost,
    /// A user at this machine, in a browser: hosts list when they start, and must not ask then.
    InBrowser,
}

/// Returns the instance of a server that a caller uses, awake. Where the server wants a login,
/// the caller's user is asked for it if that can be.
pub(in crate::proxy) async fn lease(
    fleet: &Fleet,
    server: ServerId,
    caller: &Caller,
) -> Result<(Instance, Lease), ForwardError> {
    lease_asking(fleet, server, caller, AskLogin::ThroughHost).await
}

/// As [`Fleet::lease`], with a rule for who may be asked to log in.
pub(in crate::proxy) async fn lease_asking(
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
        match Box::pin(logins::log_in(fleet, server, caller, logins::way(fleet, caller, ask))).await
        {
            LoginOutcome::LoggedIn => {}
            LoginOutcome::Asks(result) => return Err(ForwardError::Asks(result)),
            LoginOutcome::Failed(error) => return Err(error),
            LoginOutcome::NobodyToAsk => return Err(required.into()),
        }
    }
}

/// As `lease`, where nobody is asked to log in.
async fn lease_unasked(
    fleet: &Fleet,
    server: ServerId,
    caller: &Caller,
) -> Result<(Instance, Lease), LoadError> {
    loop {
        let instance = fleet.instance(server, caller);
        if !fleet.servers.is_current(instance) {
            return Err(LoadError::Gone { server: fleet.servers.config(server).name.clone() });
        }
        match wake(fleet, instance, caller).await {
            // The config has changed meanwhile, and it is another instance's turn.
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
        let is_live = snapshot
            .view(instance.server)
            .is_some_and(|view| matches!(view.presence, Presence::Live { .. }));
        is_live.then(|| fleet.servers.shared(instance.server).catalog()).flatten()
    });
    if instance.owner.is_some() {
        for uri in fleet.audience.subscriptions().uris_of(instance) {
            upstream.want(&uri);
        }
    }
    upstream
}

/// A host that asked for progress is told that it takes a while.
pub(in crate::proxy) async fn with_beats<T>(
    caller: &Caller,
    message: &str,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        if let Ok(done) = tokio::time::timeout(HEARTBEAT_INTERVAL, &mut work).await {
            return done;
        }
        beat(caller, message);
    }
}

/// The values rise from -1 towards 0, so that those of the server itself still rise after them.
fn beat(caller: &Caller, message: &str) {
    let Some(token) = &caller.progress_token else { return };
    let beats = caller.beats.fetch_add(1, Ordering::Relaxed) + 1;
    let params = Raw::encode(&json!({
        "progress": -1.0 / f64::from(beats),
        "message": message,
    }));
    let params = edit::set(&params, "progressToken", token);
    caller.peer.notify(method::PROGRESS, Some(params));
}
