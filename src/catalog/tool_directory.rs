//! Finds tools by the names that agents and hosts write.

use super::{ExposedCatalog, Offer, Presence, Snapshot, Tool, ToolRef, WithheldReason};

/// The current meaning of a tool's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolResolution {
    Tool(ToolRef),
    /// The name belongs to a server that is not loaded: load the server, and resolve the name
    /// again.
    NeedsLoad {
        server: usize,
    },
    /// Several servers have a tool of this bare name.
    Ambiguous {
        candidates: Vec<String>,
    },
    /// The server has the tool, but withholds it. `tool` is the server's own name for it.
    Withheld {
        server: usize,
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
    /// Returns the tool at `at`, with its server.
    pub fn tool(self, at: ToolRef) -> (&'a Offer, &'a Tool) {
        let view = &self.snapshot.offers[at.server];
        (view, &self.exposed_at(at).catalog.tools[at.tool])
    }

    /// Returns the name under which the tool at `at` is listed directly.
    pub fn listed_name(self, at: ToolRef) -> &'a str {
        &self.exposed_at(at).listed_names[at.tool]
    }

    fn exposed_at(self, at: ToolRef) -> &'a ExposedCatalog {
        let exposed = self.snapshot.offers[at.server].exposed();
        exposed.expect("a ToolRef is only made for known catalogs of the same snapshot")
    }

    /// Returns the tool with this directly listed name, loaded or not.
    pub fn listed(self, name: &str) -> Option<ToolRef> {
        self.snapshot.by_listed_name(name)
    }

    /// Returns the name under which meta-tools show a tool: `server/tool`, or the bare name for a
    /// single server.
    pub fn qualified(self, at: ToolRef) -> String {
        let (view, tool) = self.tool(at);
        if self.snapshot.sole.is_some() {
            tool.name.clone()
        } else {
            format!("{}/{}", view.name, tool.name)
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
            && self.snapshot.offers.iter().any(|view| own_part(view, name).is_some())
    }

    /// Returns whether the name begins with another configured server and a separator.
    pub(super) fn is_named_after_another(self, server: usize, name: &str) -> bool {
        let mut others =
            self.snapshot.offers.iter().enumerate().filter(|(other, _)| *other != server);
        self.snapshot.sole.is_none() && others.any(|(_, view)| own_part(view, name).is_some())
    }

    /// Returns the known tool with this directly listed or qualified name, loaded or not.
    pub fn known_tool(self, name: &str) -> Option<ToolRef> {
        let qualified = || {
            self.candidates(name).into_iter().find_map(|(server, tool)| self.tool_of(server, tool))
        };
        self.listed(name).or_else(qualified)
    }

    /// Returns every tool of every server whose catalog is known, in config order.
    pub fn known_tools(self) -> impl Iterator<Item = ToolRef> + use<'a> {
        self.snapshot.offers.iter().enumerate().flat_map(|(server, view)| {
            let tools = view.exposed().map_or(0, |exposed| exposed.catalog.tools.len());
            (0..tools).map(move |tool| ToolRef { server, tool })
        })
    }

    /// Resolves a tool of one server by the server's own name for it.
    pub fn resolve_in(self, server: usize, tool: &str) -> ToolResolution {
        let view = &self.snapshot.offers[server];
        if let Presence::Live { .. } | Presence::Offered { .. } = view.presence {
            if let Some(at) = self.tool_of(server, tool) {
                return self.loaded_or_load(at);
            }
            if let Some(withheld) = self.withheld(server, tool) {
                return withheld;
            }
            if !view.allows(tool) {
                let (tool, why) = (tool.to_owned(), WithheldReason::SwitchedOff);
                return ToolResolution::Withheld { server, tool, why };
            }
        }
        match view.presence {
            Presence::Offered { .. } => ToolResolution::NeedsLoad { server },
            _ => ToolResolution::Unknown,
        }
    }

    /// Resolves `server/tool` and `server__tool`. A server's name may contain the separator: the
    /// longest matching name wins.
    fn resolve_qualified(self, name: &str) -> Option<ToolResolution> {
        let candidates = self.candidates(name);
        let known = candidates.iter().find_map(|(server, tool)| {
            let known = self.tool_of(*server, tool).map(|at| self.loaded_or_load(at));
            known.or_else(|| self.withheld(*server, tool))
        });
        known.or_else(|| {
            let unloaded = candidates.iter().find(|(server, _)| {
                matches!(self.snapshot.offers[*server].presence, Presence::Offered { .. })
            });
            unloaded.map(|(server, _)| ToolResolution::NeedsLoad { server: *server })
        })
    }

    /// Returns the servers that a qualified name may refer to, each with the remaining part of the
    /// name. The longest server name comes first.
    fn candidates(self, name: &str) -> Vec<(usize, &str)> {
        let mut candidates: Vec<(usize, &str)> = Vec::new();
        for (server, view) in
            self.snapshot.offers.iter().enumerate().filter(|(_, view)| view.is_known())
        {
            candidates.extend(own_part(view, name).map(|tool| (server, tool)));
        }
        candidates.sort_by_key(|(_, tool)| tool.len());
        candidates
    }

    /// Resolves a bare name among the loaded servers first, and then among the known tools of
    /// servers that are not loaded.
    fn resolve_bare(self, name: &str) -> ToolResolution {
        let servers = 0..self.snapshot.offers.len();
        let found: Vec<ToolRef> =
            servers.clone().filter_map(|server| self.tool_of(server, name)).collect();
        let is_live = |at: &&ToolRef| self.is_live(at.server);
        let live: Vec<ToolRef> = found.iter().filter(is_live).copied().collect();
        match if live.is_empty() { found } else { live }.as_slice() {
            [] => {
                let withheld = servers.clone().find_map(|server| self.withheld(server, name));
                withheld.unwrap_or_else(|| self.needs_the_only_server())
            }
            [at] => self.loaded_or_load(*at),
            several => ToolResolution::Ambiguous {
                candidates: several.iter().map(|at| self.qualified(*at)).collect(),
            },
        }
    }

    /// Resolves an unknown bare name to the single server, if there is only one and it is not
    /// loaded.
    fn needs_the_only_server(self) -> ToolResolution {
        match self.snapshot.sole {
            Some(server)
                if matches!(self.snapshot.offers[server].presence, Presence::Offered { .. }) =>
            {
                ToolResolution::NeedsLoad { server }
            }
            _ => ToolResolution::Unknown,
        }
    }

    fn is_live(self, server: usize) -> bool {
        matches!(self.snapshot.offers[server].presence, Presence::Live { .. })
    }

    fn loaded_or_load(self, at: ToolRef) -> ToolResolution {
        if self.is_live(at.server) {
            ToolResolution::Tool(at)
        } else {
            ToolResolution::NeedsLoad { server: at.server }
        }
    }

    fn tool_of(self, server: usize, name: &str) -> Option<ToolRef> {
        let tools = &self.snapshot.offers[server].exposed()?.catalog.tools;
        let tool = tools.iter().position(|tool| tool.name == name)?;
        Some(ToolRef { server, tool })
    }

    fn withheld(self, server: usize, name: &str) -> Option<ToolResolution> {
        let why = *self.snapshot.offers[server].exposed()?.withheld.get(name)?;
        Some(ToolResolution::Withheld { server, tool: name.to_owned(), why })
    }
}

/// Returns the part of the name after the server's name and a separator, or `None` if the name
/// begins otherwise.
fn own_part<'a>(view: &Offer, name: &'a str) -> Option<&'a str> {
    [(view.name.as_str(), "/"), (&view.name, "__"), (&view.part, "__")]
        .into_iter()
        .filter(|(server, _)| !server.is_empty())
        .find_map(|(server, separator)| name.strip_prefix(server)?.strip_prefix(separator))
}
