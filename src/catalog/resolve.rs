//! From a name that an agent or a host wrote to the thing it means.

use std::collections::{HashMap, HashSet};

use super::{
    Exposed, Presence, Prompt, ServerCatalog, ServerId, ServerView, Shown, Snapshot, Tool,
    Withheld, template,
};
use crate::wire::Raw;

/// One tool of a server whose catalog is known, by position.
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
    NeedsLoad {
        server: usize,
    },
    /// Several servers have a tool of this bare name.
    Ambiguous {
        candidates: Vec<String>,
    },
    /// Its server has it, and it is not for use. `tool`: its own name.
    Withheld {
        server: usize,
        tool: String,
        why: Withheld,
    },
    Unknown,
}

/// Where a resource request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceRoute {
    Server(ServerId),
    /// Nobody lists it; the awake servers may still have it.
    Unlisted,
}

impl Snapshot {
    /// The tool at `at`, with its server.
    pub fn tool(&self, at: ToolRef) -> (&ServerView, &Tool) {
        let view = &self.servers[at.server];
        (view, &self.exposed_at(at).catalog.tools[at.tool])
    }

    /// The name under which the tool at `at` is listed directly.
    pub fn listed_name(&self, at: ToolRef) -> &str {
        &self.exposed_at(at).listed_names[at.tool]
    }

    fn exposed_at(&self, at: ToolRef) -> &Exposed {
        let exposed = self.servers[at.server].exposed();
        exposed.expect("a ToolRef is only made for known catalogs of the same snapshot")
    }

    /// The tool that has this directly listed name, loaded or not.
    pub fn listed(&self, name: &str) -> Option<ToolRef> {
        self.by_listed_name(name)
    }

    /// The name by which meta-tools show a tool: `server/tool`, or bare for a single server.
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

    /// Whether a configured server, in use or not, stands before a separator in the name. It binds: another
    /// server must not answer to it with a tool that is literally called so.
    pub fn names_a_server(&self, name: &str) -> bool {
        self.sole.is_none() && self.servers.iter().any(|view| own_part(view, name).is_some())
    }

    /// Whether another configured server than this one stands before a separator in the name.
    fn is_named_after_another(&self, server: usize, name: &str) -> bool {
        let mut others = self.servers.iter().enumerate().filter(|(other, _)| *other != server);
        self.sole.is_none() && others.any(|(_, view)| own_part(view, name).is_some())
    }

    /// The one tool of this name among those that are known, loaded or not.
    pub fn known_tool(&self, name: &str) -> Option<ToolRef> {
        let qualified = || {
            self.candidates(name).into_iter().find_map(|(server, tool)| self.tool_of(server, tool))
        };
        self.listed(name).or_else(qualified)
    }

    /// Every tool of every server whose catalog is known, in config order.
    pub fn known_tools(&self) -> impl Iterator<Item = ToolRef> {
        self.servers.iter().enumerate().flat_map(|(server, view)| {
            let tools = view.exposed().map_or(0, |exposed| exposed.catalog.tools.len());
            (0..tools).map(move |tool| ToolRef { server, tool })
        })
    }

