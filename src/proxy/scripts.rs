//! Scripts of agents: each runs in a process of its own, and calls tools as its host would
//! (docs/design/scripts.md).

mod answer;
mod made_call;
mod named_tool;
mod script_call;
mod script_record;
mod script_run;
mod stubs;

use std::{io, path::PathBuf};

use futures_util::future::BoxFuture;

use self::script_run::{ScriptRun, Step};
pub(super) use self::stubs::learn;
use super::{
    Caller, Fleet,
    asking::{ANSWER_TIMEOUT, Continuation, RequestProgress},
    calls::own_result,
    large_results,
    script_slots::MAX_SCRIPTS,
};
use crate::{
    base::{read_bounded_text, run_blocking},
    script::WorkerError,
    surface::{MAX_CODE_BYTES, ScriptSource, WantedScript, failed},
    wire::{Outcome, Raw},
};

/// Answers a `tools/call` with these `params`, for the caller of a script.
pub(super) type CallTool = for<'a> fn(&'a Fleet, &'a Caller, &'a Raw) -> BoxFuture<'a, Outcome>;

/// The reason that a script does not run.
#[derive(Debug, thiserror::Error)]
enum ScriptError {
    #[error("cannot read the script {name:?} ({}): {cause}", .path.display())]
    Unreadable { name: String, path: PathBuf, cause: io::Error },
    #[error("{MAX_SCRIPTS} scripts run already: try again when one has ended")]
    TooMany,
    #[error(transparent)]
    Worker(#[from] WorkerError),
}

/// Runs a script, whose calls `call` makes. Returns its value, or what a modern host has to ask its
/// user before the script can go on.
pub(super) async fn run_script(
    fleet: &Fleet,
    caller: &Caller,
    script: &WantedScript,
    call: CallTool,
) -> Outcome {
    match start(fleet, script, call).await {
        Ok(run) => go_on(fleet, caller, run).await,
        Err(error) => Ok(own_result(caller, failed(error.to_string()))),
    }
}

async fn start(
    fleet: &Fleet,
    script: &WantedScript,
    call: CallTool,
) -> Result<ScriptRun, ScriptError> {
    let slot = fleet.calls.script_slots.take().ok_or(ScriptError::TooMany)?;
    let code = read(script).await?;
    Ok(ScriptRun::start(script, code, &fleet.settings().limits, slot, call)?)
}

/// Returns the text of a script. A saved script is read at each run, so that every change of its
/// file takes effect.
async fn read(script: &WantedScript) -> Result<String, ScriptError> {
    let path = match &script.source {
        ScriptSource::Text(code) => return Ok(code.clone()),
        ScriptSource::File(path) => path.clone(),
    };
    let file = path.clone();
    let text = run_blocking(move || read_bounded_text(&file, MAX_CODE_BYTES as u64)).await;
    let text = text.unwrap_or_else(|| Err(io::ErrorKind::Interrupted.into()));
    text.map_err(|cause| ScriptError::Unreadable { name: script.name.clone(), path, cause })
}

async fn go_on(fleet: &Fleet, caller: &Caller, mut run: ScriptRun) -> Outcome {
    match run.advance(fleet, caller).await {
        Step::Ended(result) => {
            let result = large_results::bound_script(fleet, caller, result).await;
            Ok(own_result(caller, result))
        }
        Step::Asks => Ok(ask(fleet, caller, run)),
    }
}

/// Returns the result that has a modern host ask its user and retry. The script waits meanwhile.
fn ask(fleet: &Fleet, caller: &Caller, mut run: ScriptRun) -> Raw {
    let questions = run.questions();
    let weak = fleet.this.clone();
    let then: Continuation = Box::new(move |caller, responses| {
        Box::pin(async move {
            let fleet = weak.upgrade()?;
            run.take_answers(&responses);
            Some(go_on(&fleet, &caller, run).await)
        })
    });
    fleet.asking.ask_by_result(caller, &questions, ANSWER_TIMEOUT, RequestProgress::Sent, then)
}
