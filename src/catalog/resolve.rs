//! Resolves the names that agents and hosts write.

use std::collections::{HashMap, HashSet};

use super::{
    Exposed, Presence, Prompt, ServerCatalog, ServerId, ServerView, ServerVisibility, Snapshot,
    Tool, WithheldReason, uri_matcher,
};
use crate::wire::Raw;

/// A tool of a server whose catalog is known, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolRef {
    pub server: usize,
    pub tool: usize,
}

/// The current meaning of a tool's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
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

/// The destination of a resource request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceRoute {
    Server(ServerId),
    /// No live server lists the resource; an awake server may still have it.
    Unlisted,
}

impl Snapshot {
    /// Returns the tool at `at`, with its server.
    pub fn tool(&self, at: ToolRef) -> (&ServerView, &Tool) {
        let view = &self.servers[at.server];
        (view, &self.exposed_at(at).catalog.tools[at.tool])
    }

    /// Returns the name under which the tool at `at` is listed directly.
    pub fn listed_name(&self, at: ToolRef) -> &str {
        &self.exposed_at(at).listed_names[at.tool]
    }

    fn exposed_at(&self, at: ToolRef) -> &Exposed {
        let exposed = self.servers[at.server].exposed();
        exposed.expect("a ToolRef is only made for known catalogs of the same snapshot")
    }

    /// Returns the tool with this directly listed name, loaded or not.
    pub fn listed(&self, name: &str) -> Option<ToolRef> {
        self.by_listed_name(name)
    }

    /// Returns the name under which meta-tools show a tool: `server/tool`, or the bare name for a
    /// single server.
    pub fn qualified(&self, at: ToolRef) -> String {
        let (view, tool) = self.tool(at);
        if self.sole.is_some() { tool.name.clone() } else { format!("{}/{}", view.name, tool.name) }
    }

    /// Resolves `server/tool`, `server__tool`, a directly listed name, or a bare name.
    pub fn resolve_tool(&self, name: &str) -> Resolved {
        if let Some(at) = self.listed(name) {
            return self.loaded_or_load(at);
        }
        if let Some(resolved) = self.resolve_qualified(name) {
            return resolved;
        }
        if self.names_a_server(name) { Resolved::Unknown } else { self.resolve_bare(name) }
    }

    /// Returns whether the name begins with a configured server and a separator. Such a name
    /// belongs to that server, in use or not: another server must not answer to it with a tool that
    /// literally has this name.
    pub fn names_a_server(&self, name: &str) -> bool {
        self.sole.is_none() && self.servers.iter().any(|view| own_part(view, name).is_some())
    }

    /// Returns whether the name begins with another configured server and a separator.
    fn is_named_after_another(&self, server: usize, name: &str) -> bool {
        let mut others = self.servers.iter().enumerate().filter(|(other, _)| *other != server);
        self.sole.is_none() && others.any(|(_, view)| own_part(view, name).is_some())
    }

    /// Returns the known tool with this directly listed or qualified name, loaded or not.
    pub fn known_tool(&self, name: &str) -> Option<ToolRef> {
        let qualified = || {
            self.candidates(name).into_iter().find_map(|(server, tool)| self.tool_of(server, tool))
        };
        self.listed(name).or_else(qualified)
    }

    /// Returns every tool of every server whose catalog is known, in config order.
    pub fn known_tools(&self) -> impl Iterator<Item = ToolRef> {
        self.servers.iter().enumerate().flat_map(|(server, view)| {
            let tools = view.exposed().map_or(0, |exposed| exposed.catalog.tools.len());
            (0..tools).map(move |tool| ToolRef { server, tool })
        })
    }

    /// Resolves a tool of one server by the server's own name for it.
    pub fn resolve_in(&self, server: usize, tool: &str) -> Resolved {
        let view = &self.servers[server];
        if let Presence::Live { .. } | Presence::Offered { .. } = view.presence {
            if let Some(at) = self.tool_of(server, tool) {
                return self.loaded_or_load(at);
            }
            if let Some(withheld) = self.withheld(server, tool) {
                return withheld;
            }
            if !view.allows(tool) {
                let (tool, why) = (tool.to_owned(), WithheldReason::SwitchedOff);
                return Resolved::Withheld { server, tool, why };
            }
        }
        match view.presence {
            Presence::Offered { .. } => Resolved::NeedsLoad { server },
            _ => Resolved::Unknown,
        }
    }

    /// Resolves `server/tool` and `server__tool`. A server's name may contain the separator: the
    /// longest matching name wins.
    fn resolve_qualified(&self, name: &str) -> Option<Resolved> {
        let candidates = self.candidates(name);
        let known = candidates.iter().find_map(|(server, tool)| {
            let known = self.tool_of(*server, tool).map(|at| self.loaded_or_load(at));
            known.or_else(|| self.withheld(*server, tool))
        });
        known.or_else(|| {
            let unloaded = candidates.iter().find(|(server, _)| {
                matches!(self.servers[*server].presence, Presence::Offered { .. })
            });
            unloaded.map(|(server, _)| Resolved::NeedsLoad { server: *server })
        })
    }

