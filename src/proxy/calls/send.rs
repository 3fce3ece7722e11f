//! Requests to servers that are awake, translated into the era of the server.

use super::{
    conversation::{self, Ending},
    leased_request::LeasedRequest,
    rounds,
};
use crate::{
    peer::CallError,
    protocol::{Era, adapt},
    proxy::{Caller, Fleet, instance::Instance},
    upstream::Lease,
    wire::{Outcome, Raw},
};

/// Sends a request to a server that is awake, in as many steps as the two eras need.
pub(in crate::proxy) async fn request(
    fleet: &Fleet,
    lease: Lease,
    instance: Instance,
    caller: &Caller,
    method: &str,
    params: Option<Raw>,
) -> Result<Outcome, CallError> {
    let forwarded = LeasedRequest { fleet, lease, instance, caller, method };
    send_leased(fleet, forwarded, params, Ending::default()).await
}

/// As [`request`], for a call to a legacy server that may outlive this future: see [`Ending`].
pub(in crate::proxy) async fn send_leased(
    fleet: &Fleet,
    request: LeasedRequest<'_>,
    params: Option<Raw>,
    ending: Ending,
) -> Result<Outcome, CallError> {
    let (caller, era) = (request.caller, request.lease.greeting().era);
    if caller.client.era == Era::Modern
        && let Err(refusal) = fleet.asking.check_state_of_server(era, params.as_ref())
    {
        return Ok(Err(refusal));
    }
    match (caller.client.era, era) {
        (Era::Modern, Era::Legacy) => Box::pin(conversation::begin(request, params, ending)).await,
        (Era::Legacy, Era::Modern) => Box::pin(rounds::play(&request, params)).await,
        (Era::Legacy, Era::Legacy) => {
            let outcome = request.send(params).await?;
            Ok(outcome.map(|result| request.with_task(result)))
        }
        (Era::Modern, Era::Modern) => {
            let outcome = request.send(params).await?;
            if let Ok(result) = &outcome
                && adapt::is_input_required(result)
            {
                fleet.asking.note_state_of_server(result);
            }
            Ok(outcome.map(|result| request.with_task(result)))
        }
    }
}
