//! Loading an offer for a host.

use super::{
    Caller, Fleet,
    calls::{self, AskLogin, ForwardError},
    publishing,
};
use crate::{
    catalog::OfferId,
    upstream::{Lease, LoadError},
};

/// Loads an offer for all hosts, or wakes its server, at the request of an operator.
pub(super) async fn load_for_all(fleet: &Fleet, offer: OfferId) -> Result<(), LoadError> {
    let request = fleet.board.request(offer);
    fleet.servers.shared(offer.server()).lease(fleet.audience.first_era()).await?;
    request.keep();
    publishing::present_requested(fleet, offer);
    Ok(())
}

/// Loads an offer: its tools appear in the caller's lists, and its server is awake. `ask` names the
/// user that is asked for a missing login.
pub(super) async fn load_offer(
    fleet: &Fleet,
    caller: &Caller,
    offer: OfferId,
    ask: AskLogin,
) -> Result<Lease, ForwardError> {
    let request = fleet.board.request(offer);
    let (_, lease) = calls::lease(fleet, offer.server(), caller, ask).await?;
    request.keep();
    publishing::loaded_by(fleet, caller.host.principal(), offer);
    Ok(lease)
}
