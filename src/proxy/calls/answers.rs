//! The host's answer to a request, from the server's answer or from the reason that there is none.

use super::forward_error::ForwardError;
use crate::{
    catalog::ServerId,
    protocol::{adapt, error, method},
    proxy::{Caller, Fleet},
    surface::{blocked, failed},
    wire::{Outcome, Raw},
};

/// Returns the host's answer to a call, from the server's answer or from the reason that there is
/// none.
pub(in crate::proxy) fn answered_call(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    forwarded: Result<Outcome, ForwardError>,
) -> Outcome {
    match forwarded {
        Ok(outcome) => outcome.map(|result| {
            fleet.calls.results.bound(
                caller.host.principal(),
                &fleet.servers.config(server),
                result,
            )
        }),
        Err(ForwardError::Asks(result)) => Ok(result),
        Err(ForwardError::Blocked { server, tool }) => {
            Ok(own_result(caller, blocked(&server, &tool)))
        }
        Err(error) => Ok(own_result(caller, failed(error.to_string()))),
    }
}

/// Returns what [`answered_call`] does, for a request of any method.
pub(in crate::proxy) fn answered_request(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    method: &str,
    forwarded: Result<Outcome, ForwardError>,
) -> Outcome {
    match method {
        method::TOOLS_CALL => answered_call(fleet, caller, server, forwarded),
        _ => reply(forwarded),
    }
}

/// Returns a result of dormouse in the form of the caller's era.
pub(in crate::proxy) fn own_result(caller: &Caller, result: Raw) -> Raw {
    adapt::own_result(method::TOOLS_CALL, caller.client.era, result)
}

/// Returns a server's answer, or a JSON-RPC error with the reason that there is none.
pub(in crate::proxy) fn reply(forwarded: Result<Outcome, ForwardError>) -> Outcome {
    forwarded.unwrap_or_else(|error| match error {
        ForwardError::Asks(result) => Ok(result),
        error => Err(error::internal(error.to_string())),
    })
}
