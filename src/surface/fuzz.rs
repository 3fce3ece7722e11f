//! The laws of this layer for bytes from outside (see `crate::fuzz`).

use std::{
    collections::{BTreeSet, HashSet},
    path::Path,
    sync::{Arc, LazyLock},
};

use bytes::Bytes;

use super::{
    Action, Apps, View,
    near_misses::near_misses,
    own_tools::is_reserved,
    section::MAX_ANSWER_BYTES,
    text::{first_sentence, repeated, sanitized, without_hidden},
};
use crate::{
    base::{Choices, FuzzInput, is_hidden, is_invisible, one_line, shortened},
    catalog::{
        Inventory, Item, LoadOrigin, OfferId, Presence, ResourceRoute, ServerCatalog, ServerId,
        Snapshot, hidden_characters, read_items, tool_names::MAX_LISTED_NAME_CHARS,
    },
    config::{
        self, Environment, ListSettings, Listing, SavedScript, ServerConfig, Settings, Surface,
    },
    wire::{Raw, edit},
};

/// Two live servers, and two that can be loaded, of which one has been connected before.
const CONFIG: &str = r#"{"mcpServers": {
    "files": {"command": "x", "tools": {"delete_*": false}},
    "web-browser": {"command": "x", "description": "Opens pages & <b>more</b>"},
    "mail": {"command": "x", "description": "Sends mail", "toolsets": {
        "some": {"tools": ["*a*", "get?*"]}}},
    "unknown": {"command": "x", "description": "Was never connected"}
}}"#;

static SERVERS: LazyLock<Vec<ServerConfig>> = LazyLock::new(|| {
    let parsed = config::parse(CONFIG, Path::new("dormouse.json"), &Environment::default());
    parsed.expect("a valid config").config.servers
});

/// Lists of servers become lists, descriptions and answers that are valid, bounded and harmless.
///
/// Arguments: the settings of the view; the `params` of a `tools/call`; the instructions of the
/// servers. The rest is an object with the lists of the servers.
pub(crate) fn listings(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let mut choices = input.choices();
    let params = Raw::parse(Bytes::copy_from_slice(input.line()));
    let params = params.unwrap_or_else(|_| Raw::empty_object());
    let instructions = input.text_line();
    check_text(&instructions, choices.number());
    let Ok(lists) = Raw::parse(Bytes::copy_from_slice(input.rest())) else { return };
    let catalog = catalog(&lists, &instructions);
    catalog.tools.iter().for_each(|tool| check_text(&tool.description, 60));
    let snapshot = snapshot(settings(&mut choices), &Arc::new(catalog));
    check_merged_lists(&snapshot);
    let query = edit::get(&params, "arguments").and_then(|it| edit::get_str(&it, "query"));
    check_search(&snapshot, &query.unwrap_or_else(|| instructions.into_owned()));
    for surface in Surface::ALL {
        let apps = choices.one_of(&[None, Some(Apps { last_read: Some(ServerId(0)) })]);
        let view = View {
            snapshot: &snapshot,
            surface,
            apps,
            has_cut_results: choices.one_of(&[false, true]),
        };
        check_tools(view);
        check_call(view, &params);
    }
}

fn settings(choices: &mut Choices<'_>) -> Settings {
    let mut lists = ListSettings {
        listing: choices.one_of(&[Listing::Growing, Listing::Stable]),
        description_budget: Some(choices.one_of(&[2048, 300, 100, 16])),
        split_calls: choices.one_of(&[false, true]),
        ..ListSettings::default()
    };
    lists.scripts.runs_any = choices.one_of(&[false, true]);
    if choices.one_of(&[false, true]) {
        let description = "Sorts what came in".to_owned();
        let triage = SavedScript { description, ..SavedScript::default() };
        lists.scripts.saved.insert("triage".to_owned(), triage);
    }
    Settings { lists, ..Settings::default() }
}