    /// Resolves a tool of one server by its own name.
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
                let (tool, why) = (tool.to_owned(), Withheld::SwitchedOff);
                return Resolved::Withheld { server, tool, why };
            }
        }
        match view.presence {
            Presence::Offered { .. } => Resolved::NeedsLoad { server },
            _ => Resolved::Unknown,
        }
    }

    /// `server/tool` and `server__tool`. A server's name may hold the separator: the longest one wins.
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

    /// The servers that a qualified name may mean, each with what it leaves for the tool; the longest name first.
    fn candidates<'a>(&self, name: &'a str) -> Vec<(usize, &'a str)> {
        let mut candidates: Vec<(usize, &str)> = Vec::new();
        for (server, view) in self.servers.iter().enumerate().filter(|(_, view)| view.is_known()) {
            candidates.extend(own_part(view, name).map(|tool| (server, tool)));
        }
        candidates.sort_by_key(|(_, tool)| tool.len());
        candidates
    }

    /// Of the loaded servers first; of those that are not, one that is known to have it.
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

    /// With a single server every bare name is its own, loaded or not.
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

    /// Every live server, in the order in which it has a claim to a name or a URI: config order, but
    /// in stable lists what hosts have loaded comes last, so that it changes nothing that is listed.
    fn claimants(&self) -> Vec<Claimant<'_>> {
        let mut claimants: Vec<Claimant<'_>> = self
            .live()
            .map(|(server, view, exposed)| Claimant {
                server,
                view,
                catalog: &exposed.catalog,
                is_listed: matches!(view.shown(self.settings.listing), Shown::Live(_)),
            })
            .collect();
        claimants.sort_by_key(|claimant| !claimant.is_listed);
        claimants
    }

    /// Every prompt of every live server.
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

    /// The server of a prompt and the prompt's name there. Every prompt also answers to its long name.
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

    /// The resources to list; of equal URIs the first claimant's.
    pub fn resources(&self) -> Vec<Raw> {
        self.unique(|catalog| {
            catalog
                .resources
                .iter()
                .map(|resource| (resource.uri.as_str(), &resource.raw))
                .collect()
        })
    }

    /// The resource templates to list; of equal ones the first claimant's.
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

    /// The server that a URI, or a template named in a completion, belongs to.
    pub fn route_resource(&self, uri: &str) -> ResourceRoute {
        let claimants = self.claimants();
        let is_listed = |catalog: &ServerCatalog| {
            catalog.resources.iter().any(|resource| resource.uri == uri)
                || catalog.templates.iter().any(|template| template.uri_template == uri)
        };
        let wanted = template::Wanted::new(uri);
        let is_matched = |catalog: &ServerCatalog| {
            catalog.templates.iter().any(|template| wanted.matches(&template.uri_template))
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

/// What follows the server's name and a separator; `None` where another name stands there.
fn own_part<'a>(view: &ServerView, name: &'a str) -> Option<&'a str> {
    [(view.name.as_str(), "/"), (&view.name, "__"), (&view.part, "__")]
        .into_iter()
        .filter(|(server, _)| !server.is_empty())
        .find_map(|(server, separator)| name.strip_prefix(server)?.strip_prefix(separator))
}

impl Snapshot {
    /// What two live servers list, where one of them is new.
    pub fn collisions(&self, is_new: impl Fn(usize) -> bool) -> Vec<Collision> {
        let mut found = Vec::new();
        let (mut uris, mut names) = (HashMap::new(), HashMap::new());
        for (server, view, exposed) in self.live() {
            for resource in &exposed.catalog.resources {
                let (first, first_view) =
                    *uris.entry(resource.uri.as_str()).or_insert((server, view));
                if first != server && (is_new(first) || is_new(server)) {
                    let (uri, hidden, shown) = (&resource.uri, &view.name, &first_view.name);
                    let text =
                        format!("resource {uri} of {hidden:?} is hidden by that of {shown:?}");
                    found.push(Collision { servers: [first, server], text });
                }
            }
            for prompt in &exposed.catalog.prompts {
                let first = *names.entry(prompt.name.as_str()).or_insert(server);
                if first != server && (is_new(first) || is_new(server)) {
                    let (name, part, of) = (&prompt.name, &view.part, &view.name);
                    let text = format!("prompt {name} of {of:?} is listed as {part}__{name}");
                    found.push(Collision { servers: [first, server], text });
                }
            }
        }
        found
    }
}

/// Two servers that list the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    pub servers: [usize; 2],
    /// For the log; it repeats what the servers say.
    pub text: String,
}

struct Claimant<'a> {
    server: usize,
    view: &'a ServerView,
    catalog: &'a ServerCatalog,
    is_listed: bool,
}

/// A prompt under the name by which hosts know it: bare for the first claimant, else
/// `<server>__<prompt>` (DESIGN.md section 4, Names).
pub struct ExposedPrompt<'a> {
    pub name: String,
    pub server: usize,
    pub prompt: &'a Prompt,
    pub is_listed: bool,
}
