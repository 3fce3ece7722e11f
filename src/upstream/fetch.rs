//! Reads a server's lists to their last page.

use std::{collections::HashSet, time::Duration};

use rmcp::model::ErrorCode;

use super::{AttemptError, ListKinds, connection::ConnectionTerms};
use crate::{
    base::Lock,
    catalog::{Discovery, Item, Prompt, Resource, ServerCatalog, Template, Tool, read_items},
    config::{Mask, ServerConfig, Transport},
    peer::{CallOptions, Peer},
    protocol::{ClientIdentity, Era, Greeting, adapt, error, method, next_cursor, request_headers},
    wire::{Raw, edit},
};

/// Maximum number of pages: a server with more may never end its list.
const MAX_PAGES: usize = 1000;
/// Maximum size of all pages of one list, in bytes.
const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of items of a list: each host's list is composed of them.
const MAX_ITEMS: usize = 20_000;
/// Maximum number of resources, which are only listed and looked up.
const MAX_RESOURCES: usize = 100_000;
/// Maximum length of a cursor, in bytes. All cursors are kept until the list ends.
const MAX_CURSOR_BYTES: usize = 64 * 1024;

/// The requested lists of a server.
#[derive(Debug)]
pub(super) struct FetchedLists {
    /// The greeting of the connection, which may differ from that of the known catalog.
    greeting: Greeting,
    terms: ConnectionTerms,
    tools: Option<Vec<Tool>>,
    resources: Option<Vec<Resource>>,
    templates: Option<Vec<Template>>,
    prompts: Option<Vec<Prompt>>,
    /// The shortest lifetime that the server states for its lists.
    fresh_for: Option<Duration>,
}

impl FetchedLists {
    /// Returns `known` with these lists in place of its own.
    pub(super) fn merged_into(self, known: ServerCatalog) -> ServerCatalog {
        let fresh_for = self.fresh_for.or(known.discovery.fresh_for);
        let ConnectionTerms { declared, spoken } = self.terms;
        let took = known.discovery.took;
        ServerCatalog {
            greeting: self.greeting,
            discovery: Discovery { took, declared, fresh_for, spoken },
            tools: self.tools.unwrap_or(known.tools),
            resources: self.resources.unwrap_or(known.resources),
            templates: self.templates.unwrap_or(known.templates),
            prompts: self.prompts.unwrap_or(known.prompts),
        }
    }
}

/// Reads the lists in `kinds`, all at once. `silence` is the maximum time for each page; zero means
/// no limit. Errors do not repeat secrets of the config.
pub(super) async fn fetch_lists(
    server: &ServerConfig,
    peer: &Peer,
    greeted: (&Greeting, &ConnectionTerms),
    kinds: ListKinds,
    silence: Duration,
) -> Result<FetchedLists, AttemptError> {
    let lists = fetch_all(server, peer, greeted, kinds, silence).await;
    lists.map_err(|error| error.masked(&Mask::of(server)))
}

async fn fetch_all(
    server: &ServerConfig,
    peer: &Peer,
    (greeting, terms): (&Greeting, &ConnectionTerms),
    kinds: ListKinds,
    silence: Duration,
) -> Result<FetchedLists, AttemptError> {
    let is_mirrored = repeats_in_headers(server, greeting.era);
    let server = server.name.as_str();
    let reader = ListReader { server, peer, greeting, silence, fresh_for: Lock::default() };
    let (tools, resources, templates, prompts) = tokio::try_join!(
        reader.list(method::TOOLS_LIST, "tools", kinds.intersects(ListKinds::TOOLS)),
        reader.list(method::RESOURCES_LIST, "resources", kinds.intersects(ListKinds::RESOURCES)),
        reader.list(
            method::RESOURCE_TEMPLATES_LIST,
            "resources",
            kinds.intersects(ListKinds::TEMPLATES)
        ),
        reader.list(method::PROMPTS_LIST, "prompts", kinds.intersects(ListKinds::PROMPTS)),
    )?;
    let tools = tools.map(|tools| {
        let can_be_called = |tool: &Tool| !is_mirrored || has_proper_marks(server, tool);
        tools.into_iter().filter(can_be_called).collect()
    });
    let fresh_for = *reader.fresh_for.lock();
    Ok(FetchedLists {
        greeting: greeting.clone(),
        terms: terms.clone(),
        tools,
        resources,
        templates,
        prompts,
        fresh_for,
    })
}

