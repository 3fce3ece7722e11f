//! Finds tools by the names that agents and hosts write.

use super::{
    ExposedCatalog, ListedOffer, ListedTools, Offer, Presence, ServerId, Snapshot, Tool, ToolRef,
    WithheldReason,
};

/// The current meaning of a tool's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolResolution {
    Tool(ToolRef),
    /// The name belongs to an offer that is not loaded: load the offer, and resolve the name again.
    NeedsLoad {
        offer: usize,
    },
    /// Several offers have a tool of this bare name.
    Ambiguous {
        candidates: Vec<String>,
    },
    /// The server has the tool, but the offer withholds it. `tool` is the server's own name for it.
    Withheld {
        offer: usize,
        tool: String,
        why: WithheldReason,
    },
    Unknown,
}

/// The beginning of a qualified name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameScope {
    /// The name of a server, of which any offer may have the tool.
    Server(ServerId),
    /// The name of a toolset, by the position of its offer.
    Toolset(usize),
}

/// The tools of a snapshot by their names.
#[derive(Clone, Copy, Debug)]
pub struct ToolDirectory<'a> {
    snapshot: &'a Snapshot,
}

impl Snapshot {
    pub fn tools(&self) -> ToolDirectory<'_> {
        ToolDirectory { snapshot: self }
    }
}

impl<'a> ToolDirectory<'a> {
    /// Returns the tool at `at`, with its offer.
    pub fn tool(self, at: ToolRef) -> (&'a Offer, &'a Tool) {
        let offer = &self.snapshot.offers[at.offer];
        (offer, &self.exposed_at(at).catalog.tools[at.tool])
    }

