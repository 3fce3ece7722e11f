//! The prompts and resources of all live servers, as hosts list and find them.

use std::collections::{HashMap, HashSet};

use super::{Offer, OfferVisibility, Prompt, ServerCatalog, ServerId, Snapshot, Tool, uri_matcher};
use crate::wire::Raw;

/// The destination of a resource request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceRoute {
    Server(ServerId),
    /// No live server lists the resource; an awake server may still have it.
    Unlisted,
}

/// The prompts and resources of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct MergedLists<'a> {
    snapshot: &'a Snapshot,
}

impl Snapshot {
    pub fn merged_lists(&self) -> MergedLists<'_> {
        MergedLists { snapshot: self }
    }
}

impl<'a> MergedLists<'a> {
    /// Returns one live offer of each server, in the order of their claims to names and URIs. This
    /// is config order, but in stable lists the offers that hosts have loaded come last, so that
    /// they change nothing that is listed. All offers of a server have the same items.
    fn claimants(self) -> Vec<Claimant<'a>> {
        let mut claimants: Vec<Claimant<'a>> = self
            .snapshot
            .live()
            .map(|(at, offer, exposed)| Claimant {
                at,
                offer,
                catalog: &exposed.catalog,
                is_listed: matches!(
                    offer.visibility(self.snapshot.settings.lists.listing),
                    OfferVisibility::Live(_)
                ),
            })
            .collect();
        claimants.sort_by_key(|claimant| !claimant.is_listed);
        let mut servers = HashSet::new();
        claimants.retain(|claimant| servers.insert(claimant.offer.server()));
        claimants
    }

    /// Returns every prompt of every server with a live offer.
    pub fn prompts(self) -> Vec<ExposedPrompt<'a>> {
        let mut taken = HashSet::new();
        let mut exposed = Vec::new();
        for Claimant { at, offer, catalog, is_listed } in self.claimants() {
            for prompt in &catalog.prompts {
                let is_of_another = self.snapshot.tools().is_named_after_another(at, &prompt.name);
                let name = if !is_of_another && taken.insert(prompt.name.as_str()) {
                    prompt.name.clone()
                } else {
                    format!("{}__{}", offer.parts.server, prompt.name)
                };
                exposed.push(ExposedPrompt { name, offer: at, prompt, is_listed });
            }
        }
        exposed
    }

    /// Returns the server of a prompt and the server's own name for it. Every prompt also has its
    /// long name.
    pub fn resolve_prompt(self, name: &str) -> Option<(ServerId, String)> {
        let prompts = self.prompts();
        let is_long = |exposed: &&ExposedPrompt<'_>| {
            let part = &self.snapshot.offers[exposed.offer].parts.server;
            name.strip_prefix(part.as_str()).and_then(|rest| rest.strip_prefix("__"))
                == Some(&exposed.prompt.name)
        };
        let exact = prompts.iter().find(|exposed| exposed.name == name);
        let found = exact.or_else(|| prompts.iter().find(is_long))?;
        Some((self.snapshot.offers[found.offer].server(), found.prompt.name.clone()))
    }

    /// Returns the resources to list. Of equal URIs the first claimant's is listed.
    pub fn resources(self) -> Vec<Raw> {
        self.unique(|catalog| {
            catalog
                .resources
                .iter()
                .map(|resource| (resource.uri.as_str(), &resource.raw))
                .collect()
        })
    }

    /// Returns the resource templates to list. If several servers offer the same template, only the
    /// first server's is listed.
    pub fn templates(self) -> Vec<Raw> {
        self.unique(|catalog| {
            let templates = catalog.templates.iter();
            templates.map(|template| (template.uri_template.as_str(), &template.raw)).collect()
        })
    }

    /// Returns the server that a URI belongs to. `uri` may also be a template, as named in a
    /// completion.
    pub fn route_resource(self, uri: &str) -> ResourceRoute {
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
        let id = |claimant: &Claimant<'_>| claimant.offer.server();
        found.map_or(ResourceRoute::Unlisted, |claimant| ResourceRoute::Server(id(claimant)))
    }

    /// Returns the items of all live offers; of those with equal keys the first one.
    fn unique(self, items: impl Fn(&'a ServerCatalog) -> Vec<(&'a str, &'a Raw)>) -> Vec<Raw> {
        let mut taken = HashSet::new();
        let listed = self.claimants().into_iter().filter(|claimant| claimant.is_listed);
        let all = listed.flat_map(|claimant| items(claimant.catalog));
        all.filter(|(key, _)| taken.insert(*key)).map(|(_, raw)| raw.clone()).collect()
    }

    /// Returns the items that offers of two servers list under one name, if at least one of the two
    /// offers is new.
    pub fn collisions(self, is_new: impl Fn(usize) -> bool) -> Vec<Collision> {
        let mut found = Vec::new();
        let (mut uris, mut names) = (HashMap::new(), HashMap::new());
        let mut servers = HashSet::new();
        let live = self.snapshot.live();
        for (at, offer, exposed) in live.filter(|(_, offer, _)| servers.insert(offer.server())) {
            let collides = |(first_at, first): (usize, &Offer)| {
                first.server() != offer.server() && (is_new(first_at) || is_new(at))
            };
            for resource in &exposed.catalog.resources {
                let first = *uris.entry(resource.uri.as_str()).or_insert((at, offer));
                if collides(first) {
                    let (uri, hidden, shown) =
                        (&resource.uri, offer.server_name(), first.1.server_name());
                    let text = format!(
                        "resource {uri} of server {hidden:?} is hidden by that of {shown:?}"
                    );
                    found.push(Collision { servers: [first.1.server(), offer.server()], text });
                }
            }
            for prompt in &exposed.catalog.prompts {
                let first = *names.entry(prompt.name.as_str()).or_insert((at, offer));
                if collides(first) {
                    let (name, part, of) = (&prompt.name, &offer.parts.server, offer.server_name());
                    let text =
                        format!("prompt {name} of server {of:?} is listed as {part}__{name}");
                    found.push(Collision { servers: [first.1.server(), offer.server()], text });
                }
            }
        }
        found
    }
}

/// An item that two servers list under the same name or URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    pub servers: [ServerId; 2],
    /// A description for the log; it quotes text of the servers.
    pub text: String,
}

/// A live offer with a claim to the names of its prompts and to the URIs of its resources.
struct Claimant<'a> {
    /// The position of the offer.
    at: usize,
    offer: &'a Offer,
    catalog: &'a ServerCatalog,
    is_listed: bool,
}

/// A prompt with the name by which hosts know it: bare for the first claimant, `<server>__<prompt>`
/// for others (see `docs/design/names.md`).
pub struct ExposedPrompt<'a> {
    pub name: String,
    /// The position of the offer.
    pub offer: usize,
    pub prompt: &'a Prompt,
    pub is_listed: bool,
}
