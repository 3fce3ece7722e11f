//! Reading resources and subscribing to them.

use std::sync::Arc;

use rmcp::model::ErrorCode;

use super::{Caller, Fleet, HostId, fleet::Subscribers, forward::ForwardError};
use crate::{
    catalog::ResourceRoute,
    protocol::{Era, error},
    wire::{Outcome, Raw, edit},
};

impl Fleet {
    pub(super) async fn read_resource(&self, caller: &Caller, params: Raw) -> Outcome {
        let Some(uri) = edit::get_str(&params, "uri") else {
            return Err(error::invalid_params("resources/read needs a \"uri\""));
        };
        match self.snapshot().route_resource(&uri, self.settings.listing) {
            ResourceRoute::Server(server) => {
                reply(self.forward(server, caller, "resources/read", Some(params)).await)
            }
            ResourceRoute::Unlisted => self.read_unlisted(caller, &uri, &params).await,
        }
    }

    /// A server may have what it does not list (the target of a `resource_link`, say): those that are
    /// awake are asked in config order.
    async fn read_unlisted(&self, caller: &Caller, uri: &str, params: &Raw) -> Outcome {
        for (server, upstream) in self.upstreams().iter().enumerate() {
            let Some(lease) = upstream.awake().filter(|lease| lease.greeting().offers("resources"))
            else {
                continue;
            };
            let params = Some(params.clone());
            if let Ok(Ok(result)) =
                self.request(&lease, server, caller, "resources/read", params).await
            {
                return Ok(result);
            }
        }
        Err(not_found(caller.client.era, uri))
    }

    pub(super) async fn subscribe_resource(&self, caller: &Caller, params: &Raw) -> Outcome {
        let Some(uri) = edit::get_str(params, "uri") else {
            return Err(error::invalid_params("resources/subscribe needs a \"uri\""));
        };
        self.subscribe(caller, &uri).await
    }

    /// Subscribes a host to a resource, at the server that has it.
    ///
    /// # Errors
    /// When nobody lists the resource, or its server cannot be had or refuses.
    pub async fn subscribe(&self, caller: &Caller, uri: &str) -> Outcome {
        let server = match self.snapshot().route_resource(uri, self.settings.listing) {
            ResourceRoute::Server(server) => server,
            ResourceRoute::Unlisted => return Err(not_found(caller.client.era, uri)),
        };
        let lease =
            self.lease(server, caller).await.map_err(|error| error::internal(error.to_string()))?;
        let outcome = self
            .upstream(server)
            .subscribe(&lease, uri)
            .await
            .map_err(|cause| error::internal(cause.to_string()))?;
        if outcome.is_ok() {
            let key = (server, uri.to_owned());
            self.lock_subscribers().entry(key).or_default().insert(caller.host.id());
        }
        outcome
    }

    pub(super) async fn unsubscribe_resource(&self, caller: &Caller, params: &Raw) -> Outcome {
        let Some(uri) = edit::get_str(params, "uri") else {
            return Err(error::invalid_params("resources/unsubscribe needs a \"uri\""));
        };
        self.unsubscribe(caller.host.id(), &uri).await;
        Ok(Raw::empty_object())
    }

    /// Takes a host's subscription back; the server hears of it when it was the last one.
    pub async fn unsubscribe(&self, host: HostId, uri: &str) {
        let unwanted =
            remove(&mut self.lock_subscribers(), |wanted, of| wanted.1 == uri && of.remove(&host));
        self.end_subscriptions(unwanted).await;
    }

    /// Forgets a host: its subscriptions end with it. No server is waited for.
    pub fn detach(self: &Arc<Self>, host: HostId) {
        self.remove_host(host);
        let unwanted = remove(&mut self.lock_subscribers(), |_, of| of.remove(&host));
        let fleet = self.clone();
        self.tasks.spawn(async move { fleet.end_subscriptions(unwanted).await });
    }

    async fn end_subscriptions(&self, unwanted: Vec<(usize, String)>) {
        for (server, uri) in unwanted {
            let upstream = self.upstream(server);
            let ended = match upstream.awake() {
                Some(lease) => {
                    upstream.unsubscribe(&lease, &uri).await.is_ok_and(|done| done.is_ok())
                }
                None => false,
            };
            if !ended {
                upstream.forget_subscription(&uri);
            }
        }
    }

    pub(super) fn relay_update(&self, server: usize, uri: &str, params: &Raw) {
        let wanted_by =
            self.lock_subscribers().get(&(server, uri.to_owned())).cloned().unwrap_or_default();
        for host in self.hosts().iter().filter(|host| wanted_by.contains(&host.id())) {
            host.resource_updated(uri, params);
        }
    }

    fn lock_subscribers(&self) -> std::sync::MutexGuard<'_, Subscribers> {
        self.subscribers.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Lets `leave` take hosts out of each subscription, and returns those that nobody is left in.
fn remove(
    subscribers: &mut Subscribers,
    mut leave: impl FnMut(&(usize, String), &mut std::collections::HashSet<HostId>) -> bool,
) -> Vec<(usize, String)> {
    let mut unwanted = Vec::new();
    subscribers.retain(|wanted, of| {
        if leave(wanted, of) && of.is_empty() {
            unwanted.push(wanted.clone());
        }
        !of.is_empty()
    });
    unwanted
}

/// A server's answer, or a JSON-RPC error that says why there is none.
pub(super) fn reply(forwarded: Result<Outcome, ForwardError>) -> Outcome {
    forwarded.unwrap_or_else(|error| Err(error::internal(error.to_string())))
}

/// The code is the one that the host's revision has for it.
fn not_found(era: Era, uri: &str) -> Raw {
    let code = match era {
        Era::Legacy => ErrorCode::RESOURCE_NOT_FOUND,
        Era::Modern => ErrorCode::INVALID_PARAMS,
    };
    error::error(code, format!("unknown resource: {uri}"))
}
