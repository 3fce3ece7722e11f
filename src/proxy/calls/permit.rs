//! The stage *permit*: whether the policy of the config allows a call of a tool, after the user was
//! asked if a rule demands it (docs/reference/policy.md).

use std::time::Duration;

use super::{
    approval_question::{ApprovalQuestion, UserAnswer},
    call::Call,
    denial::Denial,
    forward_error::ForwardError,
    heartbeat::with_beats,
    shape::shape,
};
use crate::{
    catalog::ServerId,
    config::{Settings, Verdict, Wrapping},
    policy::{Decision, RuleLists, ToolCall},
    protocol::{Era, method},
    proxy::{
        Caller, Fleet, Principal,
        asking::{Continuation, Reaction},
        consents::{AskedTool, RuleAddition, digest},
    },
    wire::{Raw, edit},
};

/// Maximum time for a user to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum time for a rule to be written and to be in force.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks that the policy allows a call. Other requests need no permission.
///
/// # Errors
/// [`ForwardError::Denied`], or [`ForwardError::Asks`] with the result that has a modern host ask
/// its user and retry.
pub(super) async fn permit(fleet: &Fleet, call: &Call<'_>) -> Result<(), ForwardError> {
    let settings = fleet.settings();
    // The fleet of a host has applied its policy before it calls a shared server.
    if call.method != method::TOOLS_CALL || settings.wrapping == Wrapping::Pooled {
        return Ok(());
    }
    let config = fleet.servers.config(call.server);
    let profile = call.caller.endpoint().profile;
    let lists = RuleLists::of(&settings, &config, profile.as_ref());
    if lists.are_empty() && !call.is_to_read_only {
        return Ok(());
    }
    let denied = |denial| ForwardError::Denied(Box::new(denial));
    let params = call.params.clone().unwrap_or_else(Raw::empty_object);
    let definition = definition(fleet, call.server, &params);
    let known = definition.clone().unwrap_or_else(Raw::empty_object);
    let mut asked = ToolCall::read(&config.name, &params, &known)
        .map_err(|cause| denied(Denial::Malformed { server: config.name.clone(), cause }))?;
    asked.is_to_read_only = call.is_to_read_only;
    if definition.is_none() {
        return Err(denied(Denial::Unlisted { tool: asked.full_name().to_owned() }));
    }
    let decision = lists.decide(&asked);
    match decision.verdict {
        Verdict::Allow => Ok(()),
        Verdict::Deny => Err(denied(Denial::Rule { tool: asked.full_name().to_owned(), decision })),
        Verdict::Ask => {
            let question = Question { caller: call.caller, server: call.server, call: &asked };
            Box::pin(question.ask(fleet, &settings, &lists, &decision)).await
        }
    }
}

/// Returns the definition of a tool by the server's own name for it, if the server lists it.
fn definition(fleet: &Fleet, server: ServerId, params: &Raw) -> Option<Raw> {
    let name = edit::get_str(params, "name")?;
    let snapshot = fleet.board.snapshot();
    let mut listed = snapshot.offers_of(server).filter_map(|(_, offer)| offer.exposed());
    listed.find_map(|exposed| {
        let tools = &exposed.whole.tools;
        tools.iter().find(|tool| tool.name == name).map(|tool| tool.raw.clone())
    })
}

/// A call for which a user is asked.
struct Question<'a> {
    caller: &'a Caller,
    server: ServerId,
    call: &'a ToolCall<'a>,
}

