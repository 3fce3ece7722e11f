//! The published snapshot of all servers, and the views of it that hosts have.

mod app_reads;
mod cut_results;
mod loads;
mod views;

use std::{
    collections::BTreeSet,
    sync::{Arc, MutexGuard},
};

use arc_swap::ArcSwap;
use tokio_util::task::TaskTracker;

use super::{
    Endpoint, Principal, Viewer,
    events::{Event, Events},
};
use crate::{
    base::{Lock, run_blocking},
    catalog::{
        Changes, ExposedCatalog, LoadOrigin, Offer, OfferChoice, OfferId, Presence, ServerId,
        Snapshot,
    },
    config::{self, Listing, Settings},
    surface::{Action, Apps, View},
    wire::Raw,
};
use app_reads::AppReads;
use cut_results::CutResults;
use loads::{LoadRequest, RequestedLoads, SessionLoads};
use views::{ListForm, ToolList, Views};

/// The one snapshot that is in force. The board knows no connection: what hosts see depends on
/// their [`Viewer`] alone.
pub(super) struct Board {
    snapshot: ArcSwap<Snapshot>,
    /// Held while a snapshot is published and announced, so that announcements keep its order.
    order: Lock<()>,
    loads: SessionLoads,
    requested: RequestedLoads,
    app_reads: AppReads,
    cut_results: CutResults,
    views: Views,
    events: Events,
}

impl Board {
    /// Each snapshot that is put in force is an event.
    pub(super) fn new(snapshot: Snapshot, events: Events) -> Self {
        let loads = SessionLoads::new(snapshot.settings.loading.loads);
        let (order, requested, app_reads, cut_results, views) = Default::default();
        let snapshot = ArcSwap::from_pointee(snapshot);
        Self { snapshot, order, loads, requested, app_reads, cut_results, views, events }
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        self.snapshot.load().settings.clone()
    }

    /// Returns the snapshot in force, with all servers and what all hosts have loaded.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Returns the part of the snapshot that a host sees.
    pub(super) fn snapshot_for(&self, viewer: &Viewer) -> Arc<Snapshot> {
        self.views.snapshot(&self.snapshot(), self.choice(viewer))
    }

    /// Returns the part of the snapshot that an endpoint shows, with what all hosts have loaded.
    pub(super) fn snapshot_at(&self, endpoint: &Endpoint) -> Arc<Snapshot> {
        self.views.snapshot(&self.snapshot(), choice_at(endpoint, None))
    }

