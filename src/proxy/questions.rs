//! What servers ask of hosts: sampling, elicitation, roots (DESIGN.md section 4, Questions from upstream).

use std::{sync::Arc, time::Duration};

use super::{
    Caller, Fleet, Host, Principal,
    asking::{HostQuestion, Reaction, is_declared},
    audience::is_sole,
    calls::Entry,
    instance::Instance,
    observer, tasks,
};
use crate::{
    peer::{Peer, Pulse},
    protocol::{Era, error, method},
    upstream::Question,
};

/// How long a host may take to answer: a person may have to. One that has left its response may never come
/// back to it; and a question that no call of its own has caused may never be seen.
const CAUSED_TIMEOUT: Duration = Duration::from_hours(1);
const UNCAUSED_TIMEOUT: Duration = Duration::from_mins(10);
/// How often a call is kept from timing out while its question is open.
const PULSE: Duration = Duration::from_secs(15);

/// Who a question is for.
enum Addressee {
    /// The host whose call caused it.
    Call(Entry),
    /// A host that has no call in flight there.
    Host(Arc<dyn Host>),
}

/// Takes a legacy server's question to the host that it is for. A modern one puts its questions into results.
pub(super) fn ask(fleet: &Fleet, instance: Instance, mut question: Question) {
    let owner = match &question.request.params {
        Some(params) => tasks::owner_of_question(fleet, instance, params),
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
        Some(Addressee::Call(Entry { questions: Some(gathered), .. })) => {
            // A call that has just ended takes no questions; the server learns that by their being dropped.
            let _ = gathered.send(question);
        }
        Some(Addressee::Call(Entry { caller, pulse, .. })) => {
            fleet.context.tasks.spawn(relay(caller.peer, question, Some(pulse)));
        }
        Some(Addressee::Host(host)) => {
            fleet.context.tasks.spawn(relay(host.peer().clone(), question, None));
        }
    }
}

/// Asks a legacy host, and takes its answer back.
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
        tokio::time::sleep(PULSE).await;
    }
}

/// `owner`: the host that has created the task to which the question belongs, where it belongs to one.
fn addressee(
    fleet: &Fleet,
    instance: Instance,
    question: &Question,
    owner: Option<Principal>,
) -> Option<Addressee> {
    let method = &question.request.method;
    let is_owner = |host: &dyn Host| owner.is_none_or(|owner| owner == host.principal());
    let mut in_flight = fleet.in_flight.candidates(instance, question.cause);
    in_flight.retain(|entry| is_owner(entry.caller.host.as_ref()));
    if in_flight.iter().any(|entry| !entry.is_parked) {
        // A call whose host is being asked already is waited for, and not worked on.
        in_flight.retain(|entry| !entry.is_parked);
    }
    if let Some(last) = in_flight.pop() {
        let is_others = |entry: &Entry| entry.caller.host.id() != last.caller.host.id();
        if in_flight.iter().any(is_others) {
            tracing::warn!(
                server = fleet.servers.config(instance.server).name,
                method,
                host = last.caller.host.id().0,
                "several hosts have calls in flight; the question is taken for that of the last one"
            );
        }
        // Another host must not see it, even where this one cannot answer.
        return can_answer(fleet, instance, &last.caller, method).then_some(Addressee::Call(last));
    }
    if question.cause.is_some() && owner.is_none() {
        return None;
    }
    // Nobody's call: a server asks for roots as soon as it is connected, say.
    let mut hosts = fleet.audience.hosts_of(instance);
    hosts.retain(|host| is_owner(host.as_ref()));
    let is_alone = is_sole(&hosts);
    if method == method::ROOTS_LIST && !is_alone {
        // They were not offered.
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

/// Whether the caller's host has said that it answers such questions. New kinds pass where no other host can be meant,
/// and all kinds where the host talks to the server as if dormouse were not there: it refuses in its own words.
fn can_answer(fleet: &Fleet, instance: Instance, caller: &Caller, method: &str) -> bool {
    let refuses_itself = caller.client.era == Era::Legacy
        && observer::sole_of(fleet, caller) == Some(instance.server);
    if refuses_itself {
        return true;
    }
    is_declared(&caller.client, method)
        .unwrap_or_else(|| caller.endpoint().only == Some(instance.server))
}
