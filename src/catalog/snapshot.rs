//! The immutable view of all offers at one moment, which is swapped as a whole.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{
    Changes, ExposedCatalog, LoadOrigin, Offer, OfferId, Presence, SearchIndex, ServerCatalog,
    ServerId, ToolRef, name_parts::NameParts, offer_names::name_parts,
};
use crate::config::{Listing, ProfileName, ServerConfig, Settings, Wrapping};

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub settings: Arc<Settings>,
    /// The offers in config order: each whole server before its toolsets.
    pub offers: Vec<Arc<Offer>>,
    /// The tools by directly listed name. Created on first use, since many snapshots follow each
    /// other while the servers start.
    by_listed_name: OnceLock<HashMap<String, ToolRef>>,
    /// The position of the only visible offer, whose names are bare.
    pub sole: Option<usize>,
    /// `true` once the catalogs of unloaded servers have been read from disk into
    /// `Offer::known`.
    pub is_recalled: bool,
    /// The search index over all tools, created by the first search.
    pub(super) search_index: Arc<OnceLock<SearchIndex>>,
}

impl Snapshot {
    /// Returns the snapshot before any server was connected.
    pub fn new(settings: Arc<Settings>, servers: &[(ServerId, &ServerConfig)]) -> Self {
        let offers = servers.iter().flat_map(|(id, config)| Offer::all_of(*id, config));
        let is_wrapped = settings.launch.wrapping != Wrapping::None;
        // A wrapped server is shown as it is.
        Self::of(settings, offers.filter(|offer| !is_wrapped || offer.id.is_whole()).collect())
    }

    /// Returns the snapshot of these offers.
    pub(crate) fn of(settings: Arc<Settings>, mut offers: Vec<Offer>) -> Self {
        let is_wrapped = settings.launch.wrapping != Wrapping::None;
        for (parts, offer) in name_parts(&offers).into_iter().zip(&mut offers) {
            offer.parts = NameParts { is_bare: is_wrapped, ..parts };
        }
        Self {
            sole: is_wrapped.then_some(0),
            settings,
            offers: offers.into_iter().map(Arc::new).collect(),
            by_listed_name: OnceLock::new(),
            is_recalled: false,
            search_index: Arc::default(),
        }
    }

    /// Returns the snapshot after the config has changed. The offers of a server for which
    /// `is_kept` holds keep their state; their settings come from the new config, and `expose`
    /// creates their exposed catalogs again. Nothing is known of other servers.
    #[must_use]
    pub fn reconfigured(
        &self,
        settings: Arc<Settings>,
        servers: &[(ServerId, &ServerConfig)],
        is_kept: impl Fn(ServerId) -> bool,
        expose: impl Fn(&Offer, &Arc<ServerCatalog>) -> Arc<ExposedCatalog>,
    ) -> Self {
        let after = Self::new(settings, servers);
        let offers = after.offers.iter().map(|fresh| {
            if !is_kept(fresh.server()) {
                return fresh.clone();
            }
            let Some(before) = self.offer(fresh.id) else {
                return Arc::new(added(self, fresh, &expose));
            };
            let presence = match &before.presence {
                Presence::Live { exposed, origin } => {
                    Presence::Live { exposed: expose(fresh, &exposed.whole), origin: *origin }
                }
                other => other.clone(),
            };
            let known = before.known.as_ref().map(|known| expose(fresh, &known.whole));
            let failure = before.failure.clone();
            Arc::new(Offer { presence, known, failure, ..Offer::clone(fresh) })
        });
        let offers = offers.collect();
        let is_all_kept = after.offers.iter().all(|offer| is_kept(offer.server()));
        Self { is_recalled: self.is_recalled && is_all_kept, ..after.with_offers(offers) }
    }

    /// Returns the snapshot after a connection has shown what a server has. The offers that are not
    /// loaded know it too, and have no failure any more.
    #[must_use]
    pub fn with_connection(
        &self,
        server: ServerId,
        expose: impl Fn(&Offer) -> Arc<ExposedCatalog>,
    ) -> Self {
        let mut offers = self.offers.clone();
        for (position, before) in self.offers_of(server) {
            if let Presence::Offered { .. } = before.presence {
                let known = match self.settings.lists.listing {
                    Listing::Growing => Some(expose(before)),
                    // A load must not change a stable list.
                    Listing::Stable => before.known.clone(),
                };
                offers[position] = Arc::new(Offer { known, failure: None, ..before.clone() });
            }
        }
        self.with_offers(offers)
    }

