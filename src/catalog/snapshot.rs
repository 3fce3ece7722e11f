//! Everything that is known of all servers at one moment. Immutable, and swapped as a whole.

use std::{collections::HashMap, sync::Arc};

use super::{Changes, ServerCatalog, ToolRef, names};
use crate::config::{Listing, ServerConfig, Startup};

#[derive(Clone, Debug)]
pub struct Snapshot {
    /// In config order.
    pub servers: Vec<Arc<ServerView>>,
    /// Directly listed names of all live tools.
    pub(super) by_listed_name: HashMap<String, ToolRef>,
    /// The only server that there is to see; its names are bare.
    pub sole: Option<usize>,
}

/// One server as the host may see it.
#[derive(Clone, Debug)]
pub struct ServerView {
    pub name: String,
    /// The server's part of directly listed names.
    pub part: String,
    pub description: Option<String>,
    pub is_lazy: bool,
    pub presence: Presence,
    /// The directly listed name of each tool, in the order of the catalog.
    pub listed_names: Vec<String>,
}

/// Whether a server has anything to show. Being awake or asleep makes no difference here.
#[derive(Clone, Debug)]
pub enum Presence {
    /// Its catalog is not known; it can be loaded. `trouble`: why the last attempt failed.
    Offered { trouble: Option<String> },
    /// Its catalog is part of what the process offers.
    Live { catalog: Arc<ServerCatalog>, origin: Origin },
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
    Offered { trouble: Option<&'a str> },
    Live(&'a ServerCatalog),
    Nothing,
}

impl Snapshot {
    /// The state before anything was connected.
    pub fn new(servers: &[ServerConfig], sole: Option<usize>) -> Self {
        let server_names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let views = servers.iter().zip(names::server_parts(&server_names)).map(|(server, part)| {
            Arc::new(ServerView {
                name: server.name.clone(),
                part,
                description: server.description.clone(),
                is_lazy: server.startup == Startup::Lazy,
                presence: if server.enabled {
                    Presence::Offered { trouble: None }
                } else {
                    Presence::Disabled
                },
                listed_names: Vec::new(),
            })
        });
        Self { servers: views.collect(), by_listed_name: HashMap::new(), sole }
    }

    /// The snapshot in which `server` has the given presence, and what differs.
    #[must_use]
    pub fn with(&self, server: usize, presence: Presence) -> (Self, Changes) {
        let before = &self.servers[server];
        let changes = changes(&before.presence, &presence);
        let listed_names = match &presence {
            Presence::Live { catalog, .. } if self.sole.is_some() => bare_names(catalog),
            Presence::Live { catalog, .. } => {
                let tools: Vec<&str> =
                    catalog.tools.iter().map(|tool| tool.name.as_str()).collect();
                names::tool_names(&before.part, &before.name, &tools)
            }
            Presence::Offered { .. } | Presence::Evicted | Presence::Disabled => Vec::new(),
        };
        let mut servers = self.servers.clone();
        servers[server] =
            Arc::new(ServerView { presence, listed_names, ..ServerView::clone(before) });
        let by_listed_name = index(&servers);
        (Self { servers, by_listed_name, sole: self.sole }, changes)
    }

    /// What there is to see of `server` alone, under bare names. Positions stay what they are.
    #[must_use]
    pub fn only(&self, server: usize) -> Self {
        let hidden = |view: &Arc<ServerView>| {
            Arc::new(ServerView {
                presence: Presence::Disabled,
                listed_names: Vec::new(),
                ..ServerView::clone(view)
            })
        };
        let bare = |view: &Arc<ServerView>| match &view.presence {
            Presence::Live { catalog, .. } => {
                let listed_names = bare_names(catalog);
                Arc::new(ServerView { listed_names, ..ServerView::clone(view) })
            }
            _ => view.clone(),
        };
        let positions = self.servers.iter().enumerate();
        let servers: Vec<Arc<ServerView>> = positions
            .map(|(at, view)| if at == server { bare(view) } else { hidden(view) })
            .collect();
        let by_listed_name = index(&servers);
        Self { servers, by_listed_name, sole: Some(server) }
    }

    /// The position of the server of this name, if it may be named at all.
    pub fn find(&self, name: &str) -> Option<usize> {
        let is_named = |view: &Arc<ServerView>| view.name == name && view.is_known();
        self.servers.iter().position(is_named)
    }

    /// Every live server with its position and catalog, in config order.
    pub fn live(&self) -> impl Iterator<Item = (usize, &ServerView, &Arc<ServerCatalog>)> {
        self.servers.iter().enumerate().filter_map(|(server, view)| match &view.presence {
            Presence::Live { catalog, .. } => Some((server, view.as_ref(), catalog)),
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

fn bare_names(catalog: &ServerCatalog) -> Vec<String> {
    catalog.tools.iter().map(|tool| tool.name.clone()).collect()
}

fn index(servers: &[Arc<ServerView>]) -> HashMap<String, ToolRef> {
    let mut by_name = HashMap::new();
    for (server, view) in servers.iter().enumerate() {
        for (tool, name) in view.listed_names.iter().enumerate() {
            by_name.insert(name.clone(), ToolRef { server, tool });
        }
    }
    by_name
}

fn changes(before: &Presence, after: &Presence) -> Changes {
    match (before, after) {
        (Presence::Live { catalog: old, .. }, Presence::Live { catalog: new, .. }) => {
            new.changes_since(old)
        }
        (_, Presence::Live { catalog, .. }) | (Presence::Live { catalog, .. }, _) => {
            catalog.brings()
        }
        (Presence::Offered { trouble: old }, Presence::Offered { trouble: new }) => {
            Changes { tools: old != new, ..Changes::default() }
        }
        // Its line or its `activate_` tool goes, or comes back.
        _ => Changes { tools: true, ..Changes::default() },
    }
}

impl ServerView {
    /// How the server appears in lists under the given policy.
    pub fn shown(&self, listing: Listing) -> Shown<'_> {
        match (&self.presence, listing) {
            (Presence::Disabled, _) | (Presence::Evicted, Listing::Growing) => Shown::Nothing,
            (Presence::Offered { trouble }, Listing::Growing) => {
                Shown::Offered { trouble: trouble.as_deref() }
            }
            (Presence::Live { catalog, .. }, Listing::Growing)
            | (Presence::Live { catalog, origin: Origin::OwnAccord }, Listing::Stable) => {
                Shown::Live(catalog)
            }
            // What hosts have done to it, or met with it, does not show.
            (
                Presence::Live { origin: Origin::HostsRequest, .. }
                | Presence::Offered { .. }
                | Presence::Evicted,
                Listing::Stable,
            ) => Shown::Offered { trouble: None },
        }
    }

    /// Whether it can be named in a call: it is loaded, or can be.
    pub fn is_known(&self) -> bool {
        matches!(self.presence, Presence::Offered { .. } | Presence::Live { .. })
    }
}
