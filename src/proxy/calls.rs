//! `tools/call`: evaluated by the surface, answered by dormouse or by a server.

mod approval;
mod conversation;
mod forward;
mod in_flight;
mod lease;
mod results;
mod rounds;
mod send;

use super::{Caller, Fleet, memory, resources::reply, tasks};
use crate::{
    base::run_blocking,
    catalog::ServerId,
    config::Listing,
    protocol::{Era, adapt, method},
    surface::{Action, blocked, calls_another, failed},
    wire::{Outcome, Raw},
};
use approval::Approval;

pub(super) use conversation::Ending;
pub(super) use forward::{ForwardError, Outbound};
pub(super) use forward::{check_feature, forward};
pub(super) use in_flight::{Entry, InFlight};
pub(super) use lease::{AskLogin, upstream, with_beats};
pub(super) use lease::{lease, lease_asking};
pub(super) use results::Results;
pub(super) use results::read_result;
pub(super) use send::Forwarded;
pub(super) use send::{request, send_forwarded};

/// Answers a `tools/call`: evaluates it, does what has to be done first, and evaluates it again
/// until there is a result. Failures of dormouse are results with `isError`.
pub(super) async fn call_tool(fleet: &Fleet, caller: &Caller, params: &Raw) -> Outcome {
    let mut done: Vec<Action> = Vec::new();
    let mut hold = None;
    let outcome = loop {
        let action = evaluate(fleet, caller, params).await;
        if done.contains(&action) {
            break Ok(own(caller, in_vain(fleet, action)));
        }
        match &action {
            Action::Answer(result) => break Ok(own(caller, result.clone())),
            Action::Forward { server, .. } => {
                match call_server(fleet, caller, *server, params, &action).await {
                    Some(outcome) => break outcome,
                    // The request comes to something else now.
                    None => continue,
                }
            }
            Action::Load { server } => match Box::pin(load_first(fleet, caller, *server)).await {
                Ok(announced) => hold = announced,
                Err(error) => break called(fleet, caller, *server, Err(error)),
            },
            Action::Recall => Box::pin(memory::recall_all(fleet)).await,
            Action::Index => {}
            Action::Reexamine { server, .. } => Box::pin(memory::reexamine(fleet, *server)).await,
        }
        done.push(action);
    };
    if let Some(announced) = hold {
        // Hosts build the model's next request from the list that they have when the result
        // arrives.
        let relisted = caller.host.relisted(announced);
        let _ = tokio::time::timeout(fleet.settings().settle, relisted).await;
    }
    outcome
}

/// Returns the result of a call for which everything possible was done.
fn in_vain(fleet: &Fleet, action: Action) -> Raw {
    match action {
        Action::Answer(result) | Action::Reexamine { result, .. } => result,
        Action::Load { server } | Action::Forward { server, .. } => {
            let name = &fleet.servers.config(server).name;
            failed(format!("server {name:?} was loaded, and what was asked for is not there"))
        }
        Action::Recall | Action::Index => failed("what is known of the servers cannot be read"),
    }
}

/// Evaluates a request by the host's view. A search waits until its index is made on another
/// thread.
pub(super) async fn evaluate(fleet: &Fleet, caller: &Caller, params: &Raw) -> Action {
    let snapshot = fleet.board.snapshot_for(caller.viewer());
    let action = fleet.board.view(caller.viewer(), &snapshot).call(params);
    if action != Action::Index {
        return action;
    }
    let indexed = snapshot.clone();
    let indexing = run_blocking(move || indexed.prepare_search());
    // No outcome means that dormouse ends.
    let _ = Box::pin(fleet.context.tasks.track_future(indexing)).await;
    fleet.board.view(caller.viewer(), &snapshot).call(params)
}

/// Sends a call to its server. `params` are those of the host's request. Returns `None` if nothing
/// was sent because the request comes to something else now.
async fn call_server(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    params: &Raw,
    action: &Action,
) -> Option<Outcome> {
    let Action::Forward { params: forwarded, .. } = action else { return None };
    let Sent { params: sent, is_task } = as_called(fleet, caller, server, params, forwarded);
    let approval = approval::must_compare(fleet, server).then_some(Approval { params, action });
    let outbound =
        Outbound { approval, ..Outbound::new(server, caller, method::TOOLS_CALL, Some(sent)) };
    match forward::forward(fleet, outbound).await {
        Err(ForwardError::Superseded) => None,
        answered => Some(completed(fleet, caller, server, is_task, answered).await),
    }
}

/// Returns the `params` for the server. A tool that accepts only tasks is called as a task if the
/// host cannot know that: it calls through a meta-tool, or its era has no such tasks.
fn as_called(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    params: &Raw,
    forwarded: &Raw,
) -> Sent {
    let is_blind = caller.client.era == Era::Modern || calls_another(params);
    let task = is_blind.then(|| tasks::as_required_task(fleet, server, forwarded)).flatten();
    let is_task = task.is_some();
    Sent { params: task.unwrap_or_else(|| forwarded.clone()), is_task }
}

/// Returns the result for the host, which is the task's result if dormouse made a task of the call.
async fn completed(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    is_task: bool,
    answered: Result<Outcome, ForwardError>,
) -> Outcome {
    match answered {
        Ok(Ok(result)) if is_task => {
            Box::pin(tasks::await_task(fleet, caller, server, result)).await
        }
        answered => called(fleet, caller, server, answered),
    }
}

/// Returns the host's answer to a call, from the server's answer or from the reason that there is
/// none.
pub(super) fn called(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    forwarded: Result<Outcome, ForwardError>,
) -> Outcome {
    match forwarded {
        Ok(outcome) => outcome.map(|result| results::bounded(fleet, caller, server, result)),
        Err(ForwardError::Asks(result)) => Ok(result),
        Err(ForwardError::Blocked { server, tool }) => Ok(own(caller, blocked(&server, &tool))),
        Err(error) => Ok(own(caller, failed(error.to_string()))),
    }
}

/// As [`called`], for a request of any method.
pub(super) fn answered(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    method: &str,
    forwarded: Result<Outcome, ForwardError>,
) -> Outcome {
    match method {
        method::TOOLS_CALL => called(fleet, caller, server, forwarded),
        _ => reply(forwarded),
    }
}

/// Loads a server. With stable lists, known catalogs are read first, so that lists do not depend on
/// the order of loads.
async fn load_first(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
) -> Result<Option<u64>, ForwardError> {
    if fleet.settings().listing == Listing::Stable {
        memory::recall_all(fleet).await;
    }
    load(fleet, caller, server).await
}

/// Loads a server. If that changes the names of listed tools, returns the number of the
/// announcement after which the host has to fetch the list before it gets the result.
async fn load(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
) -> Result<Option<u64>, ForwardError> {
    let names_before = fleet.board.tools(caller.viewer()).names;
    let announced_before = caller.host.tool_lists_announced();
    lease::lease(fleet, server, caller).await?;
    fleet.loaded_by(caller.host.principal(), server);
    let announced = caller.host.tool_lists_announced();
    let must_hold =
        announced > announced_before && fleet.board.tools(caller.viewer()).names != names_before;
    Ok(must_hold.then_some(announced))
}

/// A call as the server gets it.
struct Sent {
    params: Raw,
    /// True if dormouse has made a task of it.
    is_task: bool,
}

/// Returns a result of dormouse in the form of the caller's era.
pub(super) fn own(caller: &Caller, result: Raw) -> Raw {
    adapt::own_result(method::TOOLS_CALL, caller.client.era, result)
}
