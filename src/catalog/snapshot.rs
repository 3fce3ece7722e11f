//! Everything that is known of all servers at one moment. Immutable, and swapped as a whole.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{Changes, Exposed, Index, Naming, ServerCatalog, ToolRef, names};
use crate::config::{Features, Listing, ServerConfig, Settings, Startup, ToolRules, Wrapping};

/// A server's name as a number, for as long as the process lives. Where a server stands in a snapshot may
/// change when the config does; this does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub usize);

impl ServerId {
    /// The servers of a first config, numbered in their order.
    pub fn number(servers: &[ServerConfig]) -> Vec<(Self, &ServerConfig)> {
        servers.iter().enumerate().map(|(number, server)| (Self(number), server)).collect()
    }
}

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub settings: Arc<Settings>,
    /// In config order.
    pub servers: Vec<Arc<ServerView>>,
    /// Directly listed names of all tools that are known; made at the first look, since many snapshots follow each other
    /// at a start.
    by_listed_name: OnceLock<HashMap<String, ToolRef>>,
    /// The only server that there is to see; its names are bare.
    pub sole: Option<usize>,
    /// Whether `ServerView::known` says what there is to say, or nobody has looked yet.
    pub is_recalled: bool,
    /// What all tools are found by; made when somebody searches.
    pub(super) search_index: Arc<OnceLock<Index>>,
}

/// One server as the host may see it.
#[derive(Clone, Debug)]
pub struct ServerView {
    pub id: ServerId,
    pub name: String,
    /// The server's part of directly listed names.
    pub part: String,
    pub description: Option<String>,
    pub is_lazy: bool,
    pub features: Features,
    pub rules: ToolRules,
    pub presence: Presence,
    /// What the server had when it was last connected, perhaps in another run. It feeds search, counts
    /// and the `direct` surface, nothing else.
    pub known: Option<Arc<Exposed>>,
    /// Why the last load failed that somebody asked for, until one succeeds.
    pub failure: Option<String>,
}

/// Whether a server has anything to show. Being awake or asleep makes no difference here.
#[derive(Clone, Debug)]
pub enum Presence {
    /// It can be loaded. `trouble`: why the last attempt failed.
    Offered { trouble: Option<String> },
    /// Its catalog is part of what the process offers.
    Live { exposed: Arc<Exposed>, origin: Origin },
    /// Three loads in a row failed.
    Evicted,
    /// Switched off in the config.
    Disabled,
}

/// Why a catalog is live. What a host asked for does not show in stable lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    OwnAccord,
    HostsRequest,
}

/// A server as it appears in lists.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// `known`: as in [`ServerView`].
    Offered {
        trouble: Option<&'a str>,
        known: Option<&'a Exposed>,
    },
    Live(&'a Exposed),
    Nothing,
}

impl Snapshot {
    /// The state before anything was connected.
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

    /// The snapshot after the config has changed. A server that `is_kept` is as it was, but for what the config says of
    /// it; `expose` makes anew what is exposed of it. Of the others nothing is known.
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

    /// Where the server of this id stands.
    pub fn position(&self, id: ServerId) -> Option<usize> {
        self.servers.iter().position(|view| view.id == id)
    }

    /// The server of this id, if the config still has it.
    pub fn view(&self, id: ServerId) -> Option<&ServerView> {
        self.position(id).map(|position| self.servers[position].as_ref())
    }

