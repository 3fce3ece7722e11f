//! Asking a user whether a call may be made, in both eras.

use super::{
    denial::{Denial, JudgedTool},
    forward_error::ForwardError,
    heartbeat::with_beats,
    open_consent::OpenConsent,
    permission_question::{PermissionQuestion, UserAnswer},
    recorder::Recorder,
    shape::shape,
};
use crate::{
    config::Settings,
    policy::{Decision, RuleLists, ToolCall},
    protocol::{Era, method},
    proxy::{
        Caller, Fleet,
        asking::{ANSWER_TIMEOUT, Continuation, Reaction, RequestProgress},
        consents::CallKey,
    },
    wire::{Raw, edit},
};

/// The key of the question in `inputRequests`.
const APPROVAL_KEY: &str = "approval";

/// A call that needs the consent of the user.
pub(super) struct AskedCall {
    pub(super) key: CallKey,
    pub(super) call: ToolCall,
    /// The decision that demands the consent.
    pub(super) decision: Decision,
}

impl AskedCall {
    /// Returns the call as refusals name it.
    pub(super) fn judged(&self) -> JudgedTool {
        JudgedTool::of(&self.call, self.decision.clone())
    }
}

/// Asks the user about a call. A consent is remembered.
///
/// # Errors
/// [`ForwardError::Denied`] if the user does not agree, or [`ForwardError::Asks`] with the result
/// that has a modern host ask its user and retry.
pub(super) async fn ask_user(
    fleet: &Fleet,
    caller: &Caller,
    asked: &AskedCall,
    rules: &RuleLists<'_>,
    settings: &Settings,
    recorder: &Recorder,
) -> Result<(), ForwardError> {
    let places = asked.decision.places();
    let exceptions: Result<Vec<_>, _> =
        places.map(|place| rules.exception(&asked.call, place)).collect();
    if settings.launch.is_unattended || !caller.client.elicitation().form {
        let commands = &settings.launch.commands;
        return Err(Denial::cannot_ask(asked.judged(), exceptions.err(), commands).into());
    }
    let question = PermissionQuestion::of(&asked.call, &asked.decision);
    let consent = OpenConsent {
        principal: caller.host.principal(),
        tool: asked.call.full_name().to_owned(),
        key: asked.key.clone(),
        exceptions,
    };
    if caller.client.era == Era::Modern {
        return Err(ForwardError::Asks(ask_by_result(fleet, caller, &question, consent, recorder)));
    }
    let question = question.question();
    let asking = question.ask(&caller.peer, ANSWER_TIMEOUT, std::future::pending());
    let message = format!("waiting for the user to approve {}", consent.tool);
    match with_beats(caller, &message, asking).await {
        Reaction::Answered(answer) => {
            Ok(consent.apply(fleet, caller, UserAnswer::read(&answer)).await?)
        }
        Reaction::Refused(_) | Reaction::Failed(_) | Reaction::Withdrawn => {
            Err(Denial::NotAnswered(asked.judged()).into())
        }
    }
}

/// Returns the result that has a modern host ask its user and retry. The retry is judged again.
fn ask_by_result(
    fleet: &Fleet,
    caller: &Caller,
    question: &PermissionQuestion,
    consent: OpenConsent,
    recorder: &Recorder,
) -> Raw {
    let recorder = recorder.hand_over();
    let questions = [(APPROVAL_KEY.to_owned(), question.question())];
    let weak = fleet.this.clone();
    let then: Continuation = Box::new(move |caller, responses| {
        Box::pin(async move {
            let fleet = weak.upgrade()?;
            let answer =
                edit::get(&responses, APPROVAL_KEY).map(|answer| UserAnswer::read(&answer));
            let applied = consent.apply(&fleet, &caller, answer.unwrap_or(UserAnswer::No)).await;
            let Err(denied) = applied else {
                recorder.discard();
                return None;
            };
            let answered = Err(denied.into());
            recorder.finish(&answered);
            Some(shape(&caller, method::TOOLS_CALL, answered))
        })
    });
    fleet.asking.ask_by_result(caller, &questions, ANSWER_TIMEOUT, RequestProgress::Unsent, then)
}