    /// Returns a snapshot in the form in which a host sees it.
    pub(super) fn view<'a>(&self, viewer: &Viewer, snapshot: &'a Snapshot) -> View<'a> {
        self.view_in(viewer, snapshot, self.form(viewer))
    }

    /// Returns a host's view of a snapshot in a form.
    fn view_in<'a>(&self, viewer: &Viewer, snapshot: &'a Snapshot, form: ListForm) -> View<'a> {
        let last_read = self.app_reads.last(viewer.principal);
        let ListForm { surface, shows_apps, has_cut_results } = form;
        let apps = shows_apps.then_some(Apps { last_read });
        View { snapshot, surface, apps, has_cut_results }
    }

    fn form(&self, viewer: &Viewer) -> ListForm {
        ListForm {
            surface: viewer.endpoint.surface,
            shows_apps: viewer.shows_apps,
            has_cut_results: self.cut_results.has(viewer.principal),
        }
    }

    /// Evaluates a `tools/call` as a host sees the servers. A search waits until its index is made
    /// on another thread, by a task of `tasks`.
    pub(super) async fn evaluate(
        &self,
        viewer: &Viewer,
        params: &Raw,
        tasks: &TaskTracker,
    ) -> Action {
        let snapshot = self.snapshot_for(viewer);
        let action = self.view(viewer, &snapshot).call(params);
        if action != Action::Index {
            return action;
        }
        let indexed = snapshot.clone();
        let indexing = run_blocking(move || indexed.prepare_search());
        // No outcome means that dormouse ends.
        let _ = Box::pin(tasks.track_future(indexing)).await;
        self.view(viewer, &snapshot).call(params)
    }

    /// Returns the tool list of a host. It is composed once for all hosts that see the same.
    pub(super) fn tools(&self, viewer: &Viewer) -> Arc<ToolList> {
        self.tools_in(&self.snapshot(), &self.views, viewer)
    }

    /// Returns the tool list that a host has of any snapshot. `views` has its views.
    fn tools_in(&self, snapshot: &Arc<Snapshot>, views: &Views, viewer: &Viewer) -> Arc<ToolList> {
        let (form, choice) = (self.form(viewer), self.choice(viewer));
        views.tools(snapshot, (choice.clone(), form), || {
            let snapshot = views.snapshot(snapshot, choice);
            self.view_in(viewer, &snapshot, form).tools()
        })
    }

    /// Returns the lists of a host that differ from those of an earlier snapshot.
    pub(super) fn changes_since(&self, before: &PastSnapshot, viewer: &Viewer) -> Changes {
        let PastSnapshot { snapshot: past, views: past_views } = before;
        let (now, choice) = (self.snapshot(), self.choice(viewer));
        let were = self.tools_in(past, past_views, viewer);
        let are = self.tools_in(&now, &self.views, viewer);
        let items = self.views.items(&now, choice.clone());
        let changes = items.changes_since(&past_views.items(past, choice));
        Changes { tools: were.result != are.result, ..changes }
    }

    fn choice(&self, viewer: &Viewer) -> OfferChoice {
        choice_at(&viewer.endpoint, self.loads.of(viewer.principal))
    }

    /// Returns whether an endpoint shows anything of a server.
    pub(super) fn shows(&self, endpoint: &Endpoint, server: ServerId) -> bool {
        let Endpoint { only, profile, .. } = endpoint;
        if only.is_some_and(|only| only.server() != server) {
            return false;
        }
        let snapshot = self.snapshot();
        profile.is_none() || snapshot.offers_of(server).any(|(_, o)| shows(&snapshot, endpoint, o))
    }

    /// Begins a publication. No other can begin before the returned value is dropped.
    pub(super) fn publish(&self) -> Publication<'_> {
        Publication { board: self, _order: self.order.lock() }
    }

    /// Returns whether an offer of a server is loaded for a host, or needs no load.
    pub(super) fn has_loaded(&self, viewer: &Viewer, server: ServerId) -> bool {
        self.snapshot().offers_of(server).any(|(_, offer)| self.concerns(viewer, offer))
    }

    /// Returns whether a host is told of the presence of an offer.
    pub(super) fn concerns(&self, viewer: &Viewer, offer: &Offer) -> bool {
        let origin = offer.presence.origin();
        shows(&self.snapshot(), &viewer.endpoint, offer)
            && (origin != Some(LoadOrigin::HostsRequest)
                || self.loads.are_seen_by(viewer.principal, offer.id))
    }

    /// Notes that an offer is wanted, so that it is loaded once its server is.
    pub(super) fn request(&self, offer: OfferId) -> LoadRequest<'_> {
        self.requested.begin(offer)
    }

    /// Returns whether an offer has been requested.
    pub(super) fn is_wanted(&self, offer: OfferId) -> bool {
        self.requested.has(offer)
    }

    /// Returns whether an offer is loaded when its server is. The only offer of a server always is.
    pub(super) fn is_requested(&self, offer: &Offer) -> bool {
        self.requested.has(offer.id) || self.snapshot().offers_of(offer.server()).count() == 1
    }

    /// Returns whether an endpoint shows an offer.
    pub(super) fn shows_offer(&self, endpoint: &Endpoint, id: OfferId) -> bool {
        let snapshot = self.snapshot();
        snapshot.offer(id).is_some_and(|offer| shows(&snapshot, endpoint, offer))
    }

    /// Notes that a host has loaded an offer, which other hosts may have loaded before. Returns the
    /// lists that this changes for the host alone; `None` if the load is not new to the host alone.
    pub(super) fn load(&self, principal: Principal, offer: OfferId) -> Option<Changes> {
        if !self.loads.add(principal, offer) {
            return None;
        }
        match self.snapshot().offer(offer).map(|offer| &offer.presence) {
            Some(Presence::Live { exposed, origin: LoadOrigin::HostsRequest }) => {
                Some(exposed.catalog.brings())
            }
            _ => Some(Changes::default()),
        }
    }

    /// Notes that a host has read a resource of a server.
    pub(super) fn note_read(&self, principal: Principal, server: ServerId, uri: &str) {
        self.app_reads.note(principal, server, uri);
    }

    /// Notes that a result was cut for a host. Returns whether it is the first.
    pub(super) fn note_cut(&self, principal: Principal) -> bool {
        self.cut_results.note(principal)
    }

    /// Returns the names of the offers that a principal has loaded for itself, and whether a result
    /// was cut for it.
    pub(super) fn kept_of(&self, principal: Principal) -> (BTreeSet<String>, bool) {
        let (snapshot, loaded) = (self.snapshot(), self.loads.of(principal).unwrap_or_default());
        let offers = loaded.iter().filter_map(|offer| snapshot.offer(*offer));
        let names = offers.map(|offer| offer.name.clone()).collect();
        (names, self.cut_results.has(principal))
    }

    /// Forgets the loads and reads of a principal that has ended.
    pub(super) fn forget(&self, principal: Principal) {
        self.loads.forget(principal);
        self.app_reads.forget(principal);
        self.cut_results.forget(principal);
    }

    /// Returns whether sessions load their servers themselves.
    pub(super) fn has_loads_of_sessions(&self) -> bool {
        self.settings().loading.loads == config::Loads::Session
    }
}

