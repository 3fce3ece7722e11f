//! The stage *shape*: the host's answer, from the server's answer or from the reason that there is
//! none.

use super::forward_error::ForwardError;
use crate::{
    protocol::{adapt, error, method},
    proxy::Caller,
    surface::failed,
    wire::{Outcome, Raw},
};

/// Returns the answer to a request of this method. Failures of dormouse are results with `isError`
/// for a call of a tool, and JSON-RPC errors for any other request.
pub(in crate::proxy) fn shape(
    caller: &Caller,
    method: &str,
    answered: Result<Outcome, ForwardError>,
) -> Outcome {
    let is_call = method == method::TOOLS_CALL;
    match answered {
        Ok(outcome) => outcome,
        Err(ForwardError::Asks(result)) => Ok(result),
        Err(error) if is_call => Ok(own_result(caller, failed(error.to_string()))),
        Err(error) => Err(error::internal(error.to_string())),
    }
}

/// Returns a result of dormouse in the form of the caller's era.
pub(in crate::proxy) fn own_result(caller: &Caller, result: Raw) -> Raw {
    adapt::own_result(method::TOOLS_CALL, caller.client.era, result)
}
