//! A legacy host's request to a modern server: what the server wants to know before it answers is asked
//! of the host by real requests (2026-07-28, basic/patterns/mrtr).

use std::time::Duration;

use serde_json::json;

use super::send::Forwarded;
use crate::{
    peer::CallError,
    protocol::{adapt, error, method},
    proxy::asking::{HostQuestion, Reaction, is_declared},
    wire::{Outcome, Raw, edit},
};

/// A server that never has enough must not keep a person answering.
const MAX_ROUNDS: usize = 10;
const MAX_QUESTIONS: usize = 32;
const PAUSE: Duration = Duration::from_millis(100);

/// Sends the request, and again with the host's answers as long as the server asks.
pub(in crate::proxy) async fn play(
    request: &Forwarded<'_>,
    params: Option<Raw>,
) -> Result<Outcome, CallError> {
    let first = params.unwrap_or_else(Raw::empty_object);
    let mut params = first.clone();
    for round in 0..MAX_ROUNDS {
        let answered = request.send(Some(params)).await.map_err(|cause| match cause {
            // What came before was executed, so that the whole must not be tried again.
            CallError::NotSent if round > 0 => CallError::Closed,
            CallError::Unauthorized(why) if round > 0 => CallError::Unaskable(why.to_string()),
            cause => cause,
        });
        let result = match answered? {
            Ok(result) if adapt::is_input_required(&result) => result,
            outcome => return Ok(outcome),
        };
        if edit::get(&result, "inputRequests").is_none() {
            // It wants to be asked again, and not at once for ever.
            tokio::time::sleep(PAUSE * u32::try_from(round).unwrap_or(0)).await;
        }
        let answers = answers(request, &result).await.map_err(CallError::Unaskable)?;
        params = retry(&first, &result, &answers);
    }
    Err(CallError::Unaskable(format!("it asked for input {MAX_ROUNDS} times")))
}

/// The `params` of the next round.
fn retry(first: &Raw, result: &Raw, answers: &Raw) -> Raw {
    let params = edit::set(first, "inputResponses", answers);
    match edit::get(result, "requestState") {
        Some(state) => edit::set(&params, "requestState", &state),
        None => params,
    }
}

/// Asks the host everything that the server wants to know, all at once.
///
/// # Errors
/// Why there is no answer, as a sentence.
async fn answers(request: &Forwarded<'_>, result: &Raw) -> Result<Raw, String> {
    let wanted = edit::get(result, "inputRequests").map(|wanted| edit::entries(&wanted));
    let wanted = wanted.unwrap_or_default();
    if wanted.len() > MAX_QUESTIONS {
        return Err(format!("it asks {} questions at once", wanted.len()));
    }
    let asking = wanted.iter().map(|(_, question)| ask(request, question));
    let mut answers = Raw::empty_object();
    for ((key, _), answer) in wanted.iter().zip(futures_util::future::join_all(asking).await) {
        answers = edit::set(&answers, key, &answer?);
    }
    Ok(answers)
}

async fn ask(request: &Forwarded<'_>, question: &Raw) -> Result<Raw, String> {
    let Some(method) = edit::get_str(question, "method") else {
        return Err("it asks something that has no method".to_owned());
    };
    if is_declared(&request.caller.client, &method) != Some(true) {
        return Err(format!("it asks for {method}, which the host does not offer"));
    }
    let params = edit::get(question, "params").map(|params| adapt::question(&method, &params));
    let question = HostQuestion { method, params };
    // A person may have to answer: there is no deadline but the end of either side.
    let asking = question.ask(&request.caller.peer, Duration::ZERO, std::future::pending());
    let method = &question.method;
    match asking.await {
        Reaction::Answered(answer) => Ok(answer),
        // A host that cannot show a form says so by an error; to the server nobody has filled it in.
        Reaction::Refused(_) if method == method::ELICITATION_CREATE => {
            Ok(Raw::encode(&json!({"action": "cancel"})))
        }
        Reaction::Refused(refusal) => {
            Err(format!("the host refuses {method}: {}", error::message(&refusal)))
        }
        Reaction::Failed(cause) => Err(format!("the host does not answer {method}: {cause}")),
        Reaction::Withdrawn => unreachable!("nothing withdraws the question"),
    }
}
