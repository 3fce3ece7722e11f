//! Tasks that dormouse makes of calls: the call waits for the result of the task.

use serde_json::json;

use super::{
    forward_error::ForwardError,
    lease::lease,
    leased_request::{LeasedRequest, Sent},
    logins::AskLogin,
    recorder::Recorder,
    send::send,
};
use crate::{
    catalog::ServerId,
    protocol::{Era, method, task},
    proxy::{
        Caller, Fleet,
        known_tasks::{Cancellation, unsubscribe},
    },
    wire::Raw,
};

/// Waits for the result of the task that a call has created. `created`: the result of the call.
pub(super) async fn await_task(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    created: Raw,
    recorder: &Recorder,
) -> Result<Sent, ForwardError> {
    let Some(task) = task::created(Era::Legacy, &created) else {
        return Ok(Sent::Answered(Ok(created)));
    };
    let owner = caller.host.principal();
    let known = fleet.extensions.tasks.find(owner, &task.id);
    let id = known.map_or_else(|| task.id.clone(), |origin| origin.id);
    let (instance, lease) = lease(fleet, server, caller, AskLogin::ThroughHost).await?;
    let params = Raw::encode(&json!({"taskId": id}));
    let armed = lease.another().map(|lease| (lease, params.clone()));
    let cancellation = Cancellation::new(fleet.context.tasks.clone(), armed);
    // If the server asks something, a modern host leaves; its retry gets the result.
    let (here, parked) = match caller.client.era {
        Era::Legacy => (Some(cancellation), None),
        Era::Modern => (None, Some(cancellation)),
    };
    let request = LeasedRequest {
        fleet,
        lease,
        instance,
        caller,
        method: method::TASKS_RESULT,
        answered_as: method::TOOLS_CALL,
        recorder: recorder.clone(),
    };
    let sent = send(request, Some(params), parked).await;
    if let Some(cancellation) = here {
        cancellation.disarm();
    }
    unsubscribe(fleet, fleet.extensions.tasks.remove(owner, &task.id));
    let name = fleet.servers.config(server).name.clone();
    sent.map_err(|cause| ForwardError::new(name, cause))
}
