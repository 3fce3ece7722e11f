//! Questions of servers to hosts: sampling, elicitation, roots (docs/design/eras.md).

use std::{sync::Arc, time::Duration};

use super::{
    Caller, Fleet, Host, Principal,
    asking::{HostQuestion, Reaction, is_declared},
    audience::is_sole,
    declared,
    in_flight::{InFlightCall, QuestionRoute},
    instance::Instance,
    known_tasks,
};
use crate::{
    config::Wrapping,
    peer::{Peer, Pulse},
    protocol::{Era, error, method},
    upstream::Question,
};

/// Maximum time for a host to answer, since a user may have to. A host that has left the stream of
/// its response may never see the question, nor may one that made no call.
const CAUSED_TIMEOUT: Duration = Duration::from_hours(1);
const UNCAUSED_TIMEOUT: Duration = Duration::from_mins(10);
/// The interval at which a call is kept from timing out while its question is open.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The host that a question is for.
enum Addressee {
    /// The host whose call caused the question.
    Call(InFlightCall),
    /// A host without a call in flight at the server.
    Host(Arc<dyn Host>),
}

/// Gives a legacy server's question to its host. A modern server puts its questions into results.
pub(super) fn ask(fleet: &Fleet, instance: Instance, mut question: Question) {
    let owner = match &question.request.params {
        Some(params) => known_tasks::owner_of_question(fleet, instance, params),
        None => None,
    };
    let owner = owner.map(|(owner, params)| {
        question.request.params = Some(params);
        owner
    });
    match addressee(fleet, instance, &question, owner) {
        None => {
            let refusal = error::method_not_found(&question.request.method);
            question.answer(Err(refusal));
        }
        Some(Addressee::Call(InFlightCall { questions, caller, pulse, .. })) => match questions {
            QuestionRoute::Requests => {
                fleet.context.tasks.spawn(relay(caller.peer, question, Some(pulse)));
            }
            QuestionRoute::Gathered(gathered) | QuestionRoute::Parked(gathered) => {
                // A call that has just ended takes no questions; the server learns so when the
                // question is dropped.
                let _ = gathered.send(question);
            }
        },
        Some(Addressee::Host(host)) => {
            fleet.context.tasks.spawn(relay(host.peer().clone(), question, None));
        }
    }
}

/// Asks a legacy host, and gives its answer to the server.
async fn relay(host: Peer, question: Question, pulse: Option<Pulse>) {
    let (method, params) = (question.request.method.clone(), question.request.params.clone());
    let limit = if pulse.is_some() { CAUSED_TIMEOUT } else { UNCAUSED_TIMEOUT };
    let asked = HostQuestion { method, params };
    let asking = asked.ask(&host, limit, question.cancelled.cancelled());
    let reaction = tokio::select! {
        reaction = asking => reaction,
        () = keep_alive(pulse) => unreachable!("it never ends"),
    };
    question.answer(match reaction {
        Reaction::Answered(answer) => Ok(answer),
        Reaction::Refused(refusal) => Err(refusal),
        Reaction::Failed(cause) => {
            Err(error::internal(format!("the host did not answer: {cause}")))
        }
        Reaction::Withdrawn => return,
    });
}

async fn keep_alive(pulse: Option<Pulse>) {
    loop {
        if let Some(pulse) = &pulse {
            pulse.beat();
        }
        tokio::time::sleep(KEEP_ALIVE_INTERVAL).await;
    }
}

/// Returns the host for a question. `owner` is the host that created the task of the question.
fn addressee(
    fleet: &Fleet,
    instance: Instance,
    question: &Question,
    owner: Option<Principal>,
) -> Option<Addressee> {
    let method = &question.request.method;
    let is_owner = |host: &dyn Host| owner.is_none_or(|owner| owner == host.principal());
    let mut in_flight = fleet.calls.in_flight.candidates(instance, question.cause);
    in_flight.retain(|entry| is_owner(entry.caller.host.as_ref()));
    if in_flight.iter().any(|entry| !entry.is_parked()) {
        // A parked call waits for its host, and the server does not work on it.
        in_flight.retain(|entry| !entry.is_parked());
    }
    let is_pooled = fleet.settings().launch.wrapping == Wrapping::Pooled;
    if let Some(last) = in_flight.pop() {
        let is_others = |entry: &InFlightCall| entry.caller.host.id() != last.caller.host.id();
        if in_flight.iter().any(is_others) {
            let server = fleet.servers.config(instance.server).name.clone();
            if is_pooled {
                tracing::warn!(server, method, "refused a question: several hosts have calls");
                return None;
            }
            tracing::warn!(
                server,
                method,
                host = last.caller.host.id().0,
                "several hosts have calls in flight; asking the host of the latest call"
            );
        }
        // No other host may see the question, even if this host cannot answer it.
        return can_answer(fleet, instance, &last.caller, method).then_some(Addressee::Call(last));
    }
    if question.cause.is_some() && owner.is_none() {
        return None;
    }
    // The question belongs to no call: some servers ask for roots as soon as they are connected.
    let mut hosts = fleet.hosts_of(instance);
    hosts.retain(|host| is_owner(host.as_ref()));
    let is_alone = is_sole(&hosts);
    if method == method::ROOTS_LIST && (!is_alone || is_pooled) {
        // Roots are declared to a server only if it has one host, and will have no other.
        return None;
    }
    let mut able = hosts.into_iter().rev().filter(|host| {
        host.client().is_some_and(|client| {
            let passes = host.endpoint().passes_through() == Some(instance.server) && is_alone;
            client.era == Era::Legacy && (passes || is_declared(&client, method) == Some(true))
        })
    });
    able.next().map(Addressee::Host)
}

/// Returns whether the caller's host answers such questions. Unknown questions pass at an endpoint
/// of one server, and all questions pass to a host that talks to the server directly, since it
/// refuses them in its own words.
fn can_answer(fleet: &Fleet, instance: Instance, caller: &Caller, method: &str) -> bool {
    let refuses_itself = caller.client.era == Era::Legacy
        && declared::sole_of(fleet, caller) == Some(instance.server);
    if refuses_itself {
        return true;
    }
    is_declared(&caller.client, method)
        .unwrap_or_else(|| caller.endpoint().only_server() == Some(instance.server))
}
