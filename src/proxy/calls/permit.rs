//! The stage *permit*: whether the policy of the config allows a call of a tool, after the user was
//! asked if a rule demands it (docs/reference/policy.md).

use std::sync::Arc;

use super::{
    ask_user::{AskedCall, ask_user},
    call::Call,
    denial::Denial,
    forward_error::ForwardError,
    lease::{lease, upstream},
    logins::AskLogin,
    recorder::Recorder,
};
use crate::{
    catalog::ServerId,
    config::{ServerConfig, Settings, Verdict, Wrapping},
    policy::{RuleLists, ToolCall},
    protocol::{ToolAnnotations, method},
    proxy::{
        Fleet,
        consents::{CallKey, UsedConsent},
        events::PolicyEffect,
        instance::Instance,
    },
    wire::Raw,
};

/// Maximum number of times that the user is asked about one call. A server that is replaced while
/// the user is asked needs another consent.
const MAX_QUESTIONS: usize = 3;

/// The right to send a call, by the config that was in force when it was judged.
pub(super) struct Permission {
    settings: Arc<Settings>,
    config: Arc<ServerConfig>,
    /// The call, if a rule demands the consent of the user.
    asked: Option<AskedCall>,
}

/// Checks that the policy allows a call, and asks the user if a rule demands it. Other requests
/// need no permission. [`confirm`] has to precede the sending.
///
/// # Errors
/// [`ForwardError::Denied`], or [`ForwardError::Asks`] with the result that has a modern host ask
/// its user and retry.
pub(super) async fn permit(
    fleet: &Fleet,
    call: &Call<'_>,
    recorder: &Recorder,
) -> Result<Permission, ForwardError> {
    let mut questions = 0;
    let mut is_list_read = false;
    loop {
        let permission = match judge(fleet, call) {
            Err(error) if is_unlisted(&error) && !is_list_read => {
                is_list_read = true;
                read_list(fleet, call).await?;
                continue;
            }
            judged => judged?,
        };
        let Some(asked) = &permission.asked else { return Ok(permission) };
        let is_agreed = fleet.calls.consents.has(call.caller.host.principal(), &asked.key);
        if is_agreed {
            return Ok(permission);
        }
        if questions == MAX_QUESTIONS {
            return Err(Denial::NotAnswered(asked.subject()).into());
        }
        questions += 1;
        let lists = lists(&permission.settings, &permission.config, call);
        let settings = &permission.settings;
        Box::pin(ask_user(fleet, call.caller, asked, &lists, settings, recorder)).await?;
    }
}

/// Checks right before a call is sent that the policy still allows it: the config may have changed
/// while the server was started. Uses up the consent to a single call.
///
/// # Errors
/// [`ForwardError::Denied`], or [`ForwardError::Superseded`] if the user has to be asked again.
pub(super) fn confirm(
    fleet: &Fleet,
    call: &Call<'_>,
    permission: &Permission,
    recorder: &Recorder,
) -> Result<UsedConsent, ForwardError> {
    let fresh;
    let permission = if permission.is_current(fleet, call.server) {
        permission
    } else {
        fresh = judge(fleet, call).map_err(|error| match error {
            // The list of a server that was replaced is read first.
            error if is_unlisted(&error) => ForwardError::Superseded,
            error => error,
        })?;
        &fresh
    };
    let Some(asked) = &permission.asked else { return Ok(UsedConsent::default()) };
    let principal = call.caller.host.principal();
    let used = fleet.calls.consents.take(principal, &asked.key).ok_or(ForwardError::Superseded)?;
    recorder.note_policy(PolicyEffect::Approved);
    Ok(used)
}

impl Permission {
    fn is_current(&self, fleet: &Fleet, server: ServerId) -> bool {
        Arc::ptr_eq(&self.settings, &fleet.settings())
            && Arc::ptr_eq(&self.config, &fleet.servers.config(server))
    }
}

fn is_unlisted(error: &ForwardError) -> bool {
    matches!(error, ForwardError::Denied(denial) if matches!(**denial, Denial::Unlisted { .. }))
}

/// Waits until the list of a server's tools is known, with the changes that it has announced.
async fn read_list(fleet: &Fleet, call: &Call<'_>) -> Result<(), ForwardError> {
    let leasing = lease(fleet, call.server, call.caller, AskLogin::ThroughHost);
    let (instance, _lease) = Box::pin(leasing).await?;
    upstream(fleet, instance).caught_up().await;
    Ok(())
}

/// Judges a call by the config that is in force.
fn judge(fleet: &Fleet, call: &Call<'_>) -> Result<Permission, ForwardError> {
    let settings = fleet.settings();
    let roster = fleet.servers.roster();
    let slot = roster.slot(call.server);
    let config = slot.config.clone();
    let permitted = |asked| Ok(Permission { settings: settings.clone(), config, asked });
    // The fleet of a host has applied its policy before it calls a shared server.
    if call.method != method::TOOLS_CALL || settings.wrapping == Wrapping::Pooled {
        return permitted(None);
    }
    let lists = lists(&settings, &slot.config, call);
    if !lists.concern_server() && !call.requires_read_only {
        return permitted(None);
    }
    let server = &slot.config.name;
    let malformed = |cause| Denial::Malformed { server: server.clone(), cause };
    let params = call.params.clone().unwrap_or_else(Raw::empty_object);
    let asked = ToolCall::read(server, &params).map_err(malformed)?;
    let Some(annotations) = annotations(fleet, call.server, asked.tool()) else {
        return Err(unlisted(fleet, call.server, &asked));
    };
    let asked = asked.annotated(annotations).requiring_read_only(call.requires_read_only);
    let decision = lists.decide(&asked).map_err(malformed)?;
    match decision.verdict {
        Verdict::Allow => permitted(None),
        Verdict::Deny => {
            let tool = asked.full_name().to_owned();
            Err(Denial::Rule { tool, decision }.into())
        }
        Verdict::Ask => {
            let key = CallKey::of(Instance::shared(call.server, slot.version), &asked);
            permitted(Some(AskedCall { key, call: asked, decision }))
        }
    }
}

/// Returns the rules that apply to a call.
fn lists<'a>(settings: &'a Settings, config: &'a ServerConfig, call: &Call<'_>) -> RuleLists<'a> {
    let profile = call.caller.endpoint().profile;
    RuleLists::of(settings, config, profile.as_ref())
}

/// Returns the reason against a call of a tool that the server does not list.
fn unlisted(fleet: &Fleet, server: ServerId, call: &ToolCall) -> ForwardError {
    let snapshot = fleet.board.snapshot();
    if snapshot.offers_of(server).any(|(_, offer)| offer.exposed().is_some()) {
        return Denial::Unlisted { tool: call.full_name().to_owned() }.into();
    }
    // A server that was replaced meanwhile has no list yet: the request is evaluated again, which
    // loads it.
    ForwardError::Superseded
}

/// Returns the annotations of a tool by the server's own name for it, if the server lists it.
fn annotations(fleet: &Fleet, server: ServerId, name: &str) -> Option<ToolAnnotations> {
    let snapshot = fleet.board.snapshot();
    let mut listed = snapshot.offers_of(server).filter_map(|(_, offer)| offer.exposed());
    listed.find_map(|exposed| {
        let tools = &exposed.whole.tools;
        tools.iter().find(|tool| tool.name == name).map(|tool| tool.annotations)
    })
}