    /// Returns the offer with this id, if the config still has it.
    pub fn offer(&self, id: OfferId) -> Option<&Offer> {
        self.offers.iter().find(|offer| offer.id == id).map(AsRef::as_ref)
    }

    /// Returns the offers of a server with their positions.
    pub fn offers_of(&self, server: ServerId) -> impl Iterator<Item = (usize, &Offer)> {
        let offers = self.offers.iter().map(AsRef::as_ref).enumerate();
        offers.filter(move |(_, offer)| offer.server() == server)
    }

    /// Returns the snapshot in which the offer at this position has the given presence, and the
    /// lists that change.
    #[must_use]
    pub fn with(&self, position: usize, presence: Presence) -> (Self, Changes) {
        let before = &self.offers[position];
        let mut others = self.offers_of(before.server());
        let is_shared =
            others.any(|(at, offer)| at != position && offer.presence.origin().is_some());
        let changes = changes(&before.presence, &presence);
        let changes = match (&before.presence, &presence) {
            (Presence::Live { .. }, Presence::Live { .. }) => changes,
            // Another offer of the server has brought everything but the tools.
            _ if is_shared => Changes { tools: changes.tools, ..Changes::default() },
            _ => changes,
        };
        let mut offers = self.offers.clone();
        let is_live = matches!(presence, Presence::Live { .. });
        let failure = before.failure.clone().filter(|_| !is_live);
        offers[position] = Arc::new(Offer { presence, failure, ..Offer::clone(before) });
        (self.with_offers(offers), changes)
    }

    /// Returns the snapshot in which a load of the server has failed. Lists do not change.
    #[must_use]
    pub fn with_failure(&self, server: ServerId, cause: &str) -> Self {
        let mut offers = self.offers.clone();
        for (position, before) in self.offers_of(server) {
            let failure = Some(cause.to_owned());
            offers[position] = Arc::new(Offer { failure, ..before.clone() });
        }
        self.with_offers(offers)
    }

    fn positions(&self) -> HashMap<OfferId, usize> {
        self.offers.iter().enumerate().map(|(at, offer)| (offer.id, at)).collect()
    }

    /// Returns the snapshot with all catalogs from the servers' last connections as known.
    #[must_use]
    pub fn recalled(&self, known: Vec<(OfferId, Arc<ExposedCatalog>)>) -> Self {
        Self { is_recalled: true, ..self.with_known(known) }
    }

    /// Returns the snapshot with these catalogs as known.
    #[must_use]
    pub fn with_known(&self, known: Vec<(OfferId, Arc<ExposedCatalog>)>) -> Self {
        let positions = self.positions();
        let mut offers = self.offers.clone();
        for (id, exposed) in known {
            let Some(at) = positions.get(&id).copied() else { continue };
            let before = Offer::clone(&offers[at]);
            offers[at] = Arc::new(Offer { known: Some(exposed), ..before });
        }
        self.with_offers(offers)
    }

    /// Returns the snapshot in which these offers are live with catalogs from another run, unless
    /// they are live already.
    #[must_use]
    pub fn seeded(&self, seeds: Vec<(OfferId, Arc<ExposedCatalog>)>) -> Self {
        let positions = self.positions();
        let mut offers = self.offers.clone();
        for (id, exposed) in seeds {
            let Some(at) = positions.get(&id) else { continue };
            let before = &offers[*at];
            if !matches!(before.presence, Presence::Live { .. }) {
                let presence = Presence::Live { exposed, origin: LoadOrigin::OwnAccord };
                offers[*at] = Arc::new(Offer { presence, ..Offer::clone(before) });
            }
        }
        self.with_offers(offers)
    }

    /// Returns the snapshot with the offers and the tools of a profile. Positions do not change. A
    /// profile that the config no longer has contains nothing.
    #[must_use]
    pub(super) fn within(&self, profile: &ProfileName) -> Self {
        let profiles = &self.settings.profiles;
        let part = |offer: &Arc<Offer>| {
            let (server, name) = (offer.server_name(), offer.name.as_str());
            if !profiles.show(Some(profile), server, name) {
                return Arc::new(offer.hidden());
            }
            let toolsets = offer.rules.extent.toolsets();
            match profiles.choices(profile, (server, name), toolsets) {
                Some(choices) => Arc::new(offer.narrowed(choices)),
                None => offer.clone(),
            }
        };
        self.with_offers(self.offers.iter().map(part).collect())
    }