    /// Returns the servers that a qualified name may refer to, each with the remaining part of the
    /// name. The longest server name comes first.
    fn candidates<'a>(&self, name: &'a str) -> Vec<(usize, &'a str)> {
        let mut candidates: Vec<(usize, &str)> = Vec::new();
        for (server, view) in self.servers.iter().enumerate().filter(|(_, view)| view.is_known()) {
            candidates.extend(own_part(view, name).map(|tool| (server, tool)));
        }
        candidates.sort_by_key(|(_, tool)| tool.len());
        candidates
    }

    /// Resolves a bare name among the loaded servers first, and then among the known tools of
    /// servers that are not loaded.
    fn resolve_bare(&self, name: &str) -> Resolved {
        let servers = 0..self.servers.len();
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
            several => Resolved::Ambiguous {
                candidates: several.iter().map(|at| self.qualified(*at)).collect(),
            },
        }
    }

    /// Resolves an unknown bare name to the single server, if there is only one and it is not
    /// loaded.
    fn needs_the_only_server(&self) -> Resolved {
        match self.sole {
            Some(server) if matches!(self.servers[server].presence, Presence::Offered { .. }) => {
                Resolved::NeedsLoad { server }
            }
            _ => Resolved::Unknown,
        }
    }

    fn is_live(&self, server: usize) -> bool {
        matches!(self.servers[server].presence, Presence::Live { .. })
    }

    fn loaded_or_load(&self, at: ToolRef) -> Resolved {
        if self.is_live(at.server) {
            Resolved::Tool(at)
        } else {
            Resolved::NeedsLoad { server: at.server }
        }
    }

    fn tool_of(&self, server: usize, name: &str) -> Option<ToolRef> {
        let tools = &self.servers[server].exposed()?.catalog.tools;
        let tool = tools.iter().position(|tool| tool.name == name)?;
        Some(ToolRef { server, tool })
    }

    fn withheld(&self, server: usize, name: &str) -> Option<Resolved> {
        let why = *self.servers[server].exposed()?.withheld.get(name)?;
        Some(Resolved::Withheld { server, tool: name.to_owned(), why })
    }

    /// Returns every live server, in the order of their claims to names and URIs. This is config
    /// order, but in stable lists the servers that hosts have loaded come last, so that they change
    /// nothing that is listed.
    fn claimants(&self) -> Vec<Claimant<'_>> {
        let mut claimants: Vec<Claimant<'_>> = self
            .live()
            .map(|(server, view, exposed)| Claimant {
                server,
                view,
                catalog: &exposed.catalog,
                is_listed: matches!(
                    view.visibility(self.settings.listing),
                    ServerVisibility::Live(_)
                ),
            })
            .collect();
        claimants.sort_by_key(|claimant| !claimant.is_listed);
        claimants
    }

    /// Returns every prompt of every live server.
    pub fn prompts(&self) -> Vec<ExposedPrompt<'_>> {
        let mut taken = HashSet::new();
        let mut exposed = Vec::new();
        for Claimant { server, view, catalog, is_listed } in self.claimants() {
            for prompt in &catalog.prompts {
                let is_of_another = self.is_named_after_another(server, &prompt.name);
                let name = if !is_of_another && taken.insert(prompt.name.as_str()) {
                    prompt.name.clone()
                } else {
                    format!("{}__{}", view.part, prompt.name)
                };
                exposed.push(ExposedPrompt { name, server, prompt, is_listed });
            }
        }
        exposed
    }

    /// Returns the server of a prompt and the server's own name for it. Every prompt also has its
    /// long name.
    pub fn resolve_prompt(&self, name: &str) -> Option<(ServerId, String)> {
        let prompts = self.prompts();
        let is_long = |exposed: &&ExposedPrompt<'_>| {
            let part = &self.servers[exposed.server].part;
            name.strip_prefix(part.as_str()).and_then(|rest| rest.strip_prefix("__"))
                == Some(&exposed.prompt.name)
        };
        let exact = prompts.iter().find(|exposed| exposed.name == name);
        let found = exact.or_else(|| prompts.iter().find(is_long))?;
        Some((self.servers[found.server].id, found.prompt.name.clone()))
    }

    /// Returns the resources to list. Of equal URIs the first claimant's is listed.
    pub fn resources(&self) -> Vec<Raw> {
        self.unique(|catalog| {
            catalog
                .resources
                .iter()
                .map(|resource| (resource.uri.as_str(), &resource.raw))
                .collect()
        })
    }

    /// Returns the resource templates to list. Of equal templates the first claimant's is listed.
    pub fn templates(&self) -> Vec<Raw> {
        self.unique(|catalog| {
            let templates = catalog.templates.iter();
            templates.map(|template| (template.uri_template.as_str(), &template.raw)).collect()
        })
    }

    fn unique<'a>(
        &'a self,
        items: impl Fn(&'a ServerCatalog) -> Vec<(&'a str, &'a Raw)>,
    ) -> Vec<Raw> {
        let mut taken = HashSet::new();
        let listed = self.claimants().into_iter().filter(|claimant| claimant.is_listed);
        let all = listed.flat_map(|claimant| items(claimant.catalog));
        all.filter(|(key, _)| taken.insert(*key)).map(|(_, raw)| raw.clone()).collect()
    }

    /// Returns the server that a URI belongs to. `uri` may also be a template, as named in a
    /// completion.
    pub fn route_resource(&self, uri: &str) -> ResourceRoute {
        let claimants = self.claimants();
        let is_listed = |catalog: &ServerCatalog| {
            catalog.resources.iter().any(|resource| resource.uri == uri)
                || catalog.templates.iter().any(|template| template.uri_template == uri)
        };
        let matcher = uri_matcher::UriMatcher::new(uri);
        let is_matched = |catalog: &ServerCatalog| {
            catalog.templates.iter().any(|template| matcher.matches(&template.uri_template))
        };
        // A server need not list the interfaces of its tools (SEP-1865, Resource Discovery).
        let is_interface = uri.starts_with("ui://");
        let shows = |catalog: &ServerCatalog| {
            let interfaces = catalog.tools.iter().filter_map(Tool::interface);
            is_interface && interfaces.filter_map(|ui| ui.resource).any(|resource| resource == uri)
        };
        let found = claimants
            .iter()
            .find(|claimant| is_listed(claimant.catalog))
            .or_else(|| claimants.iter().find(|claimant| is_matched(claimant.catalog)))
            .or_else(|| claimants.iter().find(|claimant| shows(claimant.catalog)));
        let id = |claimant: &Claimant<'_>| self.servers[claimant.server].id;
        found.map_or(ResourceRoute::Unlisted, |claimant| ResourceRoute::Server(id(claimant)))
    }
}