/// Reads one more list to its last page: a `method`, and the `member` of its result that holds the
/// items.
pub(super) async fn fetch_list(
    peer: &Peer,
    greeting: &Greeting,
    (method, member): (&'static str, &str),
    silence: Duration,
) -> Result<Vec<Raw>, AttemptError> {
    let reader = ListReader { server: method, peer, greeting, silence, fresh_for: Lock::default() };
    reader.pages(method, member).await
}

/// Returns whether calls to `server` repeat parameters in headers.
fn repeats_in_headers(server: &ServerConfig, era: Era) -> bool {
    era == Era::Modern && matches!(server.transport, Ok(Transport::Http(_)))
}

/// Returns a page of `tools/list` from `server` without the tools that must not be offered.
pub(crate) fn offerable(server: &ServerConfig, era: Era, page: Raw) -> Raw {
    if !repeats_in_headers(server, era) {
        return page;
    }
    let Some(tools) = edit::get(&page, "tools").and_then(|tools| edit::elements(&tools)) else {
        return page;
    };
    let is_offered = |tool: &&Raw| request_headers::check_parameters(tool).is_ok();
    let offered: Vec<&Raw> = tools.iter().filter(is_offered).collect();
    if offered.len() == tools.len() {
        return page;
    }
    edit::set(&page, "tools", &Raw::array(offered))
}

/// Returns whether the parameters of a tool can be repeated in headers as the tool demands.
/// Otherwise it must not be offered (2026-07-28, basic/transports/streamable-http, Schema
/// Extension).
fn has_proper_marks(server: &str, tool: &Tool) -> bool {
    let checked = request_headers::check_parameters(&tool.raw);
    if let Err(problem) = &checked {
        tracing::warn!(
            server,
            tool = tool.name,
            problem,
            "skipped a tool with invalid header parameters"
        );
    }
    checked.is_ok()
}

fn is_unknown_method(problem: &Raw) -> bool {
    error::has_code(problem, ErrorCode::METHOD_NOT_FOUND)
}

struct ListReader<'a> {
    server: &'a str,
    peer: &'a Peer,
    greeting: &'a Greeting,
    silence: Duration,
    fresh_for: Lock<Option<Duration>>,
}

