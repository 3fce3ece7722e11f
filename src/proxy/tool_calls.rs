//! `tools/call`: evaluated by the surface, answered by dormouse or by a server.

use futures_util::future::BoxFuture;

use super::{
    Caller, Fleet,
    calls::{self, AskLogin, Call, EvaluatedRequest, ForwardError, own_result, shape},
    catalogs, known_tasks, large_results,
    loading::load_offer,
    scripts,
};
use crate::{
    catalog::{OfferId, ServerId},
    config::Listing,
    protocol::{Era, method},
    surface::{Action, calls_another, failed},
    wire::{Outcome, Raw},
};

/// Maximum number of times that one request has the stored catalogs read.
const MAX_READS: usize = 5;

/// Maximum number of times that a request may resolve to a different action when its server is
/// awake.
const MAX_SUPERSEDED: u32 = 3;

/// Answers a `tools/call`: evaluates it, does what has to be done first, and evaluates it again
/// until there is a result. Failures of dormouse are results with `isError`.
pub(super) async fn call_tool(fleet: &Fleet, caller: &Caller, params: &Raw) -> Outcome {
    let mut done: Vec<Action> = Vec::new();
    let mut superseded = 0;
    let mut hold = None;
    let outcome = loop {
        let action = fleet.board.evaluate(&caller.viewer(), params, &fleet.context.tasks).await;
        if done.iter().filter(|before| **before == action).count() >= repeats(&action) {
            break Ok(own_result(caller, final_result(fleet, action)));
        }
        match &action {
            Action::Answer(result) => break Ok(own_result(caller, result.clone())),
            Action::Forward { server, params: sent, requires_read_only } => {
                let call = call_of(fleet, caller, (params, &action), *server, sent)
                    .requiring_read_only(*requires_read_only);
                match calls::run(fleet, call).await {
                    // The request resolves to a different action now, perhaps to another load: the
                    // server may have been replaced.
                    Err(ForwardError::Superseded) if superseded < MAX_SUPERSEDED => {
                        superseded += 1;
                        done.clear();
                        continue;
                    }
                    answered => {
                        let shaped = shape(caller, method::TOOLS_CALL, answered);
                        scripts::learn(fleet, caller, *server, sent, &shaped);
                        break large_results::bound(fleet, caller, *server, params, shaped).await;
                    }
                }
            }
            Action::Load { offer } => match Box::pin(load_first(fleet, caller, *offer)).await {
                Ok(announced) => hold = announced,
                Err(error) => {
                    break shape(caller, method::TOOLS_CALL, Err(error));
                }
            },
            Action::Recall => Box::pin(catalogs::learn_all(fleet)).await,
            Action::Index => {}
            Action::RunScript(script) => {
                break Box::pin(scripts::run_script(fleet, caller, script, call_of_script)).await;
            }
            Action::ReadResult { id, part } => {
                let read = Box::pin(large_results::read_part(fleet, caller, id, part)).await;
                break Ok(own_result(caller, read));
            }
            Action::Reexamine { server, .. } => Box::pin(catalogs::reexamine(fleet, *server)).await,
        }
        done.push(action);
    };
    if let Some(announced) = hold {
        caller.await_tool_list(announced, fleet.settings().loading.settle).await;
    }
    outcome
}

/// Answers a call that a script makes, or goes on with one about which the user was asked.
fn call_of_script<'a>(
    fleet: &'a Fleet,
    caller: &'a Caller,
    params: &'a Raw,
) -> BoxFuture<'a, Outcome> {
    Box::pin(async move {
        if caller.request.is_some()
            && let Some(resumed) = fleet.asking.resume(caller).await
        {
            return resumed;
        }
        call_tool(fleet, caller, &fleet.asking.without_answers(caller, params.clone())).await
    })
}

/// Returns how often an action is tried. A reload of the config undoes what was read from disk.
fn repeats(action: &Action) -> usize {
    match action {
        Action::Recall | Action::Index => MAX_READS,
        _ => 1,
    }
}

/// Returns the result of a call for which everything possible was done.
fn final_result(fleet: &Fleet, action: Action) -> Raw {
    match action {
        Action::Answer(result) | Action::Reexamine { result, .. } => result,
        Action::Load { offer } => without_tool(fleet, offer.server()),
        Action::Forward { server, .. } => without_tool(fleet, server),
        Action::Recall | Action::Index | Action::ReadResult { .. } | Action::RunScript(_) => {
            failed("cannot read the catalogs of the servers")
        }
    }
}

fn without_tool(fleet: &Fleet, server: ServerId) -> Raw {
    let name = &fleet.servers.config(server).name;
    failed(format!("server {name:?} was loaded but lacks the requested tool"))
}

/// Returns a call as its server gets it. `params` are those of the host's request, which `action`
/// forwards as `sent`.
///
/// A tool that accepts only tasks is called as a task if the host cannot know that: it calls
/// through a meta-tool, or its era has no such tasks.
fn call_of<'a>(
    fleet: &Fleet,
    caller: &'a Caller,
    (params, action): (&'a Raw, &'a Action),
    server: ServerId,
    sent: &Raw,
) -> Call<'a> {
    let is_blind = || caller.client.era == Era::Modern || calls_another(params);
    // Asked last, since few tools require a task.
    let task = known_tasks::as_required_task(fleet, server, sent).filter(|_| is_blind());
    let is_task = task.is_some();
    let checked = calls::must_check_pins(fleet, server);
    let checked = checked.then_some(EvaluatedRequest { params, action });
    let sent = Some(task.unwrap_or_else(|| sent.clone()));
    let call = Call::new(server, caller, method::TOOLS_CALL, sent);
    call.checking_pins(checked).awaiting_task(is_task)
}

/// Loads an offer. With stable lists, known catalogs are read first, so that lists do not depend on
/// the order of loads.
async fn load_first(
    fleet: &Fleet,
    caller: &Caller,
    offer: OfferId,
) -> Result<Option<u64>, ForwardError> {
    if fleet.settings().lists.listing == Listing::Stable {
        catalogs::recall_all(fleet).await;
    }
    load(fleet, caller, offer).await
}

/// Loads an offer. If that changes the names of listed tools, returns the number of the
/// announcement after which the host has to fetch the list before it gets the result.
async fn load(fleet: &Fleet, caller: &Caller, offer: OfferId) -> Result<Option<u64>, ForwardError> {
    let names_before = fleet.board.tools(&caller.viewer()).names;
    let announced_before = caller.host.tool_lists_announced();
    load_offer(fleet, caller, offer, AskLogin::ThroughHost).await?;
    let announced = caller.host.tool_lists_announced();
    let must_hold =
        announced > announced_before && fleet.board.tools(&caller.viewer()).names != names_before;
    Ok(must_hold.then_some(announced))
}