fn catalog(lists: &Raw, instructions: &str) -> ServerCatalog {
    let mut catalog = ServerCatalog {
        tools: items(lists),
        resources: items(lists),
        templates: items(lists),
        prompts: items(lists),
        ..ServerCatalog::unknown()
    };
    catalog.greeting.instructions = Some(instructions.to_owned());
    catalog
}

fn items<I: Item>(lists: &Raw) -> Vec<I> {
    let listed = edit::get(lists, I::MEMBER).and_then(|list| edit::elements(&list));
    let (items, dropped) = read_items::<I>(&listed.clone().unwrap_or_default());
    assert_eq!(items.len() + dropped, listed.map_or(0, |listed| listed.len()));
    let keys: HashSet<&str> = items.iter().map(Item::key).collect();
    assert!(keys.len() == items.len() && !keys.contains(""));
    items
}

fn snapshot(settings: Settings, catalog: &Arc<ServerCatalog>) -> Snapshot {
    let snapshot = Snapshot::new(Arc::new(settings), &ServerId::number(&SERVERS));
    let expose = |at: usize| {
        let changed = BTreeSet::new();
        let _ = Inventory::of(&SERVERS[at], catalog, &changed);
        snapshot.offers[at].expose(catalog, &changed)
    };
    let live = |at, origin| Presence::Live { exposed: expose(at), origin };
    let (after, _) = snapshot.with(0, live(0, LoadOrigin::OwnAccord));
    let (after, _) = after.with(1, live(1, LoadOrigin::HostsRequest));
    let toolset = &after.offers[3];
    assert!(!toolset.id.is_whole());
    let known = (toolset.id, toolset.expose(catalog, &BTreeSet::new()));
    after.recalled(vec![(OfferId::whole(ServerId(2)), expose(2)), known])
}

/// Checks the functions that make a server's text harmless.
fn check_text(text: &str, longest: usize) {
    let clean = sanitized(text, longest);
    let is_dangerous = |c: char| matches!(c, '<' | '>') || is_invisible(c);
    assert!(!clean.contains(is_dangerous), "{clean:?}");
    let entities = ["&lt;", "&gt;", "&amp;"].map(|entity| clean.matches(entity).count());
    assert_eq!(clean.matches('&').count(), entities.iter().sum::<usize>());
    let plain = clean.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    assert!(plain.chars().count() <= longest.max(1), "{plain:?}");
    assert_eq!(one_line(&plain), plain);
    assert!(!one_line(text).contains(is_invisible));
    assert!(!without_hidden(text).contains(is_hidden));
    assert!(shortened(text, longest).chars().count() <= longest.max(1));
    assert!(text.contains(first_sentence(text)) && !first_sentence(text).contains('\n'));
    assert!(!repeated(text).contains(is_invisible));
    let near = near_misses(text, [text.to_owned(), "read_file".to_owned()].into_iter());
    assert!(near.len() <= 2);
}

/// Checks the lists that are not tools, and that their items are found.
fn check_merged_lists(snapshot: &Snapshot) {
    let prompts = snapshot.merged_lists().prompts();
    let names: HashSet<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(names.len(), prompts.len(), "two prompts have one name");
    for prompt in &prompts {
        let server = snapshot.offers[prompt.offer].server();
        let expected = Some((server, prompt.prompt.name.clone()));
        assert_eq!(snapshot.merged_lists().resolve_prompt(&prompt.name), expected);
    }
    let resources = snapshot.merged_lists().resources();
    for resource in resources.iter().chain(&snapshot.merged_lists().templates()) {
        let [uri, template] = edit::get_each(resource, ["uri", "uriTemplate"]);
        let uri = uri.or(template).and_then(|uri| uri.read::<String>().ok());
        let route = snapshot.merged_lists().route_resource(&uri.expect("an item has a URI"));
        assert!(matches!(route, ResourceRoute::Server(_)), "{resource} is not found");
    }
    snapshot.offers.iter().filter_map(|offer| offer.exposed()).for_each(|exposed| {
        let _ = hidden_characters(&exposed.catalog);
    });
}