    /// Returns the snapshot in which only this offer is visible, under bare names. Positions do not
    /// change. An offer that the config no longer has appears empty.
    #[must_use]
    pub(super) fn only(&self, id: OfferId) -> Self {
        let offers = self.offers.iter();
        let mut offers: Vec<Arc<Offer>> = offers
            .map(|offer| Arc::new(if offer.id == id { offer.bare() } else { offer.hidden() }))
            .collect();
        let position = offers.iter().position(|offer| offer.id == id).unwrap_or_else(|| {
            offers.push(Arc::new(Offer::gone(id)));
            offers.len() - 1
        });
        Self { sole: Some(position), ..self.with_offers(offers) }
    }

    /// Returns the snapshot for a host that has not loaded the offers for which `is_loaded` is
    /// false. In growing lists, search still finds the tools that loads of other hosts have
    /// revealed.
    #[must_use]
    pub(super) fn seen_by(&self, is_loaded: impl Fn(OfferId) -> bool) -> Self {
        let listing = self.settings.lists.listing;
        let offers: Vec<Arc<Offer>> = self
            .offers
            .iter()
            .map(|offer| match &offer.presence {
                Presence::Live { exposed, origin: LoadOrigin::HostsRequest }
                    if !is_loaded(offer.id) =>
                {
                    let presence = Presence::Offered { trouble: None };
                    let known = match listing {
                        Listing::Growing => Some(exposed.clone()),
                        Listing::Stable => offer.known.clone(),
                    };
                    Arc::new(Offer { presence, known, ..Offer::clone(offer) })
                }
                _ => offer.clone(),
            })
            .collect();
        let seen = self.with_offers(offers);
        match listing {
            // The same tools are known, so the index is the same.
            Listing::Growing => Self { search_index: self.search_index.clone(), ..seen },
            Listing::Stable => seen,
        }
    }

    fn with_offers(&self, offers: Vec<Arc<Offer>>) -> Self {
        Self {
            settings: self.settings.clone(),
            offers,
            by_listed_name: OnceLock::new(),
            sole: self.sole,
            is_recalled: self.is_recalled,
            search_index: Arc::default(),
        }
    }

    /// Returns the tool that is listed directly under this name.
    pub(super) fn by_listed_name(&self, name: &str) -> Option<ToolRef> {
        self.by_listed_name.get_or_init(|| index(&self.offers)).get(name).copied()
    }

    /// Returns the position of the offer with this name, if it may be used.
    pub fn find(&self, name: &str) -> Option<usize> {
        let is_named = |offer: &Arc<Offer>| offer.name == name && offer.is_known();
        self.offers.iter().position(is_named)
    }

    /// Returns every live offer with its position and its exposed catalog, in config order.
    pub fn live(&self) -> impl Iterator<Item = (usize, &Offer, &Arc<ExposedCatalog>)> {
        self.offers.iter().enumerate().filter_map(|(at, offer)| match &offer.presence {
            Presence::Live { exposed, .. } => Some((at, offer.as_ref(), exposed)),
            _ => None,
        })
    }

    /// Returns the names of the offers that can still be loaded, without the toolsets of servers
    /// that are loaded as a whole.
    pub fn loadable(&self) -> Vec<&str> {
        let offers = self.offers.chunk_by(|a, b| a.server() == b.server());
        let loadable = offers.flat_map(|offers| {
            let is_whole_live = offers[0].id.is_whole() && offers[0].presence.origin().is_some();
            let shown = if is_whole_live { &offers[..0] } else { offers };
            shown.iter().filter(|offer| matches!(offer.presence, Presence::Offered { .. }))
        });
        loadable.map(|offer| offer.name.as_str()).collect()
    }
}

/// Returns a new offer of a server that keeps its connection. The catalog of the server is known
/// by its other offers. A server that has been loaded by itself loads all its offers.
fn added(
    before: &Snapshot,
    fresh: &Offer,
    expose: &impl Fn(&Offer, &Arc<ServerCatalog>) -> Arc<ExposedCatalog>,
) -> Offer {
    let others = || before.offers_of(fresh.server()).map(|(_, offer)| offer);
    let is_of_own_accord =
        others().any(|offer| offer.presence.origin() == Some(LoadOrigin::OwnAccord));
    let known = others().find_map(|offer| offer.exposed());
    let known = known.map(|known| expose(fresh, &known.whole));
    let presence = match &known {
        Some(exposed) if is_of_own_accord => {
            Presence::Live { exposed: exposed.clone(), origin: LoadOrigin::OwnAccord }
        }
        _ => fresh.presence.clone(),
    };
    Offer { presence, known, ..fresh.clone() }
}

