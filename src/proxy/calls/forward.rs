//! One request to one server, in stages: authorize, lease, approve, send, record.

use tokio::time::Instant;

use super::{
    approval::{Approval, check_approval},
    forward_error::ForwardError,
    lease::lease,
    logins::{self, AskLogin, LoginOutcome},
    send,
};
use crate::{
    catalog::ServerId,
    peer::CallError,
    proxy::{CallEnding, Caller, EndedCall, Event, Fleet},
    wire::{Outcome, Raw, credentials::CredentialError, edit},
};

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

    /// Adds a check that is made when the server is awake.
    pub(in crate::proxy) fn approved_by(self, approval: Option<Approval<'a>>) -> Self {
        Self { approval, ..self }
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
        let (instance, lease) = lease(fleet, server, caller).await?;
        if let Some(approval) = approval {
            Box::pin(check_approval(fleet, approval, caller, instance)).await?;
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
        server: fleet.servers.config(server).name.clone(),
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
                logins::login_channel(fleet, caller, AskLogin::ThroughHost),
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
        Some(("tools", _)) => ("tools", config.offer.features.tools),
        Some(("resources", _)) => ("resources", config.offer.features.resources),
        Some(("prompts", _)) => ("prompts", config.offer.features.prompts),
        _ => return Ok(()),
    };
    if is_on {
        return Ok(());
    }
    Err(ForwardError::SwitchedOff { server: config.name.clone(), feature })
}
