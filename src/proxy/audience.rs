//! The attached hosts, and the notifications that each of them wants.

mod levels;
mod subscriptions;

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use serde_json::json;
use tokio::time::Instant;

use super::{Caller, Host, HostId, Principal};
use crate::{
    base::Lock,
    catalog::Changes,
    peer::Peer,
    protocol::{Era, LogLevel, method},
    wire::Raw,
};
pub(super) use levels::LogLevels;
pub(super) use subscriptions::{AttemptId, Subscriptions};

pub(crate) use subscriptions::Subscriber;

/// The interval at which a server that waits checks whether a host is still the only one.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time for which one message of a server waits for a host that does not read.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The attached hosts. It knows no server: an instance is only the key of a subscription.
#[derive(Default)]
pub(super) struct Audience {
    /// Attached hosts, oldest first.
    hosts: Lock<BTreeMap<HostId, Weak<dyn Host>>>,
    /// The peers of hosts on pipes, for which servers wait.
    waited_for: Lock<BTreeMap<HostId, Peer>>,
    /// Hosts that wait for a list now.
    listing: Lock<Vec<HostId>>,
    levels: LogLevels,
    subscriptions: Subscriptions,
}

impl Audience {
    pub(super) fn attach(&self, host: &Arc<dyn Host>) {
        self.hosts.lock().insert(host.id(), Arc::downgrade(host));
        if host.peer().holds_up() {
            self.waited_for.lock().insert(host.id(), host.peer().clone());
        }
    }

    /// Forgets a host. Returns whether it had asked for a log level.
    pub(super) fn detach(&self, id: HostId) -> bool {
        self.hosts.lock().remove(&id);
        self.waited_for.lock().remove(&id);
        self.levels.forget(id)
    }

    /// Returns the attached hosts, oldest first.
    pub(super) fn hosts(&self) -> Vec<Arc<dyn Host>> {
        self.hosts.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Returns the sessions of one principal.
    pub(super) fn sessions_of(&self, principal: Principal) -> Vec<Arc<dyn Host>> {
        let mut hosts = self.hosts();
        hosts.retain(|host| host.principal() == principal);
        hosts
    }

    /// Returns the era of the oldest host that has introduced itself; legacy while there is none.
    pub(super) fn first_era(&self) -> Era {
        first_era(&self.hosts())
    }

    /// Tells those hosts for which `is_meant` holds that their lists have changed.
    pub(super) fn announce(&self, changes: Changes, is_meant: impl Fn(&dyn Host) -> bool) {
        for host in self.hosts() {
            if is_meant(host.as_ref()) {
                host.announce(changes);
            }
        }
    }

    /// Tells each host that its lists have changed for which `changes` names any.
    pub(super) fn announce_each(&self, changes: impl Fn(&dyn Host) -> Changes) {
        for host in self.hosts() {
            let changes = changes(host.as_ref());
            if changes.any() {
                host.announce(changes);
            }
        }
    }

    /// Returns whether the only host does not read what servers send.
    ///
    /// Servers never wait for one of several hosts, since the others would wait with them: messages
    /// for a host that does not read are queued, and dropped when there are too many.
    pub(super) fn is_congested(&self) -> bool {
        self.hosts.lock().len() <= 1 && self.waited_for.lock().values().any(Peer::is_full)
    }

    /// Waits until the only host reads again, another host comes, or [`READ_TIMEOUT`] has passed.
    pub(super) async fn ready(&self) {
        let deadline = Instant::now() + READ_TIMEOUT;
        while self.is_congested() && Instant::now() < deadline {
            let peers: Vec<Peer> = self.waited_for.lock().values().cloned().collect();
            for peer in peers {
                peer.ready(CHECK_INTERVAL).await;
            }
        }
    }

    /// Notes that a host waits for a list, for as long as the returned guard lives.
    pub(super) fn begin_listing(&self, host: HostId) -> OpenListing<'_> {
        self.listing.lock().push(host);
        OpenListing { audience: self, host }
    }

    pub(super) fn is_listing(&self, host: HostId) -> bool {
        self.listing.lock().contains(&host)
    }

    /// Returns whether the host of a request wants a log message of this level.
    pub(super) fn wants_log(&self, caller: &Caller, level: Option<LogLevel>) -> bool {
        match caller.client.era {
            Era::Legacy => self.levels.wants(caller.host.id(), level),
            // Modern servers must not send messages that no request asked for (2026-07-28,
            // server/utilities/logging).
            Era::Modern => {
                caller.log_level.is_some_and(|wanted| level.is_none_or(|of| of >= wanted))
            }
        }
    }

    /// Sends the host of a request a log message of dormouse.
    pub(super) fn log_to(&self, caller: &Caller, level: LogLevel, text: &str) {
        if self.wants_log(caller, Some(level)) {
            let params = json!({"level": level.name(), "logger": "dormouse", "data": text});
            caller.peer.notify(method::MESSAGE, Some(Raw::encode(&params)));
        }
    }

    pub(super) fn levels(&self) -> &LogLevels {
        &self.levels
    }

    pub(super) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }
}

/// Returns the era of the first of these hosts that has introduced itself; legacy where none has.
pub(super) fn first_era(hosts: &[Arc<dyn Host>]) -> Era {
    let client = hosts.iter().find_map(|host| host.client());
    client.map_or(Era::Legacy, |client| client.era)
}

/// Returns whether these sessions have one principal. A modern host over HTTP has a session for
/// each request.
pub(super) fn is_sole(hosts: &[Arc<dyn Host>]) -> bool {
    hosts.windows(2).all(|pair| pair[0].principal() == pair[1].principal())
}

/// A host that waits for a list.
pub(super) struct OpenListing<'a> {
    audience: &'a Audience,
    host: HostId,
}

impl Drop for OpenListing<'_> {
    fn drop(&mut self) {
        let mut listing = self.audience.listing.lock();
        if let Some(position) = listing.iter().position(|host| *host == self.host) {
            listing.swap_remove(position);
        }
    }
}
