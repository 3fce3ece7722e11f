//! A legacy host's request to a modern server: questions of the server become requests to the host
//! (2026-07-28, basic/patterns/mrtr).

use std::time::Duration;

use serde_json::json;

use super::leased_request::LeasedRequest;
use crate::{
    peer::CallError,
    protocol::{adapt, error, method},
    proxy::asking::{HostQuestion, Reaction, is_declared},
    wire::{Outcome, Raw, edit},
};

/// Maximum number of rounds and of questions in one: a server must not keep a user answering.
const MAX_ROUNDS: usize = 10;
const MAX_QUESTIONS: usize = 32;
const ROUND_DELAY: Duration = Duration::from_millis(100);

/// Sends the request, and again with the host's answers while the server asks.
pub(in crate::proxy) async fn play(
    request: &LeasedRequest<'_>,
    params: Option<Raw>,
) -> Result<Outcome, CallError> {
    let first = params.unwrap_or_else(Raw::empty_object);
    let mut params = first.clone();
    for round in 0..MAX_ROUNDS {
        let answered = request.send(Some(params)).await.map_err(|cause| match cause {
            // Earlier rounds were executed, so that the whole request must not be sent again.
            CallError::NotSent if round > 0 => CallError::Closed,
            CallError::Unauthorized(why) if round > 0 => CallError::Unaskable(why.to_string()),
            cause => cause,
        });
        let result = match answered? {
            Ok(result) if adapt::is_input_required(&result) => result,
            outcome => return Ok(outcome),
        };
        if edit::get(&result, "inputRequests").is_none() {
            // The server wants to be asked again, with a delay that grows.
            tokio::time::sleep(ROUND_DELAY * u32::try_from(round).unwrap_or(0)).await;
        }
        let answers = answers(request, &result).await.map_err(CallError::Unaskable)?;
        params = retry(&first, &result, &answers);
    }
    Err(CallError::Unaskable(format!("the server asked for input {MAX_ROUNDS} times")))
}

/// Returns the `params` of the next round.
fn retry(first: &Raw, result: &Raw, answers: &Raw) -> Raw {
    let params = edit::set(first, "inputResponses", answers);
    match edit::get(result, "requestState") {
        Some(state) => edit::set(&params, "requestState", &state),
        None => params,
    }
}

/// Asks the host all questions of the server, concurrently.
///
/// # Errors
/// The reason that there is no answer, as a sentence.
async fn answers(request: &LeasedRequest<'_>, result: &Raw) -> Result<Raw, String> {
    let wanted = edit::get(result, "inputRequests").map(|wanted| edit::entries(&wanted));
    let wanted = wanted.unwrap_or_default();
    if wanted.len() > MAX_QUESTIONS {
        return Err(format!("the server asks {} questions at once", wanted.len()));
    }
    let asking = wanted.iter().map(|(_, question)| ask(request, question));
    let mut answers = Raw::empty_object();
    for ((key, _), answer) in wanted.iter().zip(futures_util::future::join_all(asking).await) {
        answers = edit::set(&answers, key, &answer?);
    }
    Ok(answers)
}

async fn ask(request: &LeasedRequest<'_>, question: &Raw) -> Result<Raw, String> {
    let Some(method) = edit::get_str(question, "method") else {
        return Err("the server asks a question without a method".to_owned());
    };
    if is_declared(&request.caller.client, &method) != Some(true) {
        return Err(format!("the server asks for {method}, which the host does not support"));
    }
    let params = edit::get(question, "params").map(|params| adapt::question(&method, &params));
    let question = HostQuestion { method, params };
    // A user may have to answer, so that only the end of either side ends the question.
    let asking = question.ask(&request.caller.peer, Duration::ZERO, std::future::pending());
    let method = &question.method;
    match asking.await {
        Reaction::Answered(answer) => Ok(answer),
        // A host that cannot show a form answers with an error; for the server, the user has not
        // filled in the form.
        Reaction::Refused(_) if method == method::ELICITATION_CREATE => {
            Ok(Raw::encode(&json!({"action": "cancel"})))
        }
        Reaction::Refused(refusal) => {
            Err(format!("the host refused {method}: {}", error::message(&refusal)))
        }
        Reaction::Failed(cause) => Err(format!("the host did not answer {method}: {cause}")),
        Reaction::Withdrawn => unreachable!("nothing withdraws the question"),
    }
}
