//! The unit that is listed and loaded.

use std::{collections::BTreeSet, sync::Arc};

use super::{ExposedCatalog, OfferId, ServerCatalog, ServerId, exposed::Naming};
use crate::config::{Listing, OfferRules, ServerConfig, Startup};

/// The unit that is listed and loaded: what a host may see of one server. The server is the unit
/// of connection, and may have several offers.
#[derive(Clone, Debug)]
pub struct Offer {
    pub id: OfferId,
    pub name: String,
    /// The offer's part of directly listed names.
    pub part: String,
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
    /// True if tools are listed with the server's own names.
    pub(super) is_bare: bool,
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
            part: String::new(),
            description: None,
            is_lazy: false,
            rules: OfferRules::default(),
            presence: Presence::Disabled,
            known: None,
            failure: None,
            is_bare: true,
        }
    }

    /// Returns the offer of everything that a server has, before it was connected. The snapshot
    /// that contains it determines its `part`.
    pub(super) fn unloaded(server: ServerId, config: &ServerConfig) -> Self {
        Self {
            id: OfferId::whole(server),
            name: config.name.clone(),
            part: String::new(),
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
            is_bare: false,
        }
    }

    /// Returns the server whose connection serves the offer.
    pub fn server(&self) -> ServerId {
        self.id.server()
    }

    fn naming(&self) -> Naming<'_> {
        if self.is_bare {
            Naming::Bare
        } else {
            Naming::Long { part: &self.part, offer: &self.name }
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

    /// Returns a copy with only those tools that match these names or globs.
    pub(super) fn narrowed(&self, tools: &[String]) -> Self {
        let mut narrowed = self.clone();
        narrowed.rules.tools.restrict(tools);
        narrowed.with_catalogs(|offer, exposed| exposed.narrowed(&offer.rules, offer.naming()))
    }

    /// Returns a copy in which tools have the server's own names.
    pub(super) fn bare(&self) -> Self {
        let bare = Self { is_bare: true, ..self.clone() };
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
