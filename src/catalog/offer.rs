//! The unit that is listed and loaded.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    ExposedCatalog, OfferId, ServerCatalog, ServerId, exposed::Naming, name_parts::NameParts,
};
use crate::config::{Listing, OfferExtent, OfferRules, ServerConfig, Startup, ToolChoice};

/// The unit that is listed and loaded: what a host may see of one server, or of one of its
/// toolsets. The server is the unit of connection.
#[derive(Clone, Debug)]
pub struct Offer {
    pub id: OfferId,
    /// `server` or `server/toolset`.
    pub name: String,
    pub(super) server_name: Arc<str>,
    pub parts: NameParts,
    pub description: Option<String>,
    pub is_lazy: bool,
    /// The parts of the server that the offer contains.
    pub rules: OfferRules,
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

impl Presence {
    /// Returns the reason why the catalog is live, if it is.
    pub fn origin(&self) -> Option<LoadOrigin> {
        match self {
            Self::Live { origin, .. } => Some(*origin),
            Self::Offered { .. } | Self::Evicted | Self::Disabled => None,
        }
    }
}

impl Offer {
    /// Returns an offer that the config no longer has.
    pub(super) fn gone(id: OfferId) -> Self {
        Self {
            id,
            name: "removed from the config".to_owned(),
            server_name: "removed from the config".into(),
            parts: NameParts { is_bare: true, ..NameParts::default() },
            description: None,
            is_lazy: false,
            rules: OfferRules::default(),
            presence: Presence::Disabled,
            known: None,
            failure: None,
        }
    }

    /// Returns the offers of a server before it was connected: the whole server, then its toolsets.
    /// The snapshot that contains them determines their `parts`.
    pub(super) fn all_of(server: ServerId, config: &ServerConfig) -> Vec<Self> {
        let whole = Self::unloaded(server, config);
        let toolsets = config.offer.extent.toolsets().iter().map(|toolset| Self {
            id: OfferId::toolset(server, &toolset.name),
            name: toolset.full_name(&config.name),
            description: Some(toolset.description.clone()),
            rules: config.offer.of_toolset(toolset),
            ..whole.clone()
        });
        let toolsets: Vec<Self> = toolsets.collect();
        [vec![whole], toolsets].concat()
    }

    /// Returns the offer of everything that a server has, before it was connected.
    fn unloaded(server: ServerId, config: &ServerConfig) -> Self {
        Self {
            id: OfferId::whole(server),
            name: config.name.clone(),
            server_name: config.name.as_str().into(),
            parts: NameParts::default(),
            description: config.description.clone(),
            is_lazy: config.startup == Startup::Lazy,
            rules: config.offer.clone(),
            presence: if config.enabled {
                Presence::Offered { trouble: None }
            } else {
                Presence::Disabled
            },
            known: None,
            failure: None,
        }
    }

    /// Returns the server whose connection serves the offer.
    pub fn server(&self) -> ServerId {
        self.id.server()
    }

    /// Returns the name of the server.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// Returns the name of the toolset, if the offer is one.
    pub(super) fn toolset(&self) -> Option<&str> {
        match &self.rules.extent {
            OfferExtent::Whole(_) => None,
            OfferExtent::Toolset(toolset) => Some(&toolset.name),
        }
    }

    /// Returns whether the server has toolsets, or the offer is one.
    pub fn is_divided(&self) -> bool {
        match &self.rules.extent {
            OfferExtent::Whole(toolsets) => !toolsets.is_empty(),
            OfferExtent::Toolset(_) => true,
        }
    }

    fn naming(&self) -> Naming<'_> {
        if self.parts.is_bare {
            Naming::Bare
        } else {
            Naming::Long { part: &self.parts.server, server: self.server_name() }
        }
    }

    /// Returns what the offer shows of its server's catalog. `changed` holds the tools to withhold
    /// because their definitions have changed.
    pub fn expose(
        &self,
        catalog: &Arc<ServerCatalog>,
        changed: &BTreeSet<String>,
    ) -> Arc<ExposedCatalog> {
        Arc::new(ExposedCatalog::new(catalog, &self.rules, changed, self.naming()))
    }

    /// Returns the rank among the offers of the server through which a tool can be reached; the
    /// lowest is used: an offer that is live, or else the smallest toolset, or else the server.
    pub(super) fn reach(&self) -> (u8, usize) {
        let tools = self.exposed().map_or(usize::MAX, |exposed| exposed.catalog.tools.len());
        match (&self.presence, self.id.is_whole()) {
            (Presence::Live { .. }, _) => (0, 0),
            (_, false) => (1, tools),
            (_, true) => (2, tools),
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

    /// Returns whether another state of the offer appears with the same tools, loaded or not.
    pub fn has_same_tools(&self, other: &Self, listing: Listing) -> bool {
        fn tools(visibility: OfferVisibility<'_>) -> Option<&ExposedCatalog> {
            match visibility {
                OfferVisibility::Live(exposed) => Some(exposed),
                OfferVisibility::Offered { known, .. } => known,
                OfferVisibility::Hidden => None,
            }
        }
        match (tools(self.visibility(listing)), tools(other.visibility(listing))) {
            (Some(one), Some(other)) => {
                one.catalog.tools == other.catalog.tools && one.withheld == other.withheld
            }
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// Returns whether the config permits a tool of this name, listed or not, in any offer of the
    /// server.
    pub(super) fn allows(&self, tool: &str) -> bool {
        self.rules.allow_tool(tool)
    }

    /// Returns whether calls may name the offer: it is loaded, or can be loaded.
    pub fn is_known(&self) -> bool {
        matches!(self.presence, Presence::Offered { .. } | Presence::Live { .. })
    }

    /// Returns a copy that no host sees.
    pub(super) fn hidden(&self) -> Self {
        Self { presence: Presence::Disabled, known: None, ..self.clone() }
    }

    /// Returns a copy with only those tools that one of the choices has.
    pub(super) fn narrowed(&self, choices: Vec<ToolChoice>) -> Self {
        let mut narrowed = self.clone();
        narrowed.rules.tools.restrict(choices);
        narrowed.with_catalogs(|offer, exposed| exposed.narrowed(&offer.rules, offer.naming()))
    }

    /// Returns a copy in which tools have the server's own names.
    pub(super) fn bare(&self) -> Self {
        let parts = NameParts { is_bare: true, ..self.parts.clone() };
        let bare = Self { parts, ..self.clone() };
        bare.with_catalogs(|_, exposed| exposed.bare())
    }

    /// Replaces the live catalog and the known one.
    fn with_catalogs(self, replaced: impl Fn(&Self, &ExposedCatalog) -> ExposedCatalog) -> Self {
        let presence = match &self.presence {
            Presence::Live { exposed, origin } => {
                Presence::Live { exposed: Arc::new(replaced(&self, exposed)), origin: *origin }
            }
            other => other.clone(),
        };
        let known = self.known.as_ref().map(|known| Arc::new(replaced(&self, known)));
        Self { presence, known, ..self }
    }
}
