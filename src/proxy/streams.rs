//! Notification streams (2026-07-28, basic/patterns, Subscribe and Notify) between a wrapped server
//! and its only host. Everywhere else dormouse answers `subscriptions/listen` itself.

use super::{
    Caller, Fleet,
    calls::{self, AskLogin, Call},
    in_flight::InFlightCall,
    instance::Instance,
};
use crate::{
    config::Wrapping,
    protocol::{Era, Meta, method},
    wire::{Id, Notification, Outcome, Raw, edit},
};

impl Fleet {
    /// Opens a stream at the wrapped server, and returns its end; `None` if dormouse has to answer,
    /// because the server speaks the other era or cannot be reached.
    pub(crate) async fn pass_stream(&self, caller: &Caller, params: &Raw) -> Option<Outcome> {
        let server = caller.endpoint().passes_through()?;
        if self.settings().launch.wrapping != Wrapping::Exclusive {
            return None;
        }
        let (_, lease) = calls::lease(self, server, caller, AskLogin::InBrowser).await.ok()?;
        if lease.greeting().era == Era::Legacy {
            return None;
        }
        let call = Call::new(server, caller, method::SUBSCRIPTIONS_LISTEN, Some(params.clone()));
        let ended = calls::answer(self, call).await;
        Some(match host_id(caller) {
            Some(id) => ended.map(|result| marked(&result, &id)),
            None => ended,
        })
    }
}

/// Passes on a notification that a server has sent on a host's stream. Returns whether it was one.
pub(super) fn relay_on_stream(
    fleet: &Fleet,
    instance: Instance,
    notification: &Notification,
) -> bool {
    let Some(InFlightCall { caller, .. }) = stream_of(fleet, instance, notification) else {
        return false;
    };
    let (Some(id), Some(params)) = (host_id(&caller), &notification.params) else {
        return false;
    };
    caller.peer.notify(&notification.method, Some(marked(params, &id)));
    true
}

fn stream_of(
    fleet: &Fleet,
    instance: Instance,
    notification: &Notification,
) -> Option<InFlightCall> {
    let meta = edit::get(notification.params.as_ref()?, "_meta")?;
    let stream = edit::get(&meta, Meta::SUBSCRIPTION_ID).and_then(Id::new)?.as_u64()?;
    let mut calls = fleet.calls.in_flight.candidates(instance, Some(stream)).into_iter();
    calls.find(|entry| {
        entry
            .caller
            .request
            .as_ref()
            .is_some_and(|request| request.method == method::SUBSCRIPTIONS_LISTEN)
    })
}

/// Returns the id that the host has given the stream.
fn host_id(caller: &Caller) -> Option<Id> {
    caller.request.as_ref().map(|request| request.id.clone())
}

/// Replaces the id of a stream by the host's.
fn marked(object: &Raw, id: &Id) -> Raw {
    edit::set_within(object, "_meta", &[(Meta::SUBSCRIPTION_ID, id.raw())])
}
