//! The stage *send*: a request to a server that is awake, translated into the era of the server.

use super::{
    conversation,
    leased_request::{LeasedRequest, Sent},
    rounds,
};
use crate::{
    peer::CallError,
    protocol::{Era, adapt},
    proxy::known_tasks::Cancellation,
    wire::Raw,
};

/// Sends a request to a server that is awake, in as many steps as the two eras need.
/// `cancellation`: the task to cancel if the call is parked and its host does not come back.
pub(super) async fn send(
    request: LeasedRequest<'_>,
    params: Option<Raw>,
    cancellation: Option<Cancellation>,
) -> Result<Sent, CallError> {
    let (fleet, caller, era) = (request.fleet, request.caller, request.lease.greeting().era);
    if caller.client.era == Era::Modern
        && let Err(refusal) = fleet.asking.check_state_of_server(era, params.as_ref())
    {
        return Ok(Sent::Answered(Err(refusal)));
    }
    let outcome = match (caller.client.era, era) {
        (Era::Modern, Era::Legacy) => {
            return Box::pin(conversation::begin(request, params, cancellation)).await;
        }
        (Era::Legacy, Era::Modern) => Box::pin(rounds::play(&request, params)).await?,
        (Era::Legacy, Era::Legacy) => {
            request.send(params).await?.map(|result| request.with_task(result))
        }
        (Era::Modern, Era::Modern) => {
            let outcome = request.send(params).await?;
            if let Ok(result) = &outcome
                && adapt::is_input_required(result)
            {
                fleet.asking.note_state_of_server(result);
            }
            outcome.map(|result| request.with_task(result))
        }
    };
    Ok(Sent::Answered(outcome))
}