impl Question<'_> {
    async fn ask(
        &self,
        fleet: &Fleet,
        settings: &Settings,
        lists: &RuleLists<'_>,
        decision: &Decision,
    ) -> Result<(), ForwardError> {
        let principal = self.caller.host.principal();
        let tool = self.call.full_name().to_owned();
        if fleet.calls.consents.take(principal, self.call) {
            return Ok(());
        }
        let denied = |denial| ForwardError::Denied(Box::new(denial));
        if settings.launch.is_unattended || !ApprovalQuestion::can_be_asked(&self.caller.client) {
            let decision = decision.clone();
            return Err(denied(Denial::CannotAsk { tool, decision }));
        }
        let question = ApprovalQuestion::of(self.call, decision);
        let consent = Consent {
            principal,
            tool: tool.clone(),
            asked: AskedTool::of(self.call),
            call: digest(self.call),
            addition: addition(self.call, lists, decision),
        };
        if self.caller.client.era == Era::Modern {
            let result = ask_to_come_back(fleet, self.caller, self.server, &question, consent);
            return Err(ForwardError::Asks(result));
        }
        let question = question.question();
        let asking = question.ask(&self.caller.peer, ANSWER_TIMEOUT, std::future::pending());
        let message = format!("waiting for the user to approve {tool}");
        match with_beats(self.caller, &message, asking).await {
            Reaction::Answered(answer) => {
                consent.apply(fleet, UserAnswer::read(&answer), false).await.map_err(denied)
            }
            Reaction::Refused(_) | Reaction::Failed(_) | Reaction::Withdrawn => {
                Err(denied(Denial::NotAnswered { tool, decision: decision.clone() }))
            }
        }
    }
}

/// Returns the rule that "always" adds: the one that asks, for this tool alone. Returns `None` if
/// no rule of the config asks, or the name of the tool would match others.
fn addition(
    call: &ToolCall<'_>,
    lists: &RuleLists<'_>,
    decision: &Decision,
) -> Option<RuleAddition> {
    let place = decision.place()?;
    let before = lists.rule(place)?.clone();
    let rule = call.allowing(&place.list, &before)?;
    Some(RuleAddition { list: place.list.clone(), rule, before })
}

/// The subject of a question to a user.
struct Consent {
    principal: Principal,
    /// `server/tool`
    tool: String,
    asked: AskedTool,
    call: [u8; 32],
    addition: Option<RuleAddition>,
}

impl Consent {
    /// Remembers the answer of the user. `is_repeated`: the request is evaluated again, and needs
    /// the consent then.
    ///
    /// # Errors
    /// If the user does not agree.
    async fn apply(
        self,
        fleet: &Fleet,
        answer: UserAnswer,
        is_repeated: bool,
    ) -> Result<(), Denial> {
        let consents = &fleet.calls.consents;
        match answer {
            UserAnswer::No => return Err(Denial::Declined { tool: self.tool }),
            UserAnswer::Once if is_repeated => consents.agree_once(self.principal, self.call),
            UserAnswer::Once => {}
            UserAnswer::ForSession => consents.agree_for_session(self.principal, self.asked),
            UserAnswer::Always => {
                // If the rule cannot be written, the consent holds for this session.
                consents.agree_for_session(self.principal, self.asked.clone());
                self.write(fleet).await;
            }
        }
        Ok(())
    }

    async fn write(self, fleet: &Fleet) {
        let tool = self.tool;
        let (Some(addition), Some(writer)) = (self.addition, fleet.calls.consents.writer()) else {
            tracing::warn!(tool, "no rule can be written for this tool; it is allowed for now");
            return;
        };
        match tokio::time::timeout(WRITE_TIMEOUT, writer.add_rule(addition)).await {
            Ok(Ok(())) => tracing::info!(tool, "added a rule to the config that allows the tool"),
            Ok(Err(why)) => {
                tracing::warn!(tool, why, "cannot add a rule to the config; allowed for now");
            }
            Err(_) => tracing::warn!(tool, "adding a rule to the config takes too long"),
        }
    }
}

/// Returns the result that has a modern host ask its user and retry.
fn ask_to_come_back(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    question: &ApprovalQuestion,
    consent: Consent,
) -> Raw {
    let questions = [(KEY.to_owned(), question.question())];
    let weak = fleet.this.clone();
    let then: Continuation = Box::new(move |caller, responses| {
        Box::pin(async move {
            let fleet = weak.upgrade()?;
            let answer = edit::get(&responses, KEY).map(|answer| UserAnswer::read(&answer));
            let applied = consent.apply(&fleet, answer.unwrap_or(UserAnswer::No), true).await;
            let denied = ForwardError::Denied(Box::new(applied.err()?));
            Some(shape(&fleet, &caller, server, method::TOOLS_CALL, Err(denied)))
        })
    });
    fleet.asking.ask_by_result(caller, &questions, ANSWER_TIMEOUT, then)
}

/// The key of the question in `inputRequests`.
const KEY: &str = "approval";
