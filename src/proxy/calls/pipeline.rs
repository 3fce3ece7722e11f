//! The stages of a request to a server: authorize, permit, lease, check pins, confirm, send,
//! record, shape.

use super::{
    authorize::authorize,
    call::{Call, Connection},
    forward_error::ForwardError,
    lease::lease,
    leased_request::{LeasedRequest, Sent},
    logins::{self, AskLogin},
    permit::{JudgedCall, confirm, permit, withdraw},
    pin_check::check_pins,
    recorder::Recorder,
    send::send,
    shape::shape,
    task_result::await_task,
};
use crate::{
    catalog::ServerId,
    peer::CallError,
    proxy::{Caller, Fleet, instance::Instance},
    upstream::Lease,
    wire::{Outcome, credentials::CredentialError},
};

/// Maximum number of connections for one request: a server may end whenever it is woken.
const MAX_CONNECTIONS: usize = 3;

/// Takes a request through all stages. Returns what its host is answered.
pub(in crate::proxy) async fn answer(fleet: &Fleet, call: Call<'_>) -> Outcome {
    let (caller, method) = (call.caller, call.method);
    let answered = run(fleet, call).await;
    shape(caller, method, answered)
}

/// Takes a request through the stages up to its record. Returns the server's answer, or the
/// question that the host gets in its place.
pub(in crate::proxy) async fn run(fleet: &Fleet, call: Call<'_>) -> Result<Outcome, ForwardError> {
    let recorder = Recorder::begin(fleet, &call);
    let judged = JudgedCall::of(&call);
    let answered = match attempt(fleet, call, &recorder).await {
        // The record ends with the parked call.
        Ok(Sent::Parked(question)) => return Ok(Ok(question)),
        Ok(Sent::Answered(outcome)) => Ok(outcome),
        Err(error) => Err(error),
    };
    // A call that is evaluated again, or about which the user is asked, may still use it.
    if !matches!(answered, Err(ForwardError::Superseded | ForwardError::Asks(_))) {
        withdraw(fleet, &judged);
    }
    recorder.finish(&answered);
    answered
}

/// A request that is authorized and leased, and that the caller of [`open`] sends itself.
pub(in crate::proxy) struct OpenedCall {
    pub(in crate::proxy) instance: Instance,
    pub(in crate::proxy) lease: Lease,
    /// The name of the server.
    server: String,
    recorder: Recorder,
}

/// Takes a request through the stages before it is sent.
pub(in crate::proxy) async fn open(
    fleet: &Fleet,
    call: &Call<'_>,
) -> Result<OpenedCall, ForwardError> {
    let recorder = Recorder::begin(fleet, call);
    let leased = async {
        authorize(&fleet.servers, call.server, call.feature)?;
        lease(fleet, call.server, call.caller, AskLogin::ThroughHost).await
    };
    match leased.await {
        Ok((instance, lease)) => {
            let server = fleet.servers.config(call.server).name.clone();
            Ok(OpenedCall { instance, lease, server, recorder })
        }
        Err(error) => {
            recorder.finish(&Err(error.clone()));
            Err(error)
        }
    }
}

impl OpenedCall {
    /// Records the answer, and returns it.
    pub(in crate::proxy) fn close(
        self,
        answer: Result<Outcome, CallError>,
    ) -> Result<Outcome, ForwardError> {
        let answered = answer.map_err(|cause| ForwardError::new(self.server, cause));
        self.recorder.finish(&answered);
        answered
    }
}

async fn attempt(
    fleet: &Fleet,
    mut call: Call<'_>,
    recorder: &Recorder,
) -> Result<Sent, ForwardError> {
    authorize(&fleet.servers, call.server, call.feature)?;
    let permission = permit(fleet, &call, recorder).await?;
    let connection = std::mem::replace(&mut call.connection, Connection::OfCaller);
    let Call { server, caller, method, .. } = call;
    let failed = |cause| ForwardError::new(fleet.servers.config(server).name.clone(), cause);
    let leased = |instance, lease| {
        let recorder = recorder.clone();
        LeasedRequest { fleet, lease, instance, caller, method, answered_as: method, recorder }
    };
    if let Connection::Given(instance, lease) = connection {
        let _ = confirm(fleet, &call, &permission, instance, recorder).await?;
        return send(leased(instance, lease), call.params, None).await.map_err(failed);
    }
    let mut last = CallError::NotSent;
    for _ in 0..MAX_CONNECTIONS {
        let (instance, lease) = lease(fleet, server, caller, AskLogin::ThroughHost).await?;
        if let Some(request) = &call.pin_checked {
            Box::pin(check_pins(fleet, request, caller, instance)).await?;
        }
        let used = confirm(fleet, &call, &permission, instance, recorder).await?;
        match send(leased(instance, lease), call.params.clone(), None).await {
            Err(cause) if is_unread(&cause) => {
                fleet.calls.consents.give_back(used);
                if !can_repeat(fleet, &cause, server, caller).await? {
                    return Err(failed(cause));
                }
                last = cause;
            }
            Ok(Sent::Answered(Ok(task))) if call.is_task => {
                return Box::pin(await_task(fleet, caller, server, task, recorder)).await;
            }
            sent => return sent.map_err(failed),
        }
    }
    Err(failed(last))
}

/// Returns whether a server has not read a request.
fn is_unread(cause: &CallError) -> bool {
    matches!(cause, CallError::NotSent | CallError::Unauthorized(_))
}

/// Returns whether a request that was not executed can be sent again: on another connection, or
/// after a login.
async fn can_repeat(
    fleet: &Fleet,
    cause: &CallError,
    server: ServerId,
    caller: &Caller,
) -> Result<bool, ForwardError> {
    match cause {
        CallError::NotSent => Ok(true),
        CallError::Unauthorized(CredentialError::LoginRequired { .. }) => {
            Box::pin(logins::log_in(fleet, server, caller, AskLogin::ThroughHost)).await
        }
        _ => Ok(false),
    }
}
