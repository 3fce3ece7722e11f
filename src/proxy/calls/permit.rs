//! The stage *permit*: whether the policy of the config allows a call of a tool, after the user was
//! asked if a rule demands it (docs/reference/policy.md).

use std::sync::Arc;

use super::{
    ask_user::{AskedCall, ask_user},
    call::Call,
    denial::{Denial, JudgedTool},
    forward_error::ForwardError,
    lease::{lease, upstream},
    logins::AskLogin,
    recorder::Recorder,
};
use crate::{
    catalog::{ServerId, Tool},
    config::{ServerConfig, Settings, Verdict, Wrapping},
    policy::{RuleLists, ToolCall},
    protocol::{ToolAnnotations, method},
    proxy::{
        Fleet, Principal,
        consents::{CallKey, UsedConsent},
        events::PolicyEffect,
        instance::Instance,
    },
    wire::{Raw, edit},
};

/// Maximum number of times that the user is asked about one call. A server that is replaced while
/// the user is asked needs another consent.
const MAX_QUESTIONS: usize = 3;

/// The right to send a call, as it was judged before its server was awake.
pub(super) struct Permission {
    config: ConfigInForce,
    /// The tool as it was judged, if the verdict depends on what the server declares about it.
    declared: Option<DeclaredTool>,
    /// The consent of the user that the sending uses up, if a rule demands one.
    consent: Option<CallKey>,
}

/// What a server declares about a tool; `None` if it does not list the tool.
#[derive(PartialEq)]
struct DeclaredTool {
    name: String,
    annotations: Option<ToolAnnotations>,
}

/// The parts of the config by which a call is judged.
struct ConfigInForce {
    settings: Arc<Settings>,
    server: Arc<ServerConfig>,
    /// The shared instance of the server, in the version that has this config.
    instance: Instance,
}

/// The judgement of the policy on a call.
enum Judgement {
    Allowed,
    NeedsConsent(Box<AskedCall>),
    /// The server does not list the tool, `server/tool`, so that its properties are not known.
    Unlisted(String),
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
    let mut is_tool_list_read = false;
    loop {
        let config = ConfigInForce::of(fleet, call.server);
        let declared = DeclaredTool::of(fleet, call, &config, None);
        let asked = match judge(fleet, call, &config, None)? {
            Judgement::Allowed => {
                return Ok(Permission { config, declared, consent: None });
            }
            Judgement::Unlisted(_) if !is_tool_list_read => {
                is_tool_list_read = true;
                read_tool_list(fleet, call).await?;
                continue;
            }
            Judgement::Unlisted(tool) => return Err(Denial::Unlisted { tool }.into()),
            Judgement::NeedsConsent(asked) => asked,
        };
        if fleet.calls.consents.has(call.caller.host.principal(), &asked.key) {
            return Ok(Permission { config, declared, consent: Some(asked.key) });
        }
        if questions == MAX_QUESTIONS {
            return Err(Denial::ConsentsLost(asked.judged()).into());
        }
        questions += 1;
        let (rules, settings) = (config.rules_for(call), &config.settings);
        Box::pin(ask_user(fleet, call.caller, &asked, &rules, settings, recorder)).await?;
    }
}

/// Checks right before a call is sent on an instance that the policy still allows it: the config
/// and the server's list of tools may have changed while the server was started. Uses up the
/// consent to a single call.
///
/// # Errors
/// [`ForwardError::Denied`], or [`ForwardError::Superseded`] if the user has to be asked again.
pub(super) async fn confirm(
    fleet: &Fleet,
    call: &Call<'_>,
    permission: &Permission,
    instance: Instance,
    recorder: &Recorder,
) -> Result<UsedConsent, ForwardError> {
    let mut config = ConfigInForce::of(fleet, call.server);
    if depends_on_list(call, &config) {
        // A tool may have become destructive while its server slept.
        if !upstream(fleet, instance).lists_current().await {
            return Err(Denial::ListUnread { server: config.server.name.clone() }.into());
        }
        config = ConfigInForce::of(fleet, call.server);
    }
    let declared = DeclaredTool::of(fleet, call, &config, Some(instance));
    let is_unchanged = permission.config.is_same(&config) && permission.declared == declared;
    let consent = if is_unchanged {
        permission.consent.clone()
    } else {
        match judge(fleet, call, &config, Some(instance))? {
            Judgement::Allowed => None,
            Judgement::NeedsConsent(asked) => Some(asked.key),
            // The list of a server that was replaced is read first.
            Judgement::Unlisted(_) => return Err(ForwardError::Superseded),
        }
    };
    let Some(key) = consent else { return Ok(UsedConsent::default()) };
    let principal = call.caller.host.principal();
    let used = fleet.calls.consents.take(principal, &key).ok_or(ForwardError::Superseded)?;
    recorder.note_policy(PolicyEffect::Approved);
    Ok(used)
}

/// Returns whether the verdict on a call depends on what the server declares about its tools.
fn depends_on_list(call: &Call<'_>, config: &ConfigInForce) -> bool {
    call.method == method::TOOLS_CALL
        && (call.requires_read_only || config.rules_for(call).depend_on_hints())
}

