//! Finds tools by the names that agents and hosts write.

use super::{ExposedCatalog, Offer, Presence, Snapshot, Tool, ToolRef, WithheldReason};

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
            format!("{}/{}", offer.name, tool.name)
        }
    }

    /// Resolves `server/tool`, `server__tool`, a directly listed name, or a bare name.
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

    /// Returns whether the name begins with another configured server and a separator.
    pub(super) fn is_named_after_another(self, offer: usize, name: &str) -> bool {
        let offers = self.snapshot.offers.iter().enumerate();
        let mut others = offers.filter(|(other, _)| *other != offer);
        self.snapshot.sole.is_none() && others.any(|(_, offer)| own_part(offer, name).is_some())
    }

    /// Returns the known tool with this directly listed or qualified name, loaded or not.
    pub fn known_tool(self, name: &str) -> Option<ToolRef> {
        let qualified = || {
            self.candidates(name).into_iter().find_map(|(offer, tool)| self.tool_of(offer, tool))
        };
        self.listed(name).or_else(qualified)
    }

    /// Returns every tool of every offer whose catalog is known, in config order.
    pub fn known_tools(self) -> impl Iterator<Item = ToolRef> + use<'a> {
        self.snapshot.offers.iter().enumerate().flat_map(|(at, offer)| {
            let tools = offer.exposed().map_or(0, |exposed| exposed.catalog.tools.len());
            (0..tools).map(move |tool| ToolRef { offer: at, tool })
        })
    }

    /// Resolves a tool of one offer by the server's own name for it.
    pub fn resolve_in(self, offer: usize, tool: &str) -> ToolResolution {
        let view = &self.snapshot.offers[offer];
        if let Presence::Live { .. } | Presence::Offered { .. } = view.presence {
            if let Some(at) = self.tool_of(offer, tool) {
                return self.loaded_or_load(at);
            }
            if let Some(withheld) = self.withheld(offer, tool) {
                return withheld;
            }
            if !view.allows(tool) {
                let (tool, why) = (tool.to_owned(), WithheldReason::SwitchedOff);
                return ToolResolution::Withheld { offer, tool, why };
            }
        }
        match view.presence {
            Presence::Offered { .. } => ToolResolution::NeedsLoad { offer },
            _ => ToolResolution::Unknown,
        }
    }

    /// Resolves `server/tool` and `server__tool`. The name of an offer may contain the separator:
    /// the longest matching name wins.
    fn resolve_qualified(self, name: &str) -> Option<ToolResolution> {
        let candidates = self.candidates(name);
        let known = candidates.iter().find_map(|(offer, tool)| {
            let known = self.tool_of(*offer, tool).map(|at| self.loaded_or_load(at));
            known.or_else(|| self.withheld(*offer, tool))
        });
        known.or_else(|| {
            let unloaded = candidates.iter().find(|(offer, _)| {
                matches!(self.snapshot.offers[*offer].presence, Presence::Offered { .. })
            });
            unloaded.map(|(offer, _)| ToolResolution::NeedsLoad { offer: *offer })
        })
    }

    /// Returns the offers that a qualified name may refer to, each with the remaining part of the
    /// name. The longest name of an offer comes first.
    fn candidates(self, name: &str) -> Vec<(usize, &str)> {
        let mut candidates: Vec<(usize, &str)> = Vec::new();
        for (at, offer) in
            self.snapshot.offers.iter().enumerate().filter(|(_, offer)| offer.is_known())
        {
            candidates.extend(own_part(offer, name).map(|tool| (at, tool)));
        }
        candidates.sort_by_key(|(_, tool)| tool.len());
        candidates
    }

    /// Resolves a bare name among the loaded offers first, and then among the known tools of offers
    /// that are not loaded.
    fn resolve_bare(self, name: &str) -> ToolResolution {
        let offers = 0..self.snapshot.offers.len();
        let found: Vec<ToolRef> =
            offers.clone().filter_map(|offer| self.tool_of(offer, name)).collect();
        let is_live = |at: &&ToolRef| self.is_live(at.offer);
        let live: Vec<ToolRef> = found.iter().filter(is_live).copied().collect();
        match if live.is_empty() { found } else { live }.as_slice() {
            [] => {
                let withheld = offers.clone().find_map(|offer| self.withheld(offer, name));
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

/// Returns the part of the name after the offer's name and a separator, or `None` if the name
/// begins otherwise.
fn own_part<'a>(offer: &Offer, name: &'a str) -> Option<&'a str> {
    [(offer.name.as_str(), "/"), (&offer.name, "__"), (&offer.part, "__")]
        .into_iter()
        .filter(|(start, _)| !start.is_empty())
        .find_map(|(start, separator)| name.strip_prefix(start)?.strip_prefix(separator))
}
