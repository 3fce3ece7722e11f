//! The immutable view of all servers at one moment, which is swapped as a whole.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{
    Changes, Exposed, IndexedServer, IndexedTools, Naming, Origin, Presence, SearchHit,
    SearchIndex, ServerCatalog, ServerId, ServerView, ToolRef, tool_names,
};
use crate::config::{Listing, ServerConfig, Settings, Wrapping};

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub settings: Arc<Settings>,
    /// The servers in config order.
    pub servers: Vec<Arc<ServerView>>,
    /// The tools by directly listed name. Created on first use, since many snapshots follow each
    /// other while the servers start.
    by_listed_name: OnceLock<HashMap<String, ToolRef>>,
    /// The position of the only visible server, whose names are bare.
    pub sole: Option<usize>,
    /// `true` once the catalogs of unloaded servers have been read from disk into
    /// `ServerView::known`.
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
            .map(|((id, config), part)| Arc::new(ServerView::unloaded(*id, part, config)))
            .collect();
        Self {
            sole: (settings.wrapping != Wrapping::None).then_some(0),
            settings,
            servers: views,
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
        expose: impl Fn(ServerId, &Arc<ServerCatalog>, Naming<'_>) -> Arc<Exposed>,
    ) -> Self {
        let after = Self::new(settings, servers);
        let views = after.servers.iter().enumerate().map(|(at, fresh)| {
            let Some(before) = self.view(fresh.id).filter(|_| is_kept(fresh.id)) else {
                return fresh.clone();
            };
            let naming = after.naming(at);
            let presence = match &before.presence {
                Presence::Live { exposed, origin } => Presence::Live {
                    exposed: expose(fresh.id, &exposed.whole, naming),
                    origin: *origin,
                },
                other => other.clone(),
            };
            let known = before.known.as_ref();
            let known = known.map(|known| expose(fresh.id, &known.whole, naming));
            let failure = before.failure.clone();
            Arc::new(ServerView { presence, known, failure, ..ServerView::clone(fresh) })
        });
        let views = views.collect();
        let is_all_kept = after.servers.iter().all(|view| is_kept(view.id));
        Self { is_recalled: self.is_recalled && is_all_kept, ..after.with_servers(views) }
    }

    /// Returns the position of the server with this id.
    pub fn position(&self, id: ServerId) -> Option<usize> {
        self.servers.iter().position(|view| view.id == id)
    }

    /// Returns the server with this id, if the config still has it.
    pub fn view(&self, id: ServerId) -> Option<&ServerView> {
        self.position(id).map(|position| self.servers[position].as_ref())
    }

    /// Returns the naming of a server's tools.
    pub fn naming(&self, server: usize) -> Naming<'_> {
        let view = &self.servers[server];
        match self.sole {
            Some(_) => Naming::Bare,
            None => Naming::Long { part: &view.part, server: &view.name },
        }
    }

    /// Returns the snapshot in which the server at this position has the given presence, and the
    /// lists that change.
    #[must_use]
    pub fn with(&self, server: usize, presence: Presence) -> (Self, Changes) {
        let before = &self.servers[server];
        let changes = changes(&before.presence, &presence);
        let mut servers = self.servers.clone();
        let is_live = matches!(presence, Presence::Live { .. });
        let failure = before.failure.clone().filter(|_| !is_live);
        servers[server] = Arc::new(ServerView { presence, failure, ..ServerView::clone(before) });
        (self.with_servers(servers), changes)
    }

    /// Returns the snapshot in which a load of the server has failed. Lists do not change.
    #[must_use]
    pub fn with_failure(&self, server: ServerId, cause: String) -> Self {
        let Some(server) = self.position(server) else { return self.clone() };
        let mut servers = self.servers.clone();
        let before = ServerView::clone(&servers[server]);
        servers[server] = Arc::new(ServerView { failure: Some(cause), ..before });
        self.with_servers(servers)
    }

    fn positions(&self) -> HashMap<ServerId, usize> {
        self.servers.iter().enumerate().map(|(at, view)| (view.id, at)).collect()
    }

    /// Returns the snapshot with these catalogs from the servers' last connections as known.
    #[must_use]
    pub fn recalled(&self, known: Vec<(ServerId, Arc<Exposed>)>) -> Self {
        let positions = self.positions();
        let mut servers = self.servers.clone();
        for (server, exposed) in known {
            let Some(server) = positions.get(&server).copied() else { continue };
            let before = ServerView::clone(&servers[server]);
            servers[server] = Arc::new(ServerView { known: Some(exposed), ..before });
        }
        Self { is_recalled: true, ..self.with_servers(servers) }
    }

    /// Returns the snapshot in which these servers are live with catalogs from another run, unless
    /// they are live already.
    #[must_use]
    pub fn seeded(&self, seeds: Vec<(ServerId, Arc<Exposed>)>) -> Self {
        let positions = self.positions();
        let mut servers = self.servers.clone();
        for (server, exposed) in seeds {
            let Some(at) = positions.get(&server) else { continue };
            let before = &servers[*at];
            if !matches!(before.presence, Presence::Live { .. }) {
                let presence = Presence::Live { exposed, origin: Origin::OwnAccord };
                servers[*at] = Arc::new(ServerView { presence, ..ServerView::clone(before) });
            }
        }
        self.with_servers(servers)
    }

    /// Returns the snapshot in which only `server` is visible, under bare names. Positions do not
    /// change. A server that the config no longer has appears empty.
    #[must_use]
    pub fn only(&self, server: ServerId) -> Self {
        let hidden = |view: &Arc<ServerView>| {
            let view = ServerView::clone(view);
            Arc::new(ServerView { presence: Presence::Disabled, known: None, ..view })
        };
        let mut servers: Vec<Arc<ServerView>> = self
            .servers
            .iter()
            .map(|view| if view.id == server { Arc::new(view.bare()) } else { hidden(view) })
            .collect();
        let position = self.position(server).unwrap_or_else(|| {
            servers.push(Arc::new(ServerView::gone(server)));
            servers.len() - 1
        });
        Self { sole: Some(position), ..self.with_servers(servers) }
    }

    /// Returns the snapshot for a host that has not loaded the servers for which `is_loaded` is
    /// false. In growing lists, search still finds the tools that loads of other hosts have
    /// revealed.
    #[must_use]
    pub fn seen_by(&self, is_loaded: impl Fn(ServerId) -> bool) -> Self {
        let listing = self.settings.lists.listing;
        let servers: Vec<Arc<ServerView>> = self
            .servers
            .iter()
            .map(|view| match &view.presence {
                Presence::Live { exposed, origin: Origin::HostsRequest } if !is_loaded(view.id) => {
                    let presence = Presence::Offered { trouble: None };
                    let known = match listing {
                        Listing::Growing => Some(exposed.clone()),
                        Listing::Stable => view.known.clone(),
                    };
                    Arc::new(ServerView { presence, known, ..ServerView::clone(view) })
                }
                _ => view.clone(),
            })
            .collect();
        let seen = self.with_servers(servers);
        match listing {
            // The same tools are known, so the index is the same.
            Listing::Growing => Self { search_index: self.search_index.clone(), ..seen },
            Listing::Stable => seen,
        }
    }

    fn with_servers(&self, servers: Vec<Arc<ServerView>>) -> Self {
        Self {
            settings: self.settings.clone(),
            servers,
            by_listed_name: OnceLock::new(),
            sole: self.sole,
            is_recalled: self.is_recalled,
            search_index: Arc::default(),
        }
    }

    /// Returns the tool that is listed directly under this name.
    pub(super) fn by_listed_name(&self, name: &str) -> Option<ToolRef> {
        self.by_listed_name.get_or_init(|| index(&self.servers)).get(name).copied()
    }

    /// Returns the position of the server with this name, if the server may be used.
    pub fn find(&self, name: &str) -> Option<usize> {
        let is_named = |view: &Arc<ServerView>| view.name == name && view.is_known();
        self.servers.iter().position(is_named)
    }

    /// Returns every live server with its position and its exposed catalog, in config order.
    pub fn live(&self) -> impl Iterator<Item = (usize, &ServerView, &Arc<Exposed>)> {
        self.servers.iter().enumerate().filter_map(|(server, view)| match &view.presence {
            Presence::Live { exposed, .. } => Some((server, view.as_ref(), exposed)),
            _ => None,
        })
    }

    /// Returns the names of the servers that can still be loaded.
    pub fn loadable(&self) -> Vec<&str> {
        self.servers
            .iter()
            .filter(|view| matches!(view.presence, Presence::Offered { .. }))
            .map(|view| view.name.as_str())
            .collect()
    }
}

fn index(servers: &[Arc<ServerView>]) -> HashMap<String, ToolRef> {
    let mut by_name = HashMap::new();
    for (server, view) in servers.iter().enumerate() {
        let names = view.exposed().map(|exposed| exposed.listed_names.as_slice());
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
            let indexed: Vec<_> = self.servers.iter().map(|view| indexed(view)).collect();
            SearchIndex::of(&indexed)
        })
    }
}

/// Returns a server as the search index reads it.
fn indexed(view: &ServerView) -> IndexedServer<'_> {
    let tools = match (view.exposed(), &view.presence) {
        (Some(exposed), _) => {
            IndexedTools::Known { tools: &exposed.catalog.tools, documents: &exposed.documents }
        }
        (None, Presence::Offered { .. }) => IndexedTools::Unknown,
        _ => IndexedTools::None,
    };
    let description = view.description.as_deref().unwrap_or_default();
    IndexedServer { name: &view.name, description, tools }
}
