//! What servers send towards hosts: questions, and notifications that belong to no request of ours.

use std::{sync::Arc, time::Duration};

use super::{Fleet, Host};
use crate::{
    peer::CallOptions,
    protocol::{Era, error},
    upstream::Question,
    wire::{Notification, edit},
};

/// Takes a server's question to a host that can answer it, and the answer back.
///
/// Only legacy servers ask by request; a modern one puts its questions into results.
pub(super) fn ask(fleet: &Fleet, question: Question) {
    let Some(host) = addressee(fleet, &question) else {
        let refusal = error::method_not_found(&question.request.method);
        return question.answer(Err(refusal));
    };
    fleet.tasks.spawn(async move {
        let (method, params) = (&question.request.method, question.request.params.clone());
        // A person may have to answer: there is no deadline but the end of either side.
        let options = CallOptions::silent_for(Duration::ZERO);
        let cancelled = question.cancelled.clone();
        let asked = host.peer().request(method, params, options);
        let answer = tokio::select! {
            answer = asked => answer,
            // Dropping the request takes the question back from the host.
            () = cancelled.cancelled() => return,
        };
        question.answer(answer.unwrap_or_else(|cause| {
            Err(error::internal(format!("the host did not answer: {cause}")))
        }));
    });
}

/// The capability by which a host says that it answers `method`.
fn capability(method: &str) -> Option<&'static str> {
    match method {
        "sampling/createMessage" => Some("sampling"),
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

fn addressee(fleet: &Fleet, question: &Question) -> Option<Arc<dyn Host>> {
    let capability = capability(&question.request.method);
    let can_answer = |host: &Arc<dyn Host>| {
        let Some(client) = host.client() else { return false };
        client.era == Era::Legacy
            && match capability {
                Some(capability) => edit::get(&client.capabilities, capability).is_some(),
                None => fleet.settings.single_server,
            }
    };
    fleet.hosts().into_iter().rev().find(can_answer)
}

impl Fleet {
    /// Passes a server's notification on to the hosts that it concerns.
    pub(super) fn relay(&self, server: usize, notification: &Notification) {
        let Notification { method, params } = notification;
        match method.as_str() {
            "notifications/resources/updated" => {
                let Some(params) = params else { return };
                let Some(uri) = edit::get_str(params, "uri") else { return };
                self.relay_update(server, &uri, params);
            }
            "notifications/message" | "notifications/elicitation/complete" => {
                let era = self.upstream(server).era();
                let is_of_era = |host: &Arc<dyn Host>| {
                    host.client().is_some_and(|client| Some(client.era) == era)
                };
                for host in self.hosts().into_iter().filter(is_of_era) {
                    host.notify(notification.clone());
                }
            }
            _ if self.settings.single_server => {
                self.hosts().iter().for_each(|host| host.notify(notification.clone()));
            }
            _ => tracing::debug!(method, "not passed on: no host knows which server it is from"),
        }
    }
}
