//! One request to one server, in stages: authorize, lease, approve, send, record.

use super::approval;
use super::lease;
use super::send;
use tokio::time::Instant;

use super::{approval::Approval, lease::AskLogin};
use crate::{
    catalog::ServerId,
    peer::CallError,
    proxy::{CallEnding, Caller, EndedCall, Event, Fleet, logins, logins::LoginOutcome},
    upstream::LoadError,
    wire::{Outcome, Raw, credentials::CredentialError, edit},
};

/// The reason that a request has no answer from its server.
#[derive(Clone, Debug, thiserror::Error)]
pub(in crate::proxy) enum ForwardError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("server {server:?} ended before it answered; the request may have been executed")]
    Died { server: String },
    #[error("the {feature} of server {server:?} are switched off by the config of dormouse")]
    SwitchedOff { server: String, feature: &'static str },
    #[error("server {server:?}: {cause}")]
    Call { server: String, cause: CallError },
    /// The tool differs from what was approved.
    #[error("tool {tool:?} of server {server:?} is not what was approved")]
    Blocked { server: String, tool: String },
    /// The request came to something else when the server was awake; nothing was sent.
    #[error("the request has to be evaluated again")]
    Superseded,
    /// The host has to ask its user first, with this result.
    #[error("its user has to log in first")]
    Asks(Raw),
    /// A user was asked to log in and has not.
    #[error(
        "server {server:?} wants a login, which has not come about ({why}): run `{command}` in a terminal, then try again"
    )]
    NotLoggedIn { server: String, why: String, command: String },
}

impl ForwardError {
    pub(in crate::proxy) fn new(server: String, cause: CallError) -> Self {
        match cause {
            CallError::Closed => Self::Died { server },
            cause => Self::Call { server, cause },
        }
    }
}

/// Maximum number of connections for one request: a server may end whenever it is woken.
const MAX_CONNECTIONS: usize = 3;

/// A request of a host to one server.
pub(in crate::proxy) struct Outbound<'a> {
    pub(super) server: ServerId,
    pub(super) caller: &'a Caller,
    pub(super) method: &'a str,
    pub(super) params: Option<Raw>,
    /// The check that is repeated when the server is awake.
    pub(super) approval: Option<Approval<'a>>,
}

impl<'a> Outbound<'a> {
    pub(in crate::proxy) fn new(
        server: ServerId,
        caller: &'a Caller,
        method: &'a str,
        params: Option<Raw>,
    ) -> Self {
        Self { server, caller, method, params, approval: None }
    }
}

/// Sends a request to a server, which is woken or loaded for it. Returns the server's answer.
pub(in crate::proxy) async fn forward(
    fleet: &Fleet,
    outbound: Outbound<'_>,
) -> Result<Outcome, ForwardError> {
    let began = Instant::now();
    let answered = attempt(fleet, &outbound).await;
    if fleet.events.has_listeners() {
        record(fleet, &outbound, began, &answered);
    }
    answered
}

async fn attempt(fleet: &Fleet, outbound: &Outbound<'_>) -> Result<Outcome, ForwardError> {
    let Outbound { server, caller, method, ref params, ref approval } = *outbound;
    check_feature(fleet, server, method)?;
    let failed = |cause| ForwardError::new(fleet.servers.config(server).name.clone(), cause);
    let mut last = CallError::NotSent;
    for _ in 0..MAX_CONNECTIONS {
        let (instance, lease) = lease::lease(fleet, server, caller).await?;
        if let Some(approval) = approval {
            Box::pin(approval::check_approval(fleet, approval, caller, instance)).await?;
        }
        match send::request(fleet, lease, instance, caller, method, params.clone()).await {
            Err(cause) if can_repeat(fleet, server, caller, &cause).await? => last = cause,
            answered => return answered.map_err(failed),
        }
    }
    Err(failed(last))
}

/// Sends the event that a request has ended.
fn record(
    fleet: &Fleet,
    outbound: &Outbound<'_>,
    began: Instant,
    answered: &Result<Outcome, ForwardError>,
) {
    let Outbound { server, caller, method, ref params, .. } = *outbound;
    let is_error = |result: &Raw| {
        edit::get(result, "isError").is_some_and(|is_error| is_error.as_bytes() == b"true")
    };
    let ending = match answered {
        Ok(Ok(result)) if is_error(result) => CallEnding::Failed,
        Ok(Ok(_)) => CallEnding::Succeeded,
        Ok(Err(_)) => CallEnding::Refused,
        // The same request is made again.
        Err(ForwardError::Superseded | ForwardError::Asks(_)) => return,
        Err(_) => CallEnding::Unanswered,
    };
    let subject = params
        .as_ref()
        .and_then(|params| edit::get_str(params, "name").or_else(|| edit::get_str(params, "uri")));
    fleet.events.send(Event::CallEnded(EndedCall {
        host: caller.host.id(),
        server,
        method: method.to_owned(),
        subject,
        took: began.elapsed(),
        ending,
    }));
}

/// Returns whether a request that was not executed can be sent again: on another connection, or
/// after a login.
async fn can_repeat(
    fleet: &Fleet,
    server: ServerId,
    caller: &Caller,
    cause: &CallError,
) -> Result<bool, ForwardError> {
    match cause {
        CallError::NotSent => Ok(true),
        CallError::Unauthorized(CredentialError::LoginRequired { .. }) => {
            match Box::pin(logins::log_in(
                fleet,
                server,
                caller,
                logins::way(fleet, caller, AskLogin::ThroughHost),
            ))
            .await
            {
                LoginOutcome::LoggedIn => Ok(true),
                LoginOutcome::Asks(result) => Err(ForwardError::Asks(result)),
                LoginOutcome::Failed(error) => Err(error),
                LoginOutcome::NobodyToAsk => Ok(false),
            }
        }
        _ => Ok(false),
    }
}

/// Checks that the config allows the part of a server that a method belongs to.
pub(in crate::proxy) fn check_feature(
    fleet: &Fleet,
    server: ServerId,
    method: &str,
) -> Result<(), ForwardError> {
    let config = fleet.servers.config(server);
    let (feature, is_on) = match method.split_once('/') {
        Some(("tools", _)) => ("tools", config.features.tools),
        Some(("resources", _)) => ("resources", config.features.resources),
        Some(("prompts", _)) => ("prompts", config.features.prompts),
        _ => return Ok(()),
    };
    if is_on {
        return Ok(());
    }
    Err(ForwardError::SwitchedOff { server: config.name.clone(), feature })
}