/// Returns the part of the name after the server's name and a separator, or `None` if the name
/// begins otherwise.
fn own_part<'a>(view: &ServerView, name: &'a str) -> Option<&'a str> {
    [(view.name.as_str(), "/"), (&view.name, "__"), (&view.part, "__")]
        .into_iter()
        .filter(|(server, _)| !server.is_empty())
        .find_map(|(server, separator)| name.strip_prefix(server)?.strip_prefix(separator))
}

impl Snapshot {
    /// Returns the items that two live servers list under one name, for servers of which at least
    /// one is new.
    pub fn collisions(&self, is_new: impl Fn(usize) -> bool) -> Vec<Collision> {
        let mut found = Vec::new();
        let (mut uris, mut names) = (HashMap::new(), HashMap::new());
        for (server, view, exposed) in self.live() {
            for resource in &exposed.catalog.resources {
                let (first, first_view) =
                    *uris.entry(resource.uri.as_str()).or_insert((server, view));
                if first != server && (is_new(first) || is_new(server)) {
                    let (uri, hidden, shown) = (&resource.uri, &view.name, &first_view.name);
                    let text = format!(
                        "resource {uri} of server {hidden:?} is hidden by that of \
                            {shown:?}"
                    );
                    found.push(Collision { servers: [first, server], text });
                }
            }
            for prompt in &exposed.catalog.prompts {
                let first = *names.entry(prompt.name.as_str()).or_insert(server);
                if first != server && (is_new(first) || is_new(server)) {
                    let (name, part, of) = (&prompt.name, &view.part, &view.name);
                    let text = format!(
                        "prompt {name} of server {of:?} is listed as \
                        {part}__{name}"
                    );
                    found.push(Collision { servers: [first, server], text });
                }
            }
        }
        found
    }
}

/// An item that two servers list under the same name or URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    pub servers: [usize; 2],
    /// A description for the log; it quotes text of the servers.
    pub text: String,
}

/// A live server with a claim to the names of its prompts and to the URIs of its resources.
struct Claimant<'a> {
    server: usize,
    view: &'a ServerView,
    catalog: &'a ServerCatalog,
    is_listed: bool,
}

/// A prompt with the name by which hosts know it: bare for the first claimant, `<server>__<prompt>`
/// for others (see `docs/design/names.md`).
pub struct ExposedPrompt<'a> {
    pub name: String,
    pub server: usize,
    pub prompt: &'a Prompt,
    pub is_listed: bool,
}
