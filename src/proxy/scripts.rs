//! Scripts of agents: each runs in a process of its own, and calls tools as its host would
//! (docs/design/scripts.md).

mod answer;
mod made_call;
mod named_tool;
mod script_call;
mod script_run;
mod stubs;

use futures_util::future::BoxFuture;

use self::script_run::{ScriptRun, Step};
pub(super) use self::stubs::learn;
use super::{
    Caller, Fleet,
    asking::{ANSWER_TIMEOUT, Continuation},
    calls::own_result,
    large_results,
};
use crate::{
    base::{read_bounded, run_blocking},
    surface::{MAX_CODE_BYTES, ScriptSource, WantedScript, failed},
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
    let run = match read(script).await {
        Ok(code) => ScriptRun::start(script, code, &fleet.settings().limits)
            .map_err(|error| error.to_string()),
        Err(reason) => Err(reason),
    };
    match run {
        Ok(run) => go_on(fleet, caller, run, call).await,
        Err(reason) => Ok(own_result(caller, failed(reason))),
    }
}

/// Returns the text of a script. A saved script is read at each run, so that every change of its
/// file takes effect.
///
/// # Errors
/// The reason that the file cannot be read.
async fn read(script: &WantedScript) -> Result<String, String> {
    let path = match &script.source {
        ScriptSource::Text(code) => return Ok(code.clone()),
        ScriptSource::File(path) => path.clone(),
    };
    let shown = path.display().to_string();
    let refused =
        |reason: &str| format!("cannot read the script {:?} ({shown}): {reason}", script.name);
    let read = run_blocking(move || read_bounded(&path, MAX_CODE_BYTES as u64)).await;
    let bytes = read.ok_or_else(|| refused("dormouse ends"))?;
    let bytes = bytes.map_err(|error| refused(&error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8"))
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
