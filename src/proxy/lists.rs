//! `tools/list`, `resources/list`, `resources/templates/list` and `prompts/list`.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::{
    Caller, Fleet,
    calls::{self, AskLogin, Call},
    catalogs,
    loading::load_offer,
    personal_resources,
};
use crate::{
    catalog::{Presence, Snapshot},
    config::{AlwaysLoad, Pin, Startup},
    protocol::{error, has_cursor, method},
    upstream::{ListKinds, Phase, Upstream, offerable},
    wire::{Outcome, Raw, edit},
};

/// Maximum time for which a list waits for awake servers. A server that hangs must not withhold the
/// lists of others.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) async fn list_tools(fleet: &Fleet, caller: &Caller) -> Outcome {
    catalogs::wait_for_first_attempts(fleet).await;
    load_sole(fleet, caller).await?;
    caught_up(fleet, caller).await;
    if fleet.board.view(&caller.viewer(), &fleet.board.snapshot()).shows_known() {
        catalogs::recall_all(fleet).await;
    }
    Ok(fleet.board.tools(&caller.viewer()).result.clone())
}

pub(super) async fn list_resources(fleet: &Fleet, caller: &Caller) -> Outcome {
    let snapshot = fresh(fleet, caller, ListKinds::RESOURCES).await?;
    let of_all = snapshot.merged_lists().resources();
    Ok(list("resources", &personal_resources::with_personal(fleet, caller, of_all)))
}

pub(super) async fn list_templates(fleet: &Fleet, caller: &Caller) -> Outcome {
    let snapshot = fresh(fleet, caller, ListKinds::TEMPLATES).await?;
    Ok(list("resourceTemplates", &snapshot.merged_lists().templates()))
}

pub(super) async fn list_prompts(fleet: &Fleet, caller: &Caller) -> Outcome {
    let snapshot = fresh(fleet, caller, ListKinds::PROMPTS).await?;
    let prompts = snapshot.merged_lists().prompts().into_iter();
    let prompts: Vec<Raw> = prompts
        .filter(|exposed| exposed.is_listed)
        .map(|exposed| {
            if exposed.name == exposed.prompt.name {
                exposed.prompt.raw.clone()
            } else {
                edit::set(&exposed.prompt.raw, "name", &Raw::encode(&exposed.name))
            }
        })
        .collect();
    Ok(list("prompts", &prompts))
}

/// Returns the list as the only server of an endpoint gives it: with its own pages, cursors and
/// hints, and with what it shows to this host alone. Returns `None` if the config edits the list,
/// or if the server would have to be woken for it.
pub(super) async fn list_of_sole(
    fleet: &Fleet,
    caller: &Caller,
    method: &str,
    params: Option<&Raw>,
) -> Option<Outcome> {
    let endpoint = caller.endpoint();
    let (server, only) = (endpoint.passes_through()?, endpoint.only?);
    let config = fleet.servers.config(server);
    let snapshot = fleet.board.snapshot_for(&caller.viewer());
    let rules = snapshot.offer(only).map(|offer| &offer.rules);
    let is_edited = rules.is_none_or(|rules| !rules.allow_all())
        || config.settings.pin == Pin::Block
        || fleet.settings().lists.always_load == AlwaysLoad::Loaded;
    if is_edited {
        return None;
    }
    catalogs::wait_for_first_attempts(fleet).await;
    if let Err(refusal) = load_sole(fleet, caller).await {
        return Some(Err(refusal));
    }
    let upstream = fleet.servers.existing(fleet.instance(server, caller))?;
    let is_of_resources =
        matches!(method, method::RESOURCES_LIST | method::RESOURCE_TEMPLATES_LIST);
    let lacks_resources =
        upstream.catalog().is_some_and(|catalog| !catalog.greeting.offers("resources"));
    if is_of_resources && lacks_resources && config.settings.cuts_everywhere() {
        // The host asks because of the kept results, which no list has.
        return None;
    }
    // A catalog of another host's instance is not shown to this host.
    let is_shared = !config.connecting.has_own_instances();
    let is_known = is_shared && fleet.context.reads_lists && !params.is_some_and(has_cursor);
    if upstream.connected_era().is_none() && is_known {
        return None;
    }
    let listed = calls::answer(fleet, Call::new(server, caller, method, params.cloned())).await;
    let catalog = upstream.catalog().filter(|_| method == method::TOOLS_LIST);
    Some(match catalog {
        Some(catalog) => listed.map(|page| offerable(&config, catalog.greeting.era, page)),
        None => listed,
    })
}

