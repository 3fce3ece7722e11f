//! The state that a host would lose with its replica: it is stored while the host is served here,
//! and read when another replica has served the host.

use std::{io, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};

use super::{
    Fleet, Principal,
    host_memory::{HostName, HostRecord, is_kept},
    publishing,
};
use crate::{
    base::run_blocking,
    catalog::{Changes, Offer, OfferId, Presence},
};

/// Maximum time for which a host waits for the catalogs of its loads.
const CATALOGS_TIMEOUT: Duration = Duration::from_secs(2);
/// Delay before another attempt to store a record.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// Interval at which all records are stored again: they expire, and the store may have lost them.
const RENEWAL_INTERVAL: Duration = Duration::from_hours(1);

/// Gives a host the state that another replica has kept, and keeps its state from now on. The first
/// request of the host waits for the store, and so do those that come meanwhile. While the store
/// cannot be used, the host goes on without, and its next request tries again.
pub(super) async fn recall_host(
    fleet: &Fleet,
    principal: Principal,
    name: impl FnOnce() -> HostName,
) {
    let Some(recalled) = fleet.memory.hosts.recall(principal, name) else { return };
    let recalling = recalled.get_or_try_init(|| recall(fleet, principal)).await;
    if let Err(error) = recalling {
        tracing::debug!(%error, "cannot read the record of a host");
    }
}

async fn recall(fleet: &Fleet, principal: Principal) -> io::Result<()> {
    let Some(place) = fleet.memory.hosts.place(principal) else { return Ok(()) };
    // Without an outcome, dormouse ends.
    let read =
        run_blocking(move || place.record()).await.unwrap_or_else(|| Ok(HostRecord::default()));
    let record = match read {
        // A record that cannot be read will not become readable.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => HostRecord::default(),
        read => read?,
    };
    if record != HostRecord::default() {
        // Storing the record again restarts its expiry.
        fleet.memory.hosts.note_unsaved(principal);
    }
    let offers = take_over(fleet, principal, &record);
    await_catalogs(fleet, &offers).await;
    Ok(())
}

/// Gives a host its recorded state. Returns the offers that the host has loaded.
fn take_over(fleet: &Fleet, principal: Principal, record: &HostRecord) -> Vec<OfferId> {
    if record.has_cut_results {
        fleet.board.note_cut(principal);
    }
    if record.loads.is_empty() || !fleet.board.has_loads_of_sessions() {
        return Vec::new();
    }
    let snapshot = fleet.board.snapshot();
    let offers = snapshot.offers.iter().filter(|offer| record.loads.contains(&offer.name));
    let offers: Vec<OfferId> = offers.map(|offer| offer.id).collect();
    let loaded = offers.iter().filter_map(|offer| fleet.board.load(principal, *offer));
    let changes = loaded.fold(Changes::default(), Changes::or);
    if changes.any() {
        fleet.audience.announce(changes, |host| host.principal() == principal);
    }
    restore_offers(fleet, |offer| offers.contains(&offer.id));
    offers
}

/// Loads offers again that hosts have loaded at another replica. Their servers stay asleep until
/// they are used, if their catalogs are known.
pub(super) fn restore_offers(fleet: &Fleet, is_loaded: impl Fn(&Offer) -> bool) {
    let (roster, snapshot) = (fleet.servers.roster(), fleet.board.snapshot());
    let is_new = |offer: &&Arc<Offer>| {
        matches!(offer.presence, Presence::Offered { .. })
            && is_loaded(offer)
            && !fleet.board.is_wanted(offer.id)
    };
    for offer in snapshot.offers.iter().filter(is_new) {
        fleet.board.request(offer.id).keep();
        publishing::present_requested(fleet, offer.id);
        drop(roster.slot(offer.server()).upstream.restore());
    }
}

/// Waits until the tools of offers can be listed, or their servers cannot be connected.
async fn await_catalogs(fleet: &Fleet, offers: &[OfferId]) {
    let mut events = fleet.events.listen();
    let is_pending = |id: &OfferId| {
        let snapshot = fleet.board.snapshot();
        let presence = snapshot.offer(*id).map(|offer| &offer.presence);
        matches!(presence, Some(Presence::Offered { trouble: None }))
    };
    let listed = async {
        while offers.iter().any(is_pending) {
            // A lost event was followed by another one.
            let _ = events.recv().await;
        }
    };
    let _ = tokio::time::timeout(CATALOGS_TIMEOUT, listed).await;
}

