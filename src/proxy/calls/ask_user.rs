//! Asking a user whether a call may be made, in both eras, and remembering the answer.

use std::time::Duration;

use super::{
    denial::{AskedTool, Denial},
    forward_error::ForwardError,
    heartbeat::with_beats,
    permission_question::{PermissionQuestion, UserAnswer},
    recorder::Recorder,
    shape::shape,
};
use crate::{
    config::Settings,
    policy::{Decision, RuleAddition, RuleLists, ToolCall},
    protocol::{Era, LogLevel, method},
    proxy::{
        Caller, Fleet, Principal,
        asking::{Continuation, Reaction},
        consents::CallKey,
    },
    wire::{Raw, edit},
};

/// Maximum time for a user to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum time for a rule to be written and to be in force.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// A call that needs the consent of the user.
pub(super) struct AskedCall {
    pub(super) key: CallKey,
    pub(super) call: ToolCall,
    /// The decision that demands the consent.
    pub(super) decision: Decision,
}

impl AskedCall {
    /// Returns the call as refusals name it.
    pub(super) fn subject(&self) -> AskedTool {
        AskedTool { tool: self.call.full_name().to_owned(), decision: self.decision.clone() }
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
    lists: &RuleLists<'_>,
    settings: &Settings,
    recorder: &Recorder,
) -> Result<(), ForwardError> {
    if settings.launch.is_unattended || !PermissionQuestion::can_be_asked(&caller.client) {
        return Err(Denial::CannotAsk(asked.subject()).into());
    }
    let question = PermissionQuestion::of(&asked.call, &asked.decision);
    let places = asked.decision.places();
    let additions = places.map(|place| lists.addition(&asked.call, place));
    let consent = OpenConsent {
        principal: caller.host.principal(),
        tool: asked.call.full_name().to_owned(),
        key: asked.key.clone(),
        additions: additions.collect::<Result<_, _>>().map_err(|why| why.to_string()),
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
            Err(Denial::NotAnswered(asked.subject()).into())
        }
    }
}

/// A consent that the user has been asked for.
struct OpenConsent {
    principal: Principal,
    /// `server/tool`
    tool: String,
    key: CallKey,
    /// The rules that "always" adds, or the reason that there are none.
    additions: Result<Vec<RuleAddition>, String>,
}

impl OpenConsent {
    /// Remembers the answer of the user, unless the server has been replaced since.
    ///
    /// # Errors
    /// If the user does not agree.
    async fn apply(self, fleet: &Fleet, caller: &Caller, answer: UserAnswer) -> Result<(), Denial> {
        if answer == UserAnswer::No {
            return Err(Denial::Declined { tool: self.tool });
        }
        if !fleet.servers.is_current(self.key.instance()) {
            return Ok(());
        }
        let consents = &fleet.calls.consents;
        match answer {
            UserAnswer::No => {}
            UserAnswer::Once => consents.agree_once(self.principal, self.key),
            UserAnswer::ForSession => consents.agree_for_session(self.principal, self.key),
            UserAnswer::Always => {
                // If the rule cannot be written, the consent holds for this session.
                consents.agree_for_session(self.principal, self.key.clone());
                self.write(fleet, caller).await;
            }
        }
        Ok(())
    }

    /// Adds the rules to the config. The host shows its user a failure as a log message, since the
    /// result of the call is the server's.
    async fn write(self, fleet: &Fleet, caller: &Caller) {
        let tool = self.tool;
        let written = match (self.additions, fleet.calls.consents.writer()) {
            (Ok(additions), Some(writer)) => {
                let writing = writer.add_rules(additions);
                let written = tokio::time::timeout(WRITE_TIMEOUT, writing).await;
                written.unwrap_or_else(|_| Err("it takes too long".to_owned()))
            }
            (Err(why), _) => Err(why),
            (Ok(_), None) => Err("there is no config".to_owned()),
        };
        match written {
            Ok(()) => tracing::info!(tool, "added a rule to the config that allows the tool"),
            Err(why) => {
                let warning = format!(
                    "cannot add a rule that allows {tool}, allowed for this session: {why}"
                );
                tracing::warn!("{warning}");
                fleet.audience.log_to(caller, LogLevel::Warning, &warning);
            }
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
    let questions = [(KEY.to_owned(), question.question())];
    let weak = fleet.this.clone();
    let then: Continuation = Box::new(move |caller, responses| {
        Box::pin(async move {
            let fleet = weak.upgrade()?;
            let answer = edit::get(&responses, KEY).map(|answer| UserAnswer::read(&answer));
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
    fleet.asking.ask_by_result(caller, &questions, ANSWER_TIMEOUT, then)
}

/// The key of the question in `inputRequests`.
const KEY: &str = "approval";
