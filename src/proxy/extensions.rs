//! Methods of extensions that dormouse does not know (SEP-2133), each routed to the server that it
//! concerns.

use std::{collections::HashSet, sync::Arc};

use super::{
    Caller, Fleet,
    calls::{self, Call},
    for_log::for_log,
    resources, tasks,
};
use crate::{
    catalog::{ResourceRoute, ServerId, ToolResolution},
    protocol::{adapt, error, extension, has_cursor, method, next_cursor},
    wire::{Outcome, Raw, edit},
};

/// Maximum number of pages of one server's list.
const MAX_PAGES: usize = 100;
/// Maximum size of one server's list, in bytes.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

/// Answers a method that is not of the protocol itself. A list is that of all servers with the
/// extension; any other request goes to the server of the resource, task or tool that it names, or
/// to the only server with the extension.
pub(super) async fn call_extension(
    fleet: &Fleet,
    caller: &Caller,
    method: &str,
    params: Option<Raw>,
) -> Outcome {
    if extension::has_method(extension::TASKS, method) {
        // Task methods of the caller's era are answered by `proxy::tasks`.
        return Err(error::method_not_found(method));
    }
    let given = params.clone().unwrap_or_else(Raw::empty_object);
    let having = with_extension(fleet, caller, method);
    if let Some(member) = method.strip_suffix("/list")
        && (!having.is_empty() || extension::has_method(extension::SKILLS, method))
    {
        return list_extension(fleet, caller, &having, (method, member), given).await;
    }
    if edit::get_str(&given, "taskId").is_some() && !having.is_empty() {
        return tasks::handle_task(fleet, caller, method, given).await;
    }
    if let Some(uri) = edit::get_str(&given, "uri") {
        return call_about_resource(fleet, caller, &having, method, (&uri, given)).await;
    }
    if let Some((server, params)) = about_tool(fleet, caller, &having, &given) {
        return calls::answer(fleet, Call::new(server, caller, method, Some(params))).await;
    }
    match having.as_slice() {
        [server] => calls::answer(fleet, Call::new(*server, caller, method, params)).await,
        _ => Err(no_such_method(fleet, method, &having)),
    }
}

/// Returns the live servers that declare the extension of a method; if none does, the only server
/// that declares an unknown extension.
fn with_extension(fleet: &Fleet, caller: &Caller, method: &str) -> Vec<ServerId> {
    let snapshot = fleet.board.snapshot_for(&caller.viewer());
    let declaring: Vec<(ServerId, Vec<String>)> = snapshot
        .live()
        .map(|(_, view, exposed)| {
            (view.server(), extension::declared(&exposed.catalog.greeting.capabilities))
        })
        .collect();
    let having = |is_meant: &dyn Fn(&String) -> bool| -> Vec<ServerId> {
        let all = declaring.iter().filter(|(_, names)| names.iter().any(is_meant));
        let mut servers: Vec<ServerId> = all.map(|(server, _)| *server).collect();
        // A server may have several offers.
        servers.dedup();
        servers
    };
    // `resources/directory/read` belongs to the extension for skills.
    let is_directory = method == method::RESOURCES_DIRECTORY_READ;
    let named = having(&|name| {
        extension::has_method(name, method) || is_directory && name == extension::SKILLS
    });
    if !named.is_empty() {
        return named;
    }
    let known = [extension::TASKS, extension::UI, extension::SKILLS];
    let others = having(&|name| !known.contains(&name.as_str()));
    if others.len() == 1 { others } else { Vec::new() }
}

/// Lists several servers as one. Of entries with the same URI the first server's is listed.
async fn list_extension(
    fleet: &Fleet,
    caller: &Caller,
    having: &[ServerId],
    (method, member): (&str, &str),
    params: Raw,
) -> Outcome {
    if has_cursor(&params) {
        return Err(error::invalid_params("unknown cursor: lists of dormouse have only one page"));
    }
    let lists = having
        .iter()
        .map(|server| listing_of(fleet, caller, *server, (method, member), params.clone()));
    let lists = futures_util::future::join_all(lists).await;
    let mut taken = HashSet::new();
    let mut items = Vec::new();
    for (server, listed) in having.iter().zip(lists) {
        for item in listed.iter() {
            match edit::get_str(item, "uri") {
                Some(uri) if !taken.insert(uri.clone()) => {
                    let server = &fleet.servers.config(*server).name;
                    tracing::warn!(
                        server,
                        uri,
                        "skipped an entry whose URI another server also lists"
                    );
                }
                _ => items.push(item.clone()),
            }
        }
    }
    let result = edit::set(&Raw::empty_object(), member, &Raw::array(&items));
    Ok(adapt::own_result(method, caller.client.era, result))
}

