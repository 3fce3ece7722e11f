//! One server as a host may see it.

use std::sync::Arc;

use super::Exposed;
use crate::config::{Features, Listing, ServerConfig, Startup, ToolRules};

/// The number of a server, which stays the same for as long as the process lives. The server's
/// position in a snapshot may change with the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub usize);

impl ServerId {
    /// Numbers the servers of the first config in their order.
    pub fn number(servers: &[ServerConfig]) -> Vec<(Self, &ServerConfig)> {
        servers.iter().enumerate().map(|(number, server)| (Self(number), server)).collect()
    }
}

/// One server as a host may see it.
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
    /// The catalog from the last connection, perhaps in another run. It is used for search, for
    /// counts and for the `direct` surface only.
    pub known: Option<Arc<Exposed>>,
    /// The cause of failure of the last requested load, until a load succeeds.
    pub failure: Option<String>,
}

/// The visible state of a server. Awake and asleep servers do not differ here.
#[derive(Clone, Debug)]
pub enum Presence {
    /// The server can be loaded. `trouble` is the cause of failure of the last attempt.
    Offered { trouble: Option<String> },
    /// The catalog is part of what dormouse offers to hosts.
    Live { exposed: Arc<Exposed>, origin: Origin },
    /// Three consecutive loads failed.
    Evicted,
    /// The config has switched the server off.
    Disabled,
}

/// The reason why a catalog is live. In stable lists, a server that a host has loaded still appears
/// unloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    OwnAccord,
    HostsRequest,
}

/// A server as it appears in lists.
#[derive(Clone, Copy, Debug)]
pub enum ServerVisibility<'a> {
    /// `known` is the same as in [`ServerView`].
    Offered {
        trouble: Option<&'a str>,
        known: Option<&'a Exposed>,
    },
    Live(&'a Exposed),
    Hidden,
}

impl ServerView {
    /// Returns the view of a server that the config no longer has.
    pub(super) fn gone(id: ServerId) -> Self {
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

    /// Returns the view of a server about which nothing is known.
    pub(super) fn unloaded(id: ServerId, part: String, config: &ServerConfig) -> Self {
        Self {
            id,
            name: config.name.clone(),
            part,
            description: config.description.clone(),
            is_lazy: config.startup == Startup::Lazy,
            features: config.offer.features,
            rules: config.offer.tools.clone(),
            presence: if config.enabled {
                Presence::Offered { trouble: None }
            } else {
                Presence::Disabled
            },
            known: None,
            failure: None,
        }
    }

    /// Returns the live catalog, or else the catalog from the last connection.
    pub fn exposed(&self) -> Option<&Exposed> {
        match &self.presence {
            Presence::Live { exposed, .. } => Some(exposed),
            Presence::Offered { .. } => self.known.as_deref(),
            Presence::Evicted | Presence::Disabled => None,
        }
    }

    /// Returns how the server appears in lists of the given kind.
    pub fn visibility(&self, listing: Listing) -> ServerVisibility<'_> {
        let known = self.known.as_deref();
        match (&self.presence, listing) {
            (Presence::Disabled, _) | (Presence::Evicted, Listing::Growing) => {
                ServerVisibility::Hidden
            }
            (Presence::Offered { trouble }, Listing::Growing) => {
                ServerVisibility::Offered { trouble: trouble.as_deref(), known }
            }
            (Presence::Live { exposed, .. }, Listing::Growing)
            | (Presence::Live { exposed, origin: Origin::OwnAccord }, Listing::Stable) => {
                ServerVisibility::Live(exposed)
            }
            // Loads and failures that hosts caused must not change a stable list.
            (
                Presence::Live { origin: Origin::HostsRequest, .. }
                | Presence::Offered { .. }
                | Presence::Evicted,
                Listing::Stable,
            ) => ServerVisibility::Offered { trouble: None, known },
        }
    }

    /// Returns whether the config permits a tool of this name, listed or not.
    pub(super) fn allows(&self, tool: &str) -> bool {
        self.features.tools && self.rules.allow(tool)
    }

    /// Returns whether calls may name the server: it is loaded, or can be loaded.
    pub fn is_known(&self) -> bool {
        matches!(self.presence, Presence::Offered { .. } | Presence::Live { .. })
    }

    /// Returns a copy in which tools have the server's own names.
    pub(super) fn bare(&self) -> Self {
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
