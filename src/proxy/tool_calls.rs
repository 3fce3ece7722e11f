//! `tools/call`: evaluated by the surface, answered by dormouse or by a server.

use super::{
    Caller, Fleet,
    calls::{self, Approval, ForwardError, Outbound, answered_call, own_result},
    catalogs, known_tasks, publishing, tasks,
};
use crate::{
    catalog::ServerId,
    config::Listing,
    protocol::{Era, method},
    surface::{Action, calls_another, failed},
    wire::{Outcome, Raw},
};

/// Answers a `tools/call`: evaluates it, does what has to be done first, and evaluates it again
/// until there is a result. Failures of dormouse are results with `isError`.
pub(super) async fn call_tool(fleet: &Fleet, caller: &Caller, params: &Raw) -> Outcome {
    let mut done: Vec<Action> = Vec::new();
    let mut hold = None;
    let outcome = loop {
        let action = fleet.board.evaluate(caller.viewer(), params, &fleet.context.tasks).await;
        if done.contains(&action) {
            break Ok(own_result(caller, in_vain(fleet, action)));
        }
        match &action {
            Action::Answer(result) => break Ok(own_result(caller, result.clone())),
            Action::Forward { server, .. } => {
                match call_server(fleet, caller, *server, params, &action).await {
                    Some(outcome) => break outcome,
                    // The request comes to something else now.
                    None => continue,
                }
            }
            Action::Load { server } => match Box::pin(load_first(fleet, caller, *server)).await {
                Ok(announced) => hold = announced,
                Err(error) => break answered_call(fleet, caller, *server, Err(error)),
            },
            Action::Recall => Box::pin(catalogs::recall_all(fleet)).await,
            Action::Index => {}
            Action::Reexamine { server, .. } => Box::pin(catalogs::reexamine(fleet, *server)).await,
        }
        done.push(action);
    };
    if let Some(announced) = hold {
        // Hosts build the model's next request from the list that they have when the result
        // arrives.
        let tool_list_fetched = caller.host.tool_list_fetched(announced);
        let _ = tokio::time::timeout(fleet.settings().loading.settle, tool_list_fetched).await;
    }
    outcome
}

/// Returns the result of a call for which everything possible was done.
fn in_vain(fleet: &Fleet, action: Action) -> Raw {
    match action {
        Action::Answer(result) | Action::Reexamine { result, .. } => result,
        Action::Load { server } | Action::Forward { server, .. } => {
            let name = &fleet.servers.config(server).name;
            failed(format!("server {name:?} was loaded but lacks the requested tool"))
        }
        Action::Recall | Action::Index => failed("cannot read the catalogs of the servers"),
    }
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
    let approval = calls::must_compare(fleet, server).then_some(Approval { params, action });
    let outbound = Outbound::new(server, caller, method::TOOLS_CALL, Some(sent));
    let outbound = outbound.approved_by(approval);
    match calls::forward(fleet, outbound).await {
        Err(ForwardError::Superseded) => None,
        Ok(Ok(task)) if is_task => {
            Some(Box::pin(tasks::await_task(fleet, caller, server, task)).await)
        }
        answered => Some(answered_call(fleet, caller, server, answered)),
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
    let task = is_blind.then(|| known_tasks::as_required_task(fleet, server, forwarded)).flatten();
    let is_task = task.is_some();
    Sent { params: task.unwrap_or_else(|| forwarded.clone()), is_task }
}

/// Loads a server. With stable lists, known catalogs are read first, so that lists do not depend on
/// the order of loads.
async fn load_first(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
) -> Result<Option<u64>, ForwardError> {
    if fleet.settings().lists.listing == Listing::Stable {
        catalogs::recall_all(fleet).await;
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
    calls::lease(fleet, server, caller).await?;
    publishing::loaded_by(fleet, caller.host.principal(), server);
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