/// Returns the list of one server. A sleeping server is not woken if it has listed before, and a
/// failing server keeps its last list.
async fn listing_of(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    (method, member): (&str, &str),
    params: Raw,
) -> Arc<Vec<Raw>> {
    let known = fleet.extensions.lists.get(server, method);
    let upstream = fleet.servers.existing(fleet.instance(server, caller));
    let is_awake = upstream.is_some_and(|upstream| upstream.awake().is_some());
    if let Some(known) = known.clone().filter(|_| !is_awake) {
        return known;
    }
    let limit = fleet.servers.config(server).settings.timeouts.request;
    let pages = pages(fleet, caller, server, (method, member), params);
    let pages = async {
        if limit.is_zero() {
            return pages.await;
        }
        let late = || Err(format!("no complete list within {limit:?}"));
        tokio::time::timeout(limit, pages).await.unwrap_or_else(|_| late())
    };
    match pages.await {
        Ok(items) => {
            let items = Arc::new(items);
            fleet.extensions.lists.keep(server, method, &items);
            items
        }
        Err(why) => {
            let config = fleet.servers.config(server);
            let why = for_log(&why, &[&config]);
            let method = for_log(method, &[]);
            tracing::warn!(server = config.name, why, method, "cannot read a list");
            known.unwrap_or_default()
        }
    }
}

/// Reads all pages of one server's list.
///
/// # Errors
/// A sentence, if the server cannot be reached, refuses, or does not end its list.
async fn pages(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    (method, member): (&str, &str),
    mut params: Raw,
) -> Result<Vec<Raw>, String> {
    let mut items = Vec::new();
    let mut bytes = 0;
    for _ in 0..MAX_PAGES {
        let call = Call::new(server, caller, method, Some(params.clone()));
        let page = calls::run(fleet, call).await.map_err(|error| error.to_string())?;
        let page = page.map_err(|refusal| error::message(&refusal))?;
        bytes += page.len();
        if bytes > MAX_LIST_BYTES {
            return Err(format!("the list has more than {MAX_LIST_BYTES} bytes"));
        }
        let list = edit::get(&page, member).and_then(|list| edit::elements(&list));
        let list = list.ok_or_else(|| format!("the result has no array {member:?}"))?;
        items.extend(list.iter().map(Raw::detached));
        match next_cursor(&page) {
            Some(cursor) => params = edit::set(&params, "cursor", &cursor),
            None => return Ok(items),
        }
    }
    Err(format!("the list has more than {MAX_PAGES} pages"))
}

/// Sends a request about a resource to the server that lists it, or to the awake servers with the
/// extension in turn.
async fn call_about_resource(
    fleet: &Fleet,
    caller: &Caller,
    having: &[ServerId],
    method: &str,
    (uri, params): (&str, Raw),
) -> Outcome {
    if let ResourceRoute::Server(server) = resources::route_resource(fleet, caller, uri) {
        return calls::answer(fleet, Call::new(server, caller, method, Some(params))).await;
    }
    match having {
        [] => Err(no_such_method(fleet, method, having)),
        [server] => calls::answer(fleet, Call::new(*server, caller, method, Some(params))).await,
        several => {
            let is_asked = |server| several.contains(&server);
            resources::ask_for_unlisted(fleet, caller, (method, uri), &params, is_asked).await
        }
    }
}

/// Returns the server of the tool that a request names, and the `params` with the tool's own name.
fn about_tool(
    fleet: &Fleet,
    caller: &Caller,
    having: &[ServerId],
    params: &Raw,
) -> Option<(ServerId, Raw)> {
    let name = edit::get_str(params, "name")?;
    let snapshot = fleet.board.snapshot_for(&caller.viewer());
    let ToolResolution::Tool(at) = snapshot.tools().resolve_tool(&name) else { return None };
    let (view, tool) = snapshot.tools().tool(at);
    let params = edit::set(params, "name", &Raw::encode(&tool.name));
    having.contains(&view.server()).then_some((view.server(), params))
}

fn no_such_method(fleet: &Fleet, method: &str, having: &[ServerId]) -> Raw {
    if having.is_empty() {
        return error::method_not_found(method);
    }
    let names: Vec<String> = having
        .iter()
        .map(|server| format!("/servers/{}/mcp", fleet.servers.config(*server).name))
        .collect();
    error::method_not_found(&format!(
        "{method} does not name one of several servers; each has its own endpoint over HTTP: {}",
        names.join(", ")
    ))
}