/// Starts to store the records that change.
pub(super) fn store_records(fleet: &Fleet) {
    let Some(changed) = fleet.memory.hosts.changed() else { return };
    let (weak, stop) = (fleet.this.clone(), fleet.context.stop.clone());
    fleet.context.tasks.spawn(async move {
        let mut renewal = Instant::now() + RENEWAL_INTERVAL;
        loop {
            let due = async {
                tokio::select! {
                    () = changed.notified() => false,
                    () = sleep_until(renewal) => true,
                }
            };
            let Some(is_renewal) = stop.run_until_cancelled(due).await else { return };
            let Some(fleet) = weak.upgrade() else { return };
            if is_renewal {
                fleet.memory.hosts.renew();
                renewal = Instant::now() + RENEWAL_INTERVAL;
            }
            while !store_unsaved(&fleet).await {
                if stop.run_until_cancelled(sleep(RETRY_DELAY)).await.is_none() {
                    return;
                }
            }
        }
    });
}

/// Stores all records that have changed. Returns `false` if the store cannot be used.
async fn store_unsaved(fleet: &Fleet) -> bool {
    while let Some(principal) = fleet.memory.hosts.take_unsaved() {
        let Err(error) = store_record(fleet, principal).await else { continue };
        tracing::debug!(%error, "cannot store the record of a host");
        if error.kind() == io::ErrorKind::NotConnected {
            fleet.memory.hosts.note_unsaved(principal);
            return false;
        }
    }
    true
}

/// Adds the state of a host to its record, and the record to the state.
async fn store_record(fleet: &Fleet, principal: Principal) -> io::Result<()> {
    let (loads, has_cut_results) = fleet.board.kept_of(principal);
    // The record of a host that has ended here meanwhile stays: the host may go on elsewhere.
    let Some(place) = fleet.memory.hosts.place(principal) else { return Ok(()) };
    let added = HostRecord { loads, has_cut_results };
    let Some(stored) = run_blocking(move || place.add_to_record(added)).await else {
        return Ok(());
    };
    take_over(fleet, principal, &stored?);
    Ok(())
}

/// Removes the record of a host that has ended its session.
pub(super) fn remove_record(fleet: &Fleet, principal: Principal) {
    let Some(place) = fleet.memory.hosts.place(principal) else { return };
    fleet.context.tasks.spawn(async move {
        if let Some(Err(error)) = run_blocking(move || place.remove_record()).await {
            tracing::debug!(%error, "cannot remove the record of a host");
        }
    });
}

/// Stores a result that was cut for a host.
pub(super) fn store_result(fleet: &Fleet, principal: Principal, id: String) {
    let Some(place) = fleet.memory.hosts.place(principal) else { return };
    let Some(kept) = fleet.calls.results.find(principal, &id) else { return };
    if !is_kept(kept.len()) {
        return;
    }
    let writes = fleet.memory.hosts.result_writes();
    fleet.context.tasks.spawn(async move {
        let Ok(_permit) = writes.acquire().await else { return };
        let writing = run_blocking(move || place.write_result(&id, &kept.encode()?));
        if let Some(Err(error)) = writing.await {
            tracing::debug!(%error, "cannot store a large result");
        }
    });
}

/// Takes over a result that another replica has cut for a host, unless it is here.
pub(super) async fn recall_result(fleet: &Fleet, principal: Principal, id: &str) {
    let results = &fleet.calls.results;
    if results.find(principal, id).is_some() {
        return;
    }
    let Some(place) = fleet.memory.hosts.place(principal) else { return };
    let name = id.to_owned();
    let found = run_blocking(move || place.result(&name)).await;
    match found {
        Some(Ok(Some(value))) => results.adopt(principal, id.to_owned(), value).await,
        Some(Err(error)) => tracing::debug!(%error, "cannot read a large result of the store"),
        Some(Ok(None)) | None => {}
    }
}