/// Waits for servers that have just reported changed lists.
async fn caught_up(fleet: &Fleet, caller: &Caller) {
    let shown = fleet.shown_instances(caller).into_iter();
    let all = join_all(shown.map(|(_, upstream)| async move {
        upstream.caught_up().await;
    }));
    // Later changes are announced.
    let _ = tokio::time::timeout(LIST_TIMEOUT, all).await;
}

/// Loads the only server of an endpoint if nothing else would: its own tools are all that is shown,
/// so that listing them is using it.
async fn load_sole(fleet: &Fleet, caller: &Caller) -> Result<(), Raw> {
    let endpoint = caller.endpoint();
    let (Some(server), Some(only)) = (endpoint.passes_through(), endpoint.only) else {
        return Ok(());
    };
    let upstream = fleet.servers.existing(fleet.instance(server, caller));
    let is_own = fleet.servers.config(server).connecting.has_own_instances();
    let is_unknown = if is_own {
        upstream.as_ref().is_none_or(|upstream| upstream.catalog().is_none())
    } else {
        let snapshot = fleet.board.snapshot_for(&caller.viewer());
        let presence = snapshot.offer(only).map(|offer| &offer.presence);
        matches!(presence, Some(Presence::Offered { .. }))
    };
    let is_eager = fleet.servers.config(server).startup == Startup::Eager && !is_own;
    // An eager server connects by itself and is announced then, unless it is stalled.
    if !is_unknown || is_eager && !is_stalled(upstream.as_ref()) {
        return Ok(());
    }
    // Hosts list at their start, and must not ask their users then.
    match load_offer(fleet, caller, only, AskLogin::InBrowser).await {
        Ok(_) => Ok(()),
        Err(error) => Err(error::internal(error.to_string())),
    }
}

/// Returns whether a server waits for a login or for its next attempt, so that a caller has to load
/// it.
fn is_stalled(upstream: Option<&Upstream>) -> bool {
    let phase = upstream.map(|upstream| upstream.status().phase);
    matches!(phase, Some(Phase::AwaitingLogin | Phase::BackingOff))
}

/// Returns the caller's snapshot after asking every awake server. Sleeping and slow servers are
/// shown by their catalogs.
async fn fresh(
    fleet: &Fleet,
    caller: &Caller,
    kinds: ListKinds,
) -> Result<std::sync::Arc<Snapshot>, Raw> {
    catalogs::wait_for_first_attempts(fleet).await;
    load_sole(fleet, caller).await?;
    let _listing = fleet.audience.begin_listing(caller.host.id());
    let quiet_until = Instant::now() + LIST_TIMEOUT;
    let shown = fleet.shown_instances(caller).into_iter();
    let relists: Vec<_> = shown
        .filter(|(_, upstream)| upstream.connected_era().is_some())
        .map(|(_, upstream)| {
            let relist = async move { upstream.relist(kinds, quiet_until).await };
            fleet.context.tasks.spawn(relist)
        })
        .collect();
    // Later changes are announced.
    let _ = tokio::time::timeout_at(quiet_until, join_all(relists)).await;
    Ok(fleet.board.snapshot_for(&caller.viewer()))
}

fn list(member: &str, items: &[Raw]) -> Raw {
    edit::set(&Raw::empty_object(), member, &Raw::array(items))
}