fn check_search(snapshot: &Snapshot, query: &str) {
    const MAX_HITS: usize = 5;
    let found = snapshot.search(query, None, MAX_HITS);
    assert!(found.len() <= MAX_HITS);
    assert!(found.iter().all(|hit| hit.score.is_finite()));
    assert_eq!(snapshot.search(query, None, MAX_HITS), found);
}

/// Checks the list of tools and the instructions of a surface.
fn check_tools(view: View<'_>) {
    let budget = view.snapshot.settings.lists.description_budget.unwrap_or(usize::MAX);
    let mut names = HashSet::new();
    for tool in view.tools() {
        check_json(&tool);
        let name = edit::get_str(&tool, "name").expect("a tool has a name");
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        assert!((1..=MAX_LISTED_NAME_CHARS).contains(&name.len()), "{name:?}");
        assert!(name.bytes().all(is_allowed), "{name:?}");
        if is_reserved(&name) {
            check_description(&edit::get_str(&tool, "description").unwrap_or_default(), budget);
        }
        assert!(names.insert(name), "{tool} has the name of another tool");
    }
    check_description(&view.instructions(), budget);
}

/// Length up to which a text may be above its budget, since its first sentences are not cut.
const MAX_PREAMBLE_BYTES: usize = 400;

/// Checks a text that dormouse has composed.
fn check_description(text: &str, budget: usize) {
    let is_dangerous = |c: char| is_invisible(c) && c != '\n';
    assert!(!text.contains(is_dangerous), "{text:?}");
    assert!(text.len() <= budget.max(MAX_PREAMBLE_BYTES), "{} bytes: {text}", text.len());
    for tag in ["mcp_servers", "groups", "tools"] {
        let count = |line: &str| text.lines().filter(|other| *other == line).count();
        let counts = (count(&format!("<{tag}>")), count(&format!("</{tag}>")));
        assert!(counts.0 == counts.1 && counts.0 <= 1, "{text}");
    }
}

fn check_call(view: View<'_>, params: &Raw) {
    match view.call(params) {
        Action::Answer(answer) => check_answer(params, &answer),
        Action::Forward { server, params: forwarded, .. } => {
            check_json(&forwarded);
            let name = edit::get_str(&forwarded, "name").expect("a call has a name");
            let offer = view.snapshot.offer(OfferId::whole(server));
            let exposed = offer.and_then(|offer| offer.exposed());
            let exposed = exposed.expect("a called server is live");
            assert!(exposed.catalog.tools.iter().any(|tool| tool.name == name));
        }
        Action::Reexamine { result, .. } => check_json(&result),
        Action::Load { .. }
        | Action::Recall
        | Action::Index
        | Action::ReadResult { .. }
        | Action::RunScript(_) => {}
    }
}

/// Checks the bounds of an answer. A definition that the call names is whole, however long it is.
fn check_answer(params: &Raw, answer: &Raw) {
    check_json(answer);
    let content = edit::get(answer, "content").and_then(|content| edit::elements(&content));
    let texts = content.expect("an answer has content");
    let texts: Vec<String> =
        texts.iter().map(|text| edit::get_str(text, "text").expect("it is a text")).collect();
    let is_hidden = |c: char| is_hidden(c);
    assert!(texts.iter().all(|text| !text.contains(is_hidden)), "{texts:?}");
    let arguments = edit::get(params, "arguments");
    let names_tool = arguments.is_some_and(|it| edit::get(&it, "tool_name").is_some());
    let size: usize = texts.iter().map(String::len).sum();
    assert!(names_tool || size <= MAX_ANSWER_BYTES, "{size} bytes: {texts:?}");
}

fn check_json(raw: &Raw) {
    let parsed = Raw::parse(Bytes::copy_from_slice(raw.as_bytes()));
    assert_eq!(parsed.ok().as_ref(), Some(raw), "is not JSON");
}
