//! From a name that an agent or a host wrote to the thing it means.

use super::{Presence, ServerCatalog, ServerView, Snapshot, Tool, template};
use crate::wire::Raw;

/// One tool of a live server, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolRef {
    pub server: usize,
    pub tool: usize,
}

/// What a tool's name means at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    Tool(ToolRef),
    /// It names a server whose catalog is not live: load it and look again.
    NeedsLoad { server: usize },
    /// Several servers have a tool of this bare name.
    Ambiguous { candidates: Vec<String> },
    Unknown,
}

/// Where a resource request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceRoute {
    Server(usize),
    /// Nobody lists it; the awake servers may still have it.
    Unlisted,
}

impl Snapshot {
    /// The live tool at `at`, with its server.
    pub fn tool(&self, at: ToolRef) -> (&ServerView, &Tool) {
        let view = &self.servers[at.server];
        let Presence::Live { catalog, .. } = &view.presence else {
            unreachable!("a ToolRef is only made for live servers of the same snapshot");
        };
        (view, &catalog.tools[at.tool])
    }

    /// The name by which meta-tools show a tool: `server/tool`, or bare for a single server.
    pub fn qualified(&self, at: ToolRef) -> String {
        let (view, tool) = self.tool(at);
        if self.single_server { tool.name.clone() } else { format!("{}/{}", view.name, tool.name) }
    }

    /// Resolves `server/tool`, `server__tool`, a directly listed name, or a bare name.
    pub fn resolve_tool(&self, name: &str) -> Resolved {
        if let Some(at) = self.by_listed_name.get(name) {
            return Resolved::Tool(*at);
        }
        if let Some(resolved) = self.resolve_qualified(name) {
            return resolved;
        }
        self.resolve_bare(name)
    }

    /// `server/tool` and `server__tool`. A server's name may hold the separator: the longest one wins.
    fn resolve_qualified(&self, name: &str) -> Option<Resolved> {
        let mut candidates: Vec<(usize, &str)> = Vec::new();
        for (server, view) in self.servers.iter().enumerate().filter(|(_, view)| view.is_known()) {
            let rest = [(view.name.as_str(), "/"), (&view.name, "__"), (&view.part, "__")]
                .into_iter()
                .find_map(|(server, separator)| name.strip_prefix(server)?.strip_prefix(separator));
            candidates.extend(rest.map(|tool| (server, tool)));
        }
        candidates.sort_by_key(|(_, tool)| tool.len());
        let known = candidates.iter().find_map(|(server, tool)| self.tool_of(*server, tool));
        known.map(Resolved::Tool).or_else(|| {
            let unloaded = candidates.iter().find(|(server, _)| {
                matches!(self.servers[*server].presence, Presence::Offered { .. })
            });
            unloaded.map(|(server, _)| Resolved::NeedsLoad { server: *server })
        })
    }

    fn resolve_bare(&self, name: &str) -> Resolved {
        let servers = 0..self.servers.len();
        let found: Vec<ToolRef> = servers.filter_map(|server| self.tool_of(server, name)).collect();
        match found.as_slice() {
            [] => self.needs_the_only_server(),
            [at] => Resolved::Tool(*at),
            several => Resolved::Ambiguous {
                candidates: several.iter().map(|at| self.qualified(*at)).collect(),
            },
        }
    }

    /// With a single server every bare name is its own, loaded or not.
    fn needs_the_only_server(&self) -> Resolved {
        match self.servers.as_slice() {
            [view] if self.single_server && matches!(view.presence, Presence::Offered { .. }) => {
                Resolved::NeedsLoad { server: 0 }
            }
            _ => Resolved::Unknown,
        }
    }

    fn tool_of(&self, server: usize, name: &str) -> Option<ToolRef> {
        let Presence::Live { catalog, .. } = &self.servers[server].presence else { return None };
        let tool = catalog.tools.iter().position(|tool| tool.name == name)?;
        Some(ToolRef { server, tool })
    }

    /// The exposed name of every prompt of every live server: bare for the first that has it, else
    /// `<server>__<prompt>` (DESIGN.md section 4, Names).
    pub fn prompts(&self) -> Vec<(String, usize, &super::Prompt)> {
        let mut taken = std::collections::HashSet::new();
        let mut exposed = Vec::new();
        for (server, view, catalog) in self.live() {
            for prompt in &catalog.prompts {
                let name = if taken.insert(prompt.name.clone()) {
                    prompt.name.clone()
                } else {
                    format!("{}__{}", view.part, prompt.name)
                };
                exposed.push((name, server, prompt));
            }
        }
        exposed
    }

    /// The server of a prompt and the prompt's name there. Every prompt also answers to its long name.
    pub fn resolve_prompt(&self, name: &str) -> Option<(usize, String)> {
        let bare = self.live().find_map(|(server, _, catalog)| {
            let prompt = catalog.prompts.iter().find(|prompt| prompt.name == name)?;
            Some((server, prompt.name.clone()))
        });
        bare.or_else(|| {
            self.live().find_map(|(server, view, catalog)| {
                let has = |rest: &str| catalog.prompts.iter().any(|prompt| prompt.name == rest);
                let rest = [&view.part, &view.name]
                    .into_iter()
                    .find_map(|part| name.strip_prefix(part.as_str())?.strip_prefix("__"))?;
                has(rest).then(|| (server, rest.to_owned()))
            })
        })
    }

    /// Every resource of every live server; of equal URIs the first server's.
    pub fn resources(&self) -> Vec<Raw> {
        self.unique(|catalog| {
            catalog.resources.iter().map(|resource| (resource.uri.as_str(), &resource.raw)).collect()
        })
    }

    /// Every resource template of every live server; of equal ones the first server's.
    pub fn templates(&self) -> Vec<Raw> {
        self.unique(|catalog| {
            let templates = catalog.templates.iter();
            templates.map(|template| (template.uri_template.as_str(), &template.raw)).collect()
        })
    }

    fn unique<'a>(&'a self, items: impl Fn(&'a ServerCatalog) -> Vec<(&'a str, &'a Raw)>) -> Vec<Raw> {
        let mut taken = std::collections::HashSet::new();
        let all = self.live().flat_map(|(_, _, catalog)| items(catalog));
        all.filter(|(key, _)| taken.insert(*key)).map(|(_, raw)| raw.clone()).collect()
    }

    /// The server that a URI, or a template named in a completion, belongs to.
    pub fn route_resource(&self, uri: &str) -> ResourceRoute {
        let listed = self.live().find(|(_, _, catalog)| {
            catalog.resources.iter().any(|resource| resource.uri == uri)
                || catalog.templates.iter().any(|template| template.uri_template == uri)
        });
        let matched = || {
            self.live().find(|(_, _, catalog)| {
                catalog.templates.iter().any(|t| template::matches(&t.uri_template, uri))
            })
        };
        match listed.or_else(matched) {
            Some((server, ..)) => ResourceRoute::Server(server),
            None => ResourceRoute::Unlisted,
        }
    }
}