/// A snapshot that is no longer in force, and the views that hosts had of it.
pub(super) struct PastSnapshot {
    snapshot: Arc<Snapshot>,
    views: Views,
}

impl PastSnapshot {
    pub(super) fn new(snapshot: Arc<Snapshot>) -> Self {
        Self { snapshot, views: Views::default() }
    }
}

/// Returns the choice of an endpoint, for a session with these loads of its own.
fn choice_at(endpoint: &Endpoint, loaded: Option<Arc<BTreeSet<OfferId>>>) -> OfferChoice {
    OfferChoice { only: endpoint.only, profile: endpoint.profile.clone(), loaded }
}

/// Returns whether an endpoint shows an offer of a snapshot.
fn shows(snapshot: &Snapshot, endpoint: &Endpoint, offer: &Offer) -> bool {
    let (profiles, profile) = (&snapshot.settings.profiles, endpoint.profile.as_ref());
    endpoint.only.is_none_or(|only| only == offer.id)
        && profiles.show(profile, offer.server_name(), &offer.name)
}

/// The right to swap the snapshot. Announcements that are made while it lives keep its order.
pub(super) struct Publication<'a> {
    board: &'a Board,
    _order: MutexGuard<'a, ()>,
}

impl Publication<'_> {
    /// Puts a snapshot in force.
    pub(super) fn swap(&self, snapshot: Snapshot) -> Arc<Snapshot> {
        let snapshot = Arc::new(snapshot);
        self.board.snapshot.store(snapshot.clone());
        self.board.views.clear();
        self.board.events.send(Event::Published);
        snapshot
    }

    /// Replaces what is known of offers that have not been loaded.
    pub(super) fn know(&self, known: Vec<(OfferId, Arc<ExposedCatalog>)>) {
        self.swap(self.board.snapshot().with_known(known));
    }

    /// Adds all that is known of offers that have not been loaded.
    pub(super) fn recall(&self, known: Vec<(OfferId, Arc<ExposedCatalog>)>) {
        self.swap(self.board.snapshot().recalled(known));
    }

    /// Shows what hybrid servers had in another run.
    pub(super) fn seed(&self, seeds: Vec<(OfferId, Arc<ExposedCatalog>)>) -> Arc<Snapshot> {
        self.swap(self.board.snapshot().seeded(seeds))
    }

    /// Shows what a server has to the offers that are not loaded.
    pub(super) fn connect(&self, server: ServerId, expose: impl Fn(&Offer) -> Arc<ExposedCatalog>) {
        self.swap(self.board.snapshot().with_connection(server, expose));
    }

    /// Remembers why a load of a server failed.
    pub(super) fn fail(&self, server: ServerId, cause: &str) {
        self.swap(self.board.snapshot().with_failure(server, cause));
    }

    /// Gives each offer of a server another presence, if `presence` returns one for it. Returns the
    /// offers for which it did: none of a server that the config no longer has.
    pub(super) fn present(
        &self,
        server: ServerId,
        mut presence: impl FnMut(&Offer) -> Option<Presence>,
    ) -> Vec<PublishedOffer> {
        let before = self.board.snapshot();
        let mut after = Snapshot::clone(&before);
        let mut published = Vec::new();
        for (position, was) in before.offers_of(server) {
            let Some(presence) = presence(was) else { continue };
            let (next, changes) = after.with(position, presence);
            after = next;
            let offer = after.offers[position].clone();
            let is_listed = match before.settings.lists.listing {
                Listing::Growing => true,
                Listing::Stable => offer.presence.origin() == Some(LoadOrigin::OwnAccord),
            };
            let changes = if is_listed { changes } else { Changes::default() };
            let is_new = was.presence.origin().is_none();
            published.push(PublishedOffer { position, offer, changes, is_new });
        }
        if !published.is_empty() {
            self.swap(after);
        }
        published
    }
}