    /// Returns the name under which the tool at `at` is listed directly.
    pub fn listed_name(self, at: ToolRef) -> &'a str {
        &self.exposed_at(at).listed_names[at.tool]
    }

    fn exposed_at(self, at: ToolRef) -> &'a ExposedCatalog {
        let exposed = self.snapshot.offers[at.offer].exposed();
        exposed.expect("a ToolRef is only made for known catalogs of the same snapshot")
    }

    /// Returns the tool with this directly listed name, loaded or not.
    pub fn listed(self, name: &str) -> Option<ToolRef> {
        self.snapshot.by_listed_name(name)
    }

    /// Returns the name under which meta-tools show a tool: `server/tool`, or the bare name for a
    /// single server.
    pub fn qualified(self, at: ToolRef) -> String {
        let (offer, tool) = self.tool(at);
        if self.snapshot.sole.is_some() {
            tool.name.clone()
        } else {
            format!("{}/{}", offer.server_name(), tool.name)
        }
    }

    /// Returns the name of the toolset that a call of a tool loads, if it does.
    pub fn toolset_to_load(self, at: ToolRef) -> Option<&'a str> {
        let (offer, tool) = self.tool(at);
        let reached = self.reach(offer.server(), &tool.name)?;
        let offer = &self.snapshot.offers[reached.offer];
        (!offer.id.is_whole() && !self.is_live(reached.offer)).then_some(offer.name.as_str())
    }

    /// Resolves `server/tool`, `server/toolset/tool`, `server__tool`, a directly listed name, or a
    /// bare name.
    pub fn resolve_tool(self, name: &str) -> ToolResolution {
        if let Some(at) = self.listed(name) {
            return self.loaded_or_load(at);
        }
        if let Some(resolved) = self.resolve_qualified(name) {
            return resolved;
        }
        if self.names_a_server(name) { ToolResolution::Unknown } else { self.resolve_bare(name) }
    }

    /// Returns whether the name begins with a configured server and a separator. Such a name
    /// belongs to that server, in use or not: another server must not answer to it with a tool that
    /// literally has this name.
    pub fn names_a_server(self, name: &str) -> bool {
        self.snapshot.sole.is_none()
            && self.snapshot.offers.iter().any(|offer| own_part(offer, name).is_some())
    }

    /// Returns whether the name begins with a separator after a server that is loaded, at least in
    /// part.
    pub fn names_a_loaded_server(self, name: &str) -> bool {
        self.snapshot.live().any(|(_, offer, _)| own_part(offer, name).is_some())
    }

    /// Returns whether the name begins with another configured server and a separator.
    pub(super) fn is_named_after_another(self, offer: usize, name: &str) -> bool {
        let server = self.snapshot.offers[offer].server();
        let mut others = self.snapshot.offers.iter().filter(|other| other.server() != server);
        self.snapshot.sole.is_none() && others.any(|offer| own_part(offer, name).is_some())
    }

    /// Returns the known tool with this directly listed or qualified name, loaded or not.
    pub fn known_tool(self, name: &str) -> Option<ToolRef> {
        let qualified = || {
            self.candidates(name).into_iter().find_map(|(scope, tool)| self.tool_in(scope, tool))
        };
        self.listed(name).or_else(qualified)
    }

    /// Returns every known tool once, in config order.
    pub fn known_tools(self) -> impl Iterator<Item = ToolRef> + use<'a> {
        let offers = self.snapshot.appearances(ListedTools::Searched).into_iter();
        offers.flat_map(|ListedOffer { position, tools, .. }| {
            tools.into_iter().map(move |tool| ToolRef { offer: position, tool })
        })
    }

    /// Resolves a tool of one offer by the server's own name for it.
    pub fn resolve_in(self, offer: usize, tool: &str) -> ToolResolution {
        let entry = &self.snapshot.offers[offer];
        if let Presence::Live { .. } | Presence::Offered { .. } = entry.presence {
            let scope = if entry.id.is_whole() {
                NameScope::Server(entry.server())
            } else {
                NameScope::Toolset(offer)
            };
            if let Some(at) = self.tool_in(scope, tool) {
                return self.loaded_or_load(at);
            }
            if let Some(withheld) = self.withheld(offer, tool) {
                return withheld;
            }
            if !entry.allows(tool) {
                let (tool, why) = (tool.to_owned(), WithheldReason::SwitchedOff);
                return ToolResolution::Withheld { offer, tool, why };
            }
        }
        match entry.presence {
            Presence::Offered { .. } if !self.lacks(entry.server(), tool) => {
                ToolResolution::NeedsLoad { offer }
            }
            _ => ToolResolution::Unknown,
        }
    }

    /// Resolves `server/tool`, `server__tool` and `server/toolset/tool`. The name of a server may
    /// contain the separator: the longest matching name wins.
    fn resolve_qualified(self, name: &str) -> Option<ToolResolution> {
        let candidates = self.candidates(name);
        let known = candidates.iter().find_map(|(scope, tool)| {
            let known = self.tool_in(*scope, tool).map(|at| self.loaded_or_load(at));
            known.or_else(|| {
                let mut offers = self.offers_in(*scope);
                offers.find_map(|offer| self.withheld(offer, tool))
            })
        });
        known.or_else(|| {
            let unloaded = candidates.iter().find_map(|(scope, tool)| {
                let is_offered = |offer: &usize| {
                    let offer = &self.snapshot.offers[*offer];
                    matches!(offer.presence, Presence::Offered { .. })
                        && !self.lacks(offer.server(), tool)
                };
                self.offers_in(*scope).find(is_offered)
            });
            unloaded.map(|offer| ToolResolution::NeedsLoad { offer })
        })
    }

    /// Returns the servers and toolsets that a qualified name may refer to, each with the remaining
    /// part of the name. The longest name comes first.
    fn candidates(self, name: &str) -> Vec<(NameScope, &str)> {
        let mut candidates: Vec<(NameScope, &str)> = Vec::new();
        let mut before = None;
        let known = self.snapshot.offers.iter().enumerate().filter(|(_, offer)| offer.is_known());
        for (at, offer) in known {
            let server = offer.server();
            if before.replace(server) != Some(server) {
                let tool = own_part(offer, name);
                candidates.extend(tool.map(|tool| (NameScope::Server(server), tool)));
            }
            if !offer.id.is_whole() {
                let tool = name.strip_prefix(&offer.name).and_then(|rest| rest.strip_prefix('/'));
                candidates.extend(tool.map(|tool| (NameScope::Toolset(at), tool)));
            }
        }
        candidates.sort_by_key(|(_, tool)| tool.len());
        candidates
    }

    /// Resolves a bare name among the loaded offers first, and then among the known tools of offers
    /// that are not loaded.
    fn resolve_bare(self, name: &str) -> ToolResolution {
        let servers = self.snapshot.offers.chunk_by(|a, b| a.server() == b.server());
        let found: Vec<ToolRef> =
            servers.filter_map(|offers| self.reach(offers[0].server(), name)).collect();
        let is_live = |at: &&ToolRef| self.is_live(at.offer);
        let live: Vec<ToolRef> = found.iter().filter(is_live).copied().collect();
        match if live.is_empty() { found } else { live }.as_slice() {
            [] => {
                let mut offers = 0..self.snapshot.offers.len();
                let withheld = offers.find_map(|offer| self.withheld(offer, name));
                withheld.unwrap_or_else(|| self.needs_the_only_offer())
            }
            [at] => self.loaded_or_load(*at),
            several => ToolResolution::Ambiguous {
                candidates: several.iter().map(|at| self.qualified(*at)).collect(),
            },
        }
    }

    /// Resolves an unknown bare name to the only offer, if that is not loaded.
    fn needs_the_only_offer(self) -> ToolResolution {
        match self.snapshot.sole {
            Some(offer)
                if matches!(self.snapshot.offers[offer].presence, Presence::Offered { .. }) =>
            {
                ToolResolution::NeedsLoad { offer }
            }
            _ => ToolResolution::Unknown,
        }
    }

    /// Returns the positions of the offers that a scope consists of.
    fn offers_in(self, scope: NameScope) -> Box<dyn Iterator<Item = usize> + 'a> {
        match scope {
            NameScope::Server(server) => {
                Box::new(self.snapshot.offers_of(server).map(|(offer, _)| offer))
            }
            NameScope::Toolset(offer) => Box::new(std::iter::once(offer)),
        }
    }

    /// Returns the known tool of this name in a scope. A tool of a toolset that is not loaded is
    /// reached through another loaded offer of its server, if one has it.
    fn tool_in(self, scope: NameScope, name: &str) -> Option<ToolRef> {
        match scope {
            NameScope::Server(server) => self.reach(server, name),
            NameScope::Toolset(offer) => {
                let own = self.tool_of(offer, name)?;
                let reached = self.reach(self.snapshot.offers[offer].server(), name);
                reached.filter(|at| self.is_live(at.offer)).or(Some(own))
            }
        }
    }

    /// Returns the tool of this name in the offer of a server through which it is reached.
    fn reach(self, server: ServerId, name: &str) -> Option<ToolRef> {
        let offers = self.snapshot.offers_of(server);
        let having =
            offers.filter_map(|(at, offer)| Some((self.tool_of(at, name)?, offer.reach())));
        having.min_by_key(|(_, rank)| *rank).map(|(at, _)| at)
    }

    /// Returns whether a server that is loaded in part is known to lack a tool of this name.
    fn lacks(self, server: ServerId, name: &str) -> bool {
        self.snapshot.offers_of(server).any(|(_, offer)| match &offer.presence {
            Presence::Live { exposed, .. } => {
                exposed.whole.tools.iter().all(|tool| tool.name != name)
            }
            _ => false,
        })
    }

    fn is_live(self, offer: usize) -> bool {
        matches!(self.snapshot.offers[offer].presence, Presence::Live { .. })
    }

    fn loaded_or_load(self, at: ToolRef) -> ToolResolution {
        if self.is_live(at.offer) {
            ToolResolution::Tool(at)
        } else {
            ToolResolution::NeedsLoad { offer: at.offer }
        }
    }

    fn tool_of(self, offer: usize, name: &str) -> Option<ToolRef> {
        let tools = &self.snapshot.offers[offer].exposed()?.catalog.tools;
        let tool = tools.iter().position(|tool| tool.name == name)?;
        Some(ToolRef { offer, tool })
    }

    fn withheld(self, offer: usize, name: &str) -> Option<ToolResolution> {
        let why = *self.snapshot.offers[offer].exposed()?.withheld.get(name)?;
        Some(ToolResolution::Withheld { offer, tool: name.to_owned(), why })
    }
}

/// Returns the part of the name after the name of the offer's server and a separator, or `None` if
/// the name begins otherwise.
fn own_part<'a>(offer: &Offer, name: &'a str) -> Option<&'a str> {
    let server = offer.server_name();
    [(server, "/"), (server, "__"), (&offer.parts.server, "__")]
        .into_iter()
        .filter(|(start, _)| !start.is_empty())
        .find_map(|(start, separator)| name.strip_prefix(start)?.strip_prefix(separator))
}