/// Returns the tools by their listed names. All offers of a server list a tool under one name,
/// which belongs to the offer through which the tool is reached.
fn index(offers: &[Arc<Offer>]) -> HashMap<String, ToolRef> {
    let mut by_name: HashMap<String, ToolRef> = HashMap::new();
    for (at, offer) in offers.iter().enumerate() {
        let names = offer.exposed().map(|exposed| exposed.listed_names.as_slice());
        for (tool, name) in names.unwrap_or_default().iter().enumerate() {
            let tool = ToolRef { offer: at, tool };
            match by_name.get_mut(name) {
                None => drop(by_name.insert(name.clone(), tool)),
                Some(known) if offer.reach() < offers[known.offer].reach() => *known = tool,
                Some(_) => {}
            }
        }
    }
    by_name
}

fn changes(before: &Presence, after: &Presence) -> Changes {
    match (before, after) {
        (Presence::Live { exposed: old, .. }, Presence::Live { exposed: new, .. }) => {
            new.catalog.changes_since(&old.catalog)
        }
        (_, Presence::Live { exposed, .. }) | (Presence::Live { exposed, .. }, _) => {
            exposed.catalog.brings()
        }
        (Presence::Offered { trouble: old }, Presence::Offered { trouble: new }) => {
            Changes { tools: old != new, ..Changes::default() }
        }
        // The offer's line or its `activate_` tool disappears or returns.
        _ => Changes { tools: true, ..Changes::default() },
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use serde_json::json;

    use super::*;
    use crate::{
        catalog::{Item as _, ListedTools, OfferChoice, Tool, ToolResolution},
        config::{Environment, parse},
        wire::Raw,
    };

    /// Returns the snapshot of one server with two offers, `github` and `github/issues`, and the
    /// catalog of the server.
    fn two_offers() -> (Snapshot, Arc<ServerCatalog>) {
        let text = r#"{"mcpServers": {"github": {"command": "x", "description": "d", "toolsets": {
            "issues": {"tools": ["*issue*"]}}}}}"#;
        let parsed = parse(text, Path::new("c.json"), &Environment::default()).unwrap();
        let servers = ServerId::number(&parsed.config.servers);
        let tools = ["list_issues", "merge"].map(|name| {
            Tool::read(&Raw::encode(&json!({"name": name, "inputSchema": {}}))).unwrap()
        });
        let catalog = ServerCatalog { tools: tools.into(), ..ServerCatalog::unknown() };
        (Snapshot::new(Arc::default(), &servers), Arc::new(catalog))
    }

    fn live(offer: &Offer, catalog: &Arc<ServerCatalog>) -> Presence {
        let exposed = offer.expose(catalog, &BTreeSet::new());
        Presence::Live { exposed, origin: LoadOrigin::HostsRequest }
    }

    #[test]
    fn offers_of_one_server_are_loaded_one_by_one() {
        let (before, catalog) = two_offers();
        assert_eq!(before.loadable(), ["github", "github/issues"]);
        let (after, changes) = before.with(1, live(&before.offers[1], &catalog));
        assert!(changes.tools);
        assert_eq!(after.loadable(), ["github"]);
        let listed = after.live().flat_map(|(_, _, exposed)| exposed.listed_names.clone());
        assert_eq!(listed.collect::<Vec<_>>(), ["github__list_issues"]);
        let failed = before.with_failure(ServerId(0), "no network");
        assert!(failed.offers.iter().all(|offer| offer.failure.is_some()));
    }

    #[test]
    fn tools_resolve_in_the_offer_that_has_them() {
        let (before, catalog) = two_offers();
        let (loaded, _) = before.with(1, live(&before.offers[1], &catalog));
        let issue = ToolResolution::Tool(ToolRef { offer: 1, tool: 0 });
        let names = [
            "github/issues/list_issues",
            "github/list_issues",
            "github__list_issues",
            "list_issues",
        ];
        for name in names {
            assert_eq!(loaded.tools().resolve_tool(name), issue, "{name}");
        }
        let load = |offer| ToolResolution::NeedsLoad { offer };
        assert_eq!(loaded.tools().resolve_tool("github/merge"), load(0));
        assert_eq!(loaded.tools().resolve_tool("github/merg"), ToolResolution::Unknown);
        assert_eq!(loaded.tools().resolve_tool("github/issues/merge"), ToolResolution::Unknown);
        assert_eq!(loaded.tools().resolve_in(1, "merge"), ToolResolution::Unknown);
        // Nothing is known before the first connection.
        assert_eq!(before.tools().resolve_tool("github/list_issues"), load(0));
        assert_eq!(before.tools().resolve_tool("github/issues/list_issues"), load(1));
        let known =
            before.with_connection(ServerId(0), |offer| offer.expose(&catalog, &BTreeSet::new()));
        for name in names {
            assert_eq!(known.tools().resolve_tool(name), load(1), "{name}");
        }
        assert_eq!(known.tools().resolve_tool("github__merge"), load(0));
    }

    #[test]
    fn one_of_several_offers_can_be_chosen() {
        let (snapshot, catalog) = two_offers();
        let (snapshot, _) = snapshot.with(0, live(&snapshot.offers[0], &catalog));
        let (snapshot, _) = snapshot.with(1, live(&snapshot.offers[1], &catalog));
        let only = Some(snapshot.offers[1].id);
        let chosen = OfferChoice { only, ..OfferChoice::default() }.of(&snapshot);
        assert_eq!(chosen.sole, Some(1));
        let listed = chosen.live().flat_map(|(_, _, exposed)| exposed.listed_names.clone());
        assert_eq!(listed.collect::<Vec<_>>(), ["list_issues"]);
        let loadable = |offer: usize| {
            let loaded = Some(Arc::new([snapshot.offers[offer].id].into()));
            let chosen = OfferChoice { loaded, ..OfferChoice::default() }.of(&snapshot);
            chosen.loadable().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(loadable(1), ["github"]);
        assert!(loadable(0).is_empty(), "the whole server has the tools of its toolsets");
    }

    #[test]
    fn profile_chooses_offers_and_their_tools() {
        let text = r#"{"profiles": {"p": {"servers": {"github": ["merge"]}},
            "all": {"servers": {"github": null}}, "part": {"servers": {"github/issues": null}}},
            "mcpServers": {"github": {"command": "x", "toolsets": {
                "issues": {"tools": ["*issue*"]}}}}}"#;
        let parsed = parse(text, Path::new("c.json"), &Environment::default()).unwrap();
        let (snapshot, catalog) = two_offers();
        let choose = |profile: &str, later: &str| {
            let mut settings = parsed.config.settings.clone();
            settings.profiles.set_default(profile).unwrap();
            let profile = settings.profiles.default_name().cloned();
            settings.profiles.set_default(later).unwrap();
            let offers = snapshot.offers.iter().map(|offer| Offer::clone(offer)).collect();
            let whole = Snapshot::of(Arc::new(settings), offers);
            let (whole, _) = whole.with(0, live(&whole.offers[0], &catalog));
            let (whole, _) = whole.with(1, live(&whole.offers[1], &catalog));
            OfferChoice { profile, ..OfferChoice::default() }.of(&whole)
        };
        let listed = |chosen: &Snapshot| {
            let offers = chosen.listed(ListedTools::Live).into_iter();
            let tools = offers.flat_map(|listed| {
                let name = |tool: usize| listed.exposed().unwrap().listed_names[tool].clone();
                listed.tools.iter().map(|tool| name(*tool)).collect::<Vec<_>>()
            });
            tools.collect::<Vec<_>>()
        };
        // Each session has its own profile, whatever the default is.
        assert_eq!(listed(&choose("p", "all")), ["github__merge"]);
        assert_eq!(listed(&choose("all", "p")), ["github__list_issues", "github__merge"]);
        assert_eq!(listed(&choose("part", "all")), ["github__list_issues"]);
        for name in ["github/merge", "github/issues/merge", "github__merge", "merge"] {
            let resolved = choose("part", "part").tools().resolve_tool(name);
            assert_eq!(resolved, ToolResolution::Unknown, "{name}");
        }
        let resolved = choose("p", "p").tools().resolve_tool("github/list_issues");
        assert!(matches!(resolved, ToolResolution::Withheld { offer: 0, .. }), "{resolved:?}");
    }
}