/// An offer whose presence was published.
pub(super) struct PublishedOffer {
    /// The position in the snapshot.
    pub(super) position: usize,
    pub(super) offer: Arc<Offer>,
    /// The lists that changed for hosts that see the offer.
    pub(super) changes: Changes,
    /// True if the offer was not live before.
    pub(super) is_new: bool,
}

impl PublishedOffer {
    /// Returns whether a host's request has made the offer live.
    pub(super) fn is_loaded(&self) -> bool {
        self.is_new && self.offer.presence.origin() == Some(LoadOrigin::HostsRequest)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Environment, parse};

    #[test]
    fn requests_load_single_offers_of_a_server() {
        let text = r#"{"mcpServers": {"github": {"command": "x"}}}"#;
        let parsed = parse(text, Path::new("c.json"), &Environment::default()).unwrap();
        let servers = ServerId::number(&parsed.config.servers);
        let alone = Board::new(Snapshot::new(Arc::default(), &servers), Events::default());
        let whole = Offer::clone(&alone.snapshot().offers[0]);
        assert!(alone.is_requested(&whole), "the only offer of a server");

        let mut issues = whole.clone();
        issues.id = OfferId::toolset(whole.server(), "issues");
        let offers = vec![whole.clone(), issues.clone()];
        let board = Board::new(Snapshot::of(Arc::default(), offers), Events::default());
        drop(board.request(issues.id));
        assert!(!board.is_requested(&issues), "the request has failed");
        let (failed, waiting) = (board.request(issues.id), board.request(issues.id));
        drop(failed);
        assert!(board.is_requested(&issues), "another request waits");
        waiting.keep();
        assert!(board.is_requested(&issues) && !board.is_requested(&whole));
        let published = board.publish().present(whole.server(), |offer| {
            board.is_requested(offer).then_some(Presence::Evicted)
        });
        assert_eq!(published.iter().map(|it| it.position).collect::<Vec<_>>(), [1]);
    }
}
