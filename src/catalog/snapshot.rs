//! The immutable view of all servers at one moment, which is swapped as a whole.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{
    Changes, ExposedCatalog, IndexedServer, IndexedTools, LoadOrigin, Naming, Offer, Presence,
    SearchHit, SearchIndex, ServerCatalog, ServerId, ToolRef, tool_names,
};
use crate::config::{Listing, ServerConfig, Settings, Wrapping};

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub settings: Arc<Settings>,
    /// The servers in config order.
    pub offers: Vec<Arc<Offer>>,
    /// The tools by directly listed name. Created on first use, since many snapshots follow each
    /// other while the servers start.
    by_listed_name: OnceLock<HashMap<String, ToolRef>>,
    /// The position of the only visible server, whose names are bare.
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
        let views: Vec<_> = servers
            .iter()
            .zip(parts(servers))
            .map(|((id, config), part)| Arc::new(Offer::unloaded(*id, part, config)))
            .collect();
        Self {
            sole: (settings.wrapping != Wrapping::None).then_some(0),
            settings,
            offers: views,
            by_listed_name: OnceLock::new(),
            is_recalled: false,
            search_index: Arc::default(),
        }
    }

    /// Returns the snapshot after the config has changed. A server for which `is_kept` holds keeps
    /// its state; its settings come from the new config, and `expose` creates its exposed catalog
    /// again. Other servers are unknown.
    #[must_use]
    pub fn reconfigured(
        &self,
        settings: Arc<Settings>,
        servers: &[(ServerId, &ServerConfig)],
        is_kept: impl Fn(ServerId) -> bool,
        expose: impl Fn(ServerId, &Arc<ServerCatalog>, Naming<'_>) -> Arc<ExposedCatalog>,
    ) -> Self {
        let after = Self::new(settings, servers);
        let offers = after.offers.iter().enumerate().map(|(at, fresh)| {
            let Some(before) = self.offer(fresh.server).filter(|_| is_kept(fresh.server)) else {
                return fresh.clone();
            };
            let naming = after.naming(at);
            let presence = match &before.presence {
                Presence::Live { exposed, origin } => Presence::Live {
                    exposed: expose(fresh.server, &exposed.whole, naming),
                    origin: *origin,
                },
                other => other.clone(),
            };
            let known = before.known.as_ref();
            let known = known.map(|known| expose(fresh.server, &known.whole, naming));
            let failure = before.failure.clone();
            Arc::new(Offer { presence, known, failure, ..Offer::clone(fresh) })
        });
        let offers = offers.collect();
        let is_all_kept = after.offers.iter().all(|offer| is_kept(offer.server));
        Self { is_recalled: self.is_recalled && is_all_kept, ..after.with_offers(offers) }
    }

    /// Returns the position of the server with this id.
    pub fn position(&self, id: ServerId) -> Option<usize> {
        self.offers.iter().position(|offer| offer.server == id)
    }

    /// Returns the server with this id, if the config still has it.
    pub fn offer(&self, id: ServerId) -> Option<&Offer> {
        self.position(id).map(|position| self.offers[position].as_ref())
    }

    /// Returns the naming of a server's tools.
    pub fn naming(&self, server: usize) -> Naming<'_> {
        let offer = &self.offers[server];
        match self.sole {
            Some(_) => Naming::Bare,
            None => Naming::Long { part: &offer.part, server: &offer.name },
        }
    }

    /// Returns the snapshot in which the server at this position has the given presence, and the
    /// lists that change.
    #[must_use]
    pub fn with(&self, server: usize, presence: Presence) -> (Self, Changes) {
        let before = &self.offers[server];
        let changes = changes(&before.presence, &presence);
        let mut offers = self.offers.clone();
        let is_live = matches!(presence, Presence::Live { .. });
        let failure = before.failure.clone().filter(|_| !is_live);
        offers[server] = Arc::new(Offer { presence, failure, ..Offer::clone(before) });
        (self.with_offers(offers), changes)
    }

    /// Returns the snapshot in which a load of the server has failed. Lists do not change.
    #[must_use]
    pub fn with_failure(&self, server: ServerId, cause: String) -> Self {
        let Some(server) = self.position(server) else { return self.clone() };
        let mut offers = self.offers.clone();
        let before = Offer::clone(&offers[server]);
        offers[server] = Arc::new(Offer { failure: Some(cause), ..before });
        self.with_offers(offers)
    }

    fn positions(&self) -> HashMap<ServerId, usize> {
        self.offers.iter().enumerate().map(|(at, offer)| (offer.server, at)).collect()
    }

    /// Returns the snapshot with these catalogs from the servers' last connections as known.
    #[must_use]
    pub fn recalled(&self, known: Vec<(ServerId, Arc<ExposedCatalog>)>) -> Self {
        let positions = self.positions();
        let mut offers = self.offers.clone();
        for (server, exposed) in known {
            let Some(server) = positions.get(&server).copied() else { continue };
            let before = Offer::clone(&offers[server]);
            offers[server] = Arc::new(Offer { known: Some(exposed), ..before });
        }
        Self { is_recalled: true, ..self.with_offers(offers) }
    }

    /// Returns the snapshot in which these servers are live with catalogs from another run, unless
    /// they are live already.
    #[must_use]
    pub fn seeded(&self, seeds: Vec<(ServerId, Arc<ExposedCatalog>)>) -> Self {
        let positions = self.positions();
        let mut offers = self.offers.clone();
        for (server, exposed) in seeds {
            let Some(at) = positions.get(&server) else { continue };
            let before = &offers[*at];
            if !matches!(before.presence, Presence::Live { .. }) {
                let presence = Presence::Live { exposed, origin: LoadOrigin::OwnAccord };
                offers[*at] = Arc::new(Offer { presence, ..Offer::clone(before) });
            }
        }
        self.with_offers(offers)
    }

    /// Returns the snapshot in which only `server` is visible, under bare names. Positions do not
    /// change. A server that the config no longer has appears empty.
    #[must_use]
    pub(super) fn only(&self, server: ServerId) -> Self {
        let hidden = |offer: &Arc<Offer>| {
            Arc::new(Offer { presence: Presence::Disabled, known: None, ..Offer::clone(offer) })
        };
        let mut offers: Vec<Arc<Offer>> = self
            .offers
            .iter()
            .map(
                |offer| if offer.server == server { Arc::new(offer.bare()) } else { hidden(offer) },
            )
            .collect();
        let position = self.position(server).unwrap_or_else(|| {
            offers.push(Arc::new(Offer::gone(server)));
            offers.len() - 1
        });
        Self { sole: Some(position), ..self.with_offers(offers) }
    }

    /// Returns the snapshot for a host that has not loaded the servers for which `is_loaded` is
    /// false. In growing lists, search still finds the tools that loads of other hosts have
    /// revealed.
    #[must_use]
    pub(super) fn seen_by(&self, is_loaded: impl Fn(ServerId) -> bool) -> Self {
        let listing = self.settings.lists.listing;
        let offers: Vec<Arc<Offer>> = self
            .offers
            .iter()
            .map(|offer| match &offer.presence {
                Presence::Live { exposed, origin: LoadOrigin::HostsRequest }
                    if !is_loaded(offer.server) =>
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

    /// Returns the position of the server with this name, if the server may be used.
    pub fn find(&self, name: &str) -> Option<usize> {
        let is_named = |offer: &Arc<Offer>| offer.name == name && offer.is_known();
        self.offers.iter().position(is_named)
    }

    /// Returns every live server with its position and its exposed catalog, in config order.
    pub fn live(&self) -> impl Iterator<Item = (usize, &Offer, &Arc<ExposedCatalog>)> {
        self.offers.iter().enumerate().filter_map(|(server, offer)| match &offer.presence {
            Presence::Live { exposed, .. } => Some((server, offer.as_ref(), exposed)),
            _ => None,
        })
    }

    /// Returns the names of the servers that can still be loaded.
    pub fn loadable(&self) -> Vec<&str> {
        self.offers
            .iter()
            .filter(|offer| matches!(offer.presence, Presence::Offered { .. }))
            .map(|offer| offer.name.as_str())
            .collect()
    }
}

fn index(offers: &[Arc<Offer>]) -> HashMap<String, ToolRef> {
    let mut by_name = HashMap::new();
    for (server, offer) in offers.iter().enumerate() {
        let names = offer.exposed().map(|exposed| exposed.listed_names.as_slice());
        for (tool, name) in names.unwrap_or_default().iter().enumerate() {
            by_name.insert(name.clone(), ToolRef { server, tool });
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
        // The server's line or its `activate_` tool disappears or returns.
        _ => Changes { tools: true, ..Changes::default() },
    }
}

/// Returns the servers' parts of directly listed names.
fn parts(servers: &[(ServerId, &ServerConfig)]) -> Vec<String> {
    let names: Vec<&str> = servers.iter().map(|(_, server)| server.name.as_str()).collect();
    tool_names::server_parts(&names)
}

impl Snapshot {
    /// Returns the best results for `query`, best first. Equal results keep config order.
    pub fn search(&self, query: &str, within: Option<usize>, limit: usize) -> Vec<SearchHit> {
        self.index().search(query, within, limit)
    }

    /// Searches by words only, even if meanings are known. Used for comparison.
    pub fn search_words(&self, query: &str, within: Option<usize>, limit: usize) -> Vec<SearchHit> {
        self.index().search_words(query, within, limit)
    }

    /// Creates the index. The time that this takes grows with the number of tools.
    pub fn prepare_search(&self) {
        self.index();
    }

    /// Returns whether the index exists, so that a search does not have to create it.
    pub fn is_indexed(&self) -> bool {
        self.search_index.get().is_some()
    }

    fn index(&self) -> &SearchIndex {
        self.search_index.get_or_init(|| {
            let indexed: Vec<_> = self.offers.iter().map(|offer| indexed(offer)).collect();
            SearchIndex::of(&indexed)
        })
    }
}

/// Returns a server as the search index reads it.
fn indexed(offer: &Offer) -> IndexedServer<'_> {
    let tools = match (offer.exposed(), &offer.presence) {
        (Some(exposed), _) => {
            IndexedTools::Known { tools: &exposed.catalog.tools, documents: &exposed.documents }
        }
        (None, Presence::Offered { .. }) => IndexedTools::Unknown,
        _ => IndexedTools::None,
    };
    let description = offer.description.as_deref().unwrap_or_default();
    IndexedServer { name: &offer.name, description, tools }
}