impl DeclaredTool {
    /// Returns the tool of a call if the verdict depends on its declaration.
    fn of(
        fleet: &Fleet,
        call: &Call<'_>,
        config: &ConfigInForce,
        instance: Option<Instance>,
    ) -> Option<Self> {
        if !depends_on_list(call, config) {
            return None;
        }
        let name = edit::get_str(call.params.as_ref()?, "name")?;
        Some(Self { annotations: annotations(fleet, call.server, instance, &name), name })
    }
}

/// Withdraws the consent to a single call, if it was not used up: the user has agreed to this
/// call, and not to a later one.
pub(super) fn withdraw(fleet: &Fleet, call: &JudgedCall) {
    let JudgedCall { principal, server, params: Some(params) } = call else { return };
    if fleet.calls.consents.has_single_calls(*principal) {
        let config = ConfigInForce::of(fleet, *server);
        if let Ok(call) = ToolCall::read(&config.server.name, params) {
            fleet.calls.consents.withdraw(*principal, &CallKey::of(config.instance, &call));
        }
    }
}

/// The parts of a call by which its consent is found.
pub(super) struct JudgedCall {
    principal: Principal,
    server: ServerId,
    params: Option<Raw>,
}

impl JudgedCall {
    pub(super) fn of(call: &Call<'_>) -> Self {
        let params = call.params.clone().filter(|_| call.method == method::TOOLS_CALL);
        Self { principal: call.caller.host.principal(), server: call.server, params }
    }
}

impl ConfigInForce {
    fn of(fleet: &Fleet, server: ServerId) -> Self {
        let settings = fleet.settings();
        let roster = fleet.servers.roster();
        let slot = roster.slot(server);
        let instance = Instance::shared(server, slot.version);
        Self { settings, server: slot.config.clone(), instance }
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.settings, &other.settings) && Arc::ptr_eq(&self.server, &other.server)
    }

    /// Returns the rules that apply to a call.
    fn rules_for(&self, call: &Call<'_>) -> RuleLists<'_> {
        let profile = call.caller.endpoint().profile;
        RuleLists::of(&self.settings, &self.server, profile.as_ref())
    }
}

/// Waits until the list of a server's tools is known, with the changes that it has announced.
async fn read_tool_list(fleet: &Fleet, call: &Call<'_>) -> Result<(), ForwardError> {
    let leasing = lease(fleet, call.server, call.caller, AskLogin::ThroughHost);
    let (instance, _lease) = Box::pin(leasing).await?;
    upstream(fleet, instance).caught_up().await;
    Ok(())
}

/// Judges a call. `instance` is the one that it is sent to, if that is known.
///
/// # Errors
/// [`ForwardError::Denied`], or [`ForwardError::Superseded`] if the server has no list of tools
/// yet: the request is evaluated again, which loads it.
fn judge(
    fleet: &Fleet,
    call: &Call<'_>,
    config: &ConfigInForce,
    instance: Option<Instance>,
) -> Result<Judgement, ForwardError> {
    // The fleet of a host has applied its policy before it calls a shared server.
    if call.method != method::TOOLS_CALL || config.settings.launch.wrapping == Wrapping::Pooled {
        return Ok(Judgement::Allowed);
    }
    let rules = config.rules_for(call);
    if !rules.concern_server() && !call.requires_read_only {
        return Ok(Judgement::Allowed);
    }
    let server = &config.server.name;
    let malformed = |cause| Denial::Malformed { server: server.clone(), cause };
    let params = call.params.clone().unwrap_or_else(Raw::empty_object);
    let judged = ToolCall::read(server, &params).map_err(malformed)?;
    let known = annotations(fleet, call.server, instance, judged.tool());
    let Some(annotations) = known else {
        return if has_tool_list(fleet, call.server) {
            Ok(Judgement::Unlisted(judged.full_name().to_owned()))
        } else {
            Err(ForwardError::Superseded)
        };
    };
    let judged = judged.annotated(annotations).requiring_read_only(call.requires_read_only);
    let decision = rules.decide(&judged).map_err(malformed)?;
    match decision.verdict {
        Verdict::Allow => Ok(Judgement::Allowed),
        Verdict::Deny => {
            let commands = &config.settings.launch.commands;
            Err(Denial::of(JudgedTool::of(&judged, decision), commands).into())
        }
        Verdict::Ask => {
            let key = CallKey::of(config.instance, &judged);
            Ok(Judgement::NeedsConsent(Box::new(AskedCall { key, call: judged, decision })))
        }
    }
}

fn has_tool_list(fleet: &Fleet, server: ServerId) -> bool {
    fleet.board.snapshot().offers_of(server).any(|(_, offer)| offer.exposed().is_some())
}

/// Returns the annotations of a tool by the server's own name for it, if the server lists it. All
/// hosts share one snapshot, so that a host's own instance may list other tools.
fn annotations(
    fleet: &Fleet,
    server: ServerId,
    instance: Option<Instance>,
    name: &str,
) -> Option<ToolAnnotations> {
    let of =
        |tools: &[Tool]| tools.iter().find(|tool| tool.name == name).map(|tool| tool.annotations);
    let own = instance.filter(|instance| instance.owner.is_some());
    if let Some(catalog) = own.and_then(|own| upstream(fleet, own).catalog()) {
        return of(&catalog.tools);
    }
    let snapshot = fleet.board.snapshot();
    let mut listed = snapshot.offers_of(server).filter_map(|(_, offer)| offer.exposed());
    listed.find_map(|exposed| of(&exposed.whole.tools))
}
