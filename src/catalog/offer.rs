//! The unit that is listed and loaded.

use std::sync::Arc;

use super::ExposedCatalog;
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

/// The unit that is listed and loaded: all that one server has, as a host may see it. A server is
/// the unit of connection.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The server whose connection serves the offer.
    pub server: ServerId,
    pub name: String,
    /// The offer's part of directly listed names.
    pub part: String,
    pub description: Option<String>,
    pub is_lazy: bool,
    pub features: Features,
    pub rules: ToolRules,
    pub presence: Presence,
    /// The catalog from the last connection, perhaps in another run. It is used for search, for
    /// counts and for the `direct` surface only.
    pub known: Option<Arc<ExposedCatalog>>,
    /// The cause of failure of the last requested load, until a load succeeds.
    pub failure: Option<String>,
}

/// The visible state of an offer. Awake and asleep servers do not differ here.
#[derive(Clone, Debug)]
pub enum Presence {
    /// The server can be loaded. `trouble` is the cause of failure of the last attempt.
    Offered { trouble: Option<String> },
    /// The catalog is part of what dormouse offers to hosts.
    Live { exposed: Arc<ExposedCatalog>, origin: LoadOrigin },
    /// Three consecutive loads failed.
    Evicted,
    /// The config has switched the server off.
    Disabled,
}

/// The reason why a catalog is live. In stable lists, a server that a host has loaded still appears
/// unloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOrigin {
    OwnAccord,
    HostsRequest,
}

/// An offer as it appears in lists.
#[derive(Clone, Copy, Debug)]
pub enum OfferVisibility<'a> {
    /// `known` is the same as in [`Offer`].
    Offered {
        trouble: Option<&'a str>,
        known: Option<&'a ExposedCatalog>,
    },
    Live(&'a ExposedCatalog),
    Hidden,
}

impl Offer {
    /// Returns the offer of a server that the config no longer has.
    pub(super) fn gone(server: ServerId) -> Self {
        Self {
            server,
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

    /// Returns the offer of a server about which nothing is known.
    pub(super) fn unloaded(server: ServerId, part: String, config: &ServerConfig) -> Self {
        Self {
            server,
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
    pub fn exposed(&self) -> Option<&ExposedCatalog> {
        match &self.presence {
            Presence::Live { exposed, .. } => Some(exposed),
            Presence::Offered { .. } => self.known.as_deref(),
            Presence::Evicted | Presence::Disabled => None,
        }
    }

    /// Returns how the offer appears in lists of the given kind.
    pub fn visibility(&self, listing: Listing) -> OfferVisibility<'_> {
        let known = self.known.as_deref();
        match (&self.presence, listing) {
            (Presence::Disabled, _) | (Presence::Evicted, Listing::Growing) => {
                OfferVisibility::Hidden
            }
            (Presence::Offered { trouble }, Listing::Growing) => {
                OfferVisibility::Offered { trouble: trouble.as_deref(), known }
            }
            (Presence::Live { exposed, .. }, Listing::Growing)
            | (Presence::Live { exposed, origin: LoadOrigin::OwnAccord }, Listing::Stable) => {
                OfferVisibility::Live(exposed)
            }
            // Loads and failures that hosts caused must not change a stable list.
            (
                Presence::Live { origin: LoadOrigin::HostsRequest, .. }
                | Presence::Offered { .. }
                | Presence::Evicted,
                Listing::Stable,
            ) => OfferVisibility::Offered { trouble: None, known },
        }
    }

    /// Returns whether the config permits a tool of this name, listed or not.
    pub(super) fn allows(&self, tool: &str) -> bool {
        self.features.tools && self.rules.allow(tool)
    }

    /// Returns whether calls may name the offer: it is loaded, or can be loaded.
    pub fn is_known(&self) -> bool {
        matches!(self.presence, Presence::Offered { .. } | Presence::Live { .. })
    }

    /// Returns a copy in which tools have the server's own names.
    pub(super) fn bare(&self) -> Self {
        let bare = |exposed: &Arc<ExposedCatalog>| Arc::new(exposed.bare());
        let presence = match &self.presence {
            Presence::Live { exposed, origin } => {
                Presence::Live { exposed: bare(exposed), origin: *origin }
            }
            other => other.clone(),
        };
        Self { presence, known: self.known.as_ref().map(bare), ..self.clone() }
    }
}
