//! Scripts of agents: each runs in a process of its own, and calls tools as its host would
//! (docs/design/scripts.md).

mod answer;
mod made_call;
mod script_run;
mod tool_spelling;

use futures_util::future::BoxFuture;

use self::script_run::{ScriptRun, Step};
use super::{
    Caller, Fleet,
    asking::{ANSWER_TIMEOUT, Continuation},
    calls::own_result,
    large_results,
};
use crate::{
    surface::{WantedScript, failed},
    wire::{Outcome, Raw},
};

/// Answers a `tools/call` with these `params`, for the caller of a script.
pub(super) type CallTool = for<'a> fn(&'a Fleet, &'a Caller, &'a Raw) -> BoxFuture<'a, Outcome>;

/// Runs a script, whose calls `call` makes. Returns its value, or what a modern host has to ask its
/// user before the script can go on.
pub(super) async fn run_script(
    fleet: &Fleet,
    caller: &Caller,
    script: &WantedScript,
    call: CallTool,
) -> Outcome {
    match ScriptRun::start(script, &fleet.settings().limits) {
        Ok(run) => go_on(fleet, caller, run, call).await,
        Err(error) => Ok(own_result(caller, failed(error.to_string()))),
    }
}

async fn go_on(fleet: &Fleet, caller: &Caller, mut run: ScriptRun, call: CallTool) -> Outcome {
    match run.advance(fleet, caller, call).await {
        Step::Ended(result) => {
            let result = large_results::bound_script(fleet, caller, result).await;
            Ok(own_result(caller, result))
        }
        Step::Asks => Ok(ask(fleet, caller, run, call)),
    }
}

/// Returns the result that has a modern host ask its user and retry. The script waits meanwhile.
fn ask(fleet: &Fleet, caller: &Caller, mut run: ScriptRun, call: CallTool) -> Raw {
    let questions = run.questions();
    let weak = fleet.this.clone();
    let then: Continuation = Box::new(move |caller, responses| {
        Box::pin(async move {
            let fleet = weak.upgrade()?;
            run.take_answers(&responses);
            Some(go_on(&fleet, &caller, run, call).await)
        })
    });
    fleet.asking.ask_by_result(caller, &questions, ANSWER_TIMEOUT, then)
}
