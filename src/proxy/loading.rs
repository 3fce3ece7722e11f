//! Loading an offer for a host.

use super::{
    Caller, Fleet,
    calls::{self, AskLogin, ForwardError},
    publishing,
};
use crate::{catalog::OfferId, upstream::Lease};

/// Loads an offer: its tools appear in the caller's lists, and its server is awake. `ask` names the
/// user that is asked for a missing login.
pub(super) async fn load_offer(
    fleet: &Fleet,
    caller: &Caller,
    offer: OfferId,
    ask: AskLogin,
) -> Result<Lease, ForwardError> {
    fleet.board.request(offer);
    let (_, lease) = calls::lease(fleet, offer.server(), caller, ask).await?;
    publishing::loaded_by(fleet, caller.host.principal(), offer);
    Ok(lease)
}