    /// How the tools of a server are named.
    pub fn naming(&self, server: usize) -> Naming<'_> {
        let view = &self.servers[server];
        match self.sole {
            Some(_) => Naming::Bare,
            None => Naming::Long { part: &view.part, server: &view.name },
        }
    }

    /// The snapshot in which the server at this position has the given presence, and what differs.
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

    /// The snapshot in which a load of the server has failed. Lists do not show it.
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

    /// The snapshot in which these servers had these catalogs when they were last connected.
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

    /// The snapshot in which these servers are live that are not yet, with the catalogs that they had in another run.
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

    /// What there is to see of `server` alone, under bare names. Positions stay what they are. Of a server that is
    /// gone there is nothing.
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

    /// What somebody sees who has not loaded the servers that `is_loaded` denies. What others' loads have shown of
    /// them can be found by a search, but where lists are to stay the same.
    #[must_use]
    pub fn seen_by(&self, is_loaded: impl Fn(ServerId) -> bool) -> Self {
        let listing = self.settings.listing;
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
            // The same is known of them, so that search finds the same.
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

    /// The tool that is listed directly under this name.
    pub(super) fn by_listed_name(&self, name: &str) -> Option<ToolRef> {
        self.by_listed_name.get_or_init(|| index(&self.servers)).get(name).copied()
    }

    /// The position of the server of this name, if it may be named at all.
    pub fn find(&self, name: &str) -> Option<usize> {
        let is_named = |view: &Arc<ServerView>| view.name == name && view.is_known();
        self.servers.iter().position(is_named)
    }

    /// Every live server with its position and what is exposed of it, in config order.
    pub fn live(&self) -> impl Iterator<Item = (usize, &ServerView, &Arc<Exposed>)> {
        self.servers.iter().enumerate().filter_map(|(server, view)| match &view.presence {
            Presence::Live { exposed, .. } => Some((server, view.as_ref(), exposed)),
            _ => None,
        })
    }

    /// Names of the servers that can still be loaded.
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
        // Its line or its `activate_` tool goes, or comes back.
        _ => Changes { tools: true, ..Changes::default() },
    }
}

/// The servers' parts of directly listed names.
fn parts(servers: &[(ServerId, &ServerConfig)]) -> Vec<String> {
    let names: Vec<&str> = servers.iter().map(|(_, server)| server.name.as_str()).collect();
    names::server_parts(&names)
}

impl ServerView {
    /// A server that the config does not have any more.
    fn gone(id: ServerId) -> Self {
        Self {
            id,
            name: "removed from the config".to_owned(),
            part: String::new(),
            description: None,
            is_lazy: false,
            features: Features::default(),
            rules: ToolRules::default(),
            presence: Presence::Disabled,
            known: None,
            failure: None,
        }
    }

    /// A server of which nothing is known.
    fn unloaded(id: ServerId, part: String, config: &ServerConfig) -> Self {
        Self {
            id,
            name: config.name.clone(),
            part,
            description: config.description.clone(),
            is_lazy: config.startup == Startup::Lazy,
            features: config.features,
            rules: config.tools.clone(),
            presence: if config.enabled {
                Presence::Offered { trouble: None }
            } else {
                Presence::Disabled
            },
            known: None,
            failure: None,
        }
    }

    /// What is live of it, or else what it had when it was last connected.
    pub fn exposed(&self) -> Option<&Exposed> {
        match &self.presence {
            Presence::Live { exposed, .. } => Some(exposed),
            Presence::Offered { .. } => self.known.as_deref(),
            Presence::Evicted | Presence::Disabled => None,
        }
    }

    /// How the server appears in lists under the given policy.
    pub fn shown(&self, listing: Listing) -> Shown<'_> {
        let known = self.known.as_deref();
        match (&self.presence, listing) {
            (Presence::Disabled, _) | (Presence::Evicted, Listing::Growing) => Shown::Nothing,
            (Presence::Offered { trouble }, Listing::Growing) => {
                Shown::Offered { trouble: trouble.as_deref(), known }
            }
            (Presence::Live { exposed, .. }, Listing::Growing)
            | (Presence::Live { exposed, origin: Origin::OwnAccord }, Listing::Stable) => {
                Shown::Live(exposed)
            }
            // What hosts have done to it, or met with it, does not show.
            (
                Presence::Live { origin: Origin::HostsRequest, .. }
                | Presence::Offered { .. }
                | Presence::Evicted,
                Listing::Stable,
            ) => Shown::Offered { trouble: None, known },
        }
    }

    /// Whether the config lets a tool of this name through, listed or not.
    pub(super) fn allows(&self, tool: &str) -> bool {
        self.features.tools && self.rules.allow(tool)
    }

    /// Whether it can be named in a call: it is loaded, or can be.
    pub fn is_known(&self) -> bool {
        matches!(self.presence, Presence::Offered { .. } | Presence::Live { .. })
    }

    /// The same under the server's own names.
    fn bare(&self) -> Self {
        let bare = |exposed: &Arc<Exposed>| Arc::new(exposed.bare());
        let presence = match &self.presence {
            Presence::Live { exposed, origin } => {
                Presence::Live { exposed: bare(exposed), origin: *origin }
            }
            other => other.clone(),
        };
        Self { presence, known: self.known.as_ref().map(bare), ..self.clone() }
    }
}