impl ListReader<'_> {
    /// `None` if the list is not requested.
    async fn list<I: Item>(
        &self,
        method: &'static str,
        capability: &str,
        is_wanted: bool,
    ) -> Result<Option<Vec<I>>, AttemptError> {
        if !is_wanted {
            return Ok(None);
        }
        if !self.greeting.offers(capability) {
            return Ok(Some(Vec::new()));
        }
        let raw_items = self.pages(method, I::MEMBER).await?;
        let (items, dropped) = read_items(&raw_items);
        if dropped > 0 {
            tracing::warn!(
                server = self.server,
                "skipped {dropped} malformed, oversized or repeated items of {method}"
            );
        }
        Ok(Some(items))
    }

    async fn pages(&self, method: &'static str, member: &str) -> Result<Vec<Raw>, AttemptError> {
        let refused = |message: String| AttemptError::Refused {
            phase: method,
            code: i64::from(ErrorCode::INTERNAL_ERROR.0),
            message,
        };
        let mut items = Vec::new();
        let mut cursors = HashSet::new();
        let mut cursor: Option<Raw> = None;
        let mut bytes = 0;
        loop {
            let page = match self.page(method, cursor.as_ref()).await? {
                Ok(page) => page,
                Err(problem) if is_unknown_method(&problem) && cursor.is_none() => {
                    self.log_unknown_method(method);
                    return Ok(items);
                }
                Err(problem) => return Err(refused(error::message(&problem))),
            };
            self.note_ttl(&page);
            bytes += page.len();
            if bytes > MAX_LIST_BYTES {
                return Err(refused(format!("the pages have more than {MAX_LIST_BYTES} bytes")));
            }
            let elements = edit::get(&page, member).and_then(|list| edit::elements(&list));
            items.extend(
                elements.ok_or_else(|| refused(format!("the result has no {member:?} array")))?,
            );
            let max = if method == method::RESOURCES_LIST { MAX_RESOURCES } else { MAX_ITEMS };
            if items.len() > max {
                return Err(refused(format!("the list has more than {max} items")));
            }
            cursor = next_cursor(&page);
            match &cursor {
                None => return Ok(items),
                Some(next) if next.len() > MAX_CURSOR_BYTES => {
                    return Err(refused("the cursor is too long".to_owned()));
                }
                Some(next) if !cursors.insert(next.clone()) || cursors.len() >= MAX_PAGES => {
                    return Err(refused("the list has too many pages".to_owned()));
                }
                Some(_) => {}
            }
        }
    }

    /// Logs that the server lacks a method of a capability that it declares. The list is then
    /// empty.
    fn log_unknown_method(&self, method: &str) {
        // Many servers with resources have no templates.
        if method != method::RESOURCE_TEMPLATES_LIST {
            tracing::warn!(
                server = self.server,
                "the server declares a capability but lacks its method {method}; treating the \
                    list as empty"
            );
        }
    }

    /// Zero means that the server promises nothing.
    fn note_ttl(&self, page: &Raw) {
        let ttl = edit::get(page, "ttlMs").and_then(|ttl| ttl.read::<u64>().ok());
        let Some(ttl) = ttl.filter(|ttl| *ttl > 0).map(Duration::from_millis) else { return };
        let mut fresh_for = self.fresh_for.lock();
        *fresh_for = Some(fresh_for.map_or(ttl, |known| known.min(ttl)));
    }

    async fn page(
        &self,
        method: &'static str,
        cursor: Option<&Raw>,
    ) -> Result<crate::wire::Outcome, AttemptError> {
        let params = cursor.map(|cursor| edit::set(&Raw::empty_object(), "cursor", cursor));
        let params = match self.greeting.era {
            Era::Legacy => params,
            Era::Modern => {
                let params = params.unwrap_or_else(Raw::empty_object);
                Some(adapt::with_modern_meta(&ClientIdentity::ourselves(), &params))
            }
        };
        self.peer
            .request(method, params, CallOptions::silent_for(self.silence))
            .await
            .map_err(|cause| AttemptError::Call { phase: method, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, parse};

    fn server(entry: &str) -> ServerConfig {
        let config = format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#);
        let parsed = parse(&config, "dormouse.json".as_ref(), &Environment::default()).unwrap();
        parsed.config.servers.into_iter().next().unwrap()
    }

    #[test]
    fn invalid_header_tools_are_dropped_only_for_modern_http_servers() {
        let good = concat!(
            r#"{"name":"good","inputSchema":{"properties":{"#,
            r#""a":{"type":"string","x-mcp-header":"A"}}},"n":1e2}"#
        );
        let bad = concat!(
            r#"{"name":"bad","inputSchema":{"properties":{"#,
            r#""a":{"type":"object","x-mcp-header":"A"}}}}"#
        );
        let page = |tools: &str| {
            Raw::parse(format!(r#"{{"tools":[{tools}],"nextCursor":"c","x":1e2}}"#)).unwrap()
        };
        let both = page(&format!("{good},{bad}"));
        let (http, stdio) = (server(r#"{"url": "https://x/"}"#), server(r#"{"command": "x"}"#));
        for (server, era, expected) in [
            (&http, Era::Modern, page(good)),
            (&http, Era::Legacy, both.clone()),
            (&stdio, Era::Modern, both.clone()),
        ] {
            assert_eq!(offerable(server, era, both.clone()).to_string(), expected.to_string());
        }
        let odd = Raw::parse(r#"{"tools":3}"#.to_owned()).unwrap();
        assert_eq!(offerable(&http, Era::Modern, odd.clone()), odd);
    }
}
