//! The search over many tools, compared with a scan of all their definitions.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse::internals::{
    catalog::{Item, ServerCatalog, ServerId, Snapshot, Tool},
    config::{Environment, parse},
    protocol::{Era, Greeting},
    wire::Raw,
};
use serde_json::{Map, json};

use crate::report::median;

const SERVERS: usize = 200;
const TOOLS: usize = 25;
const QUERIES: [&str; 6] = [
    "delete the old backup",
    "create a branch for the release",
    "which invoices are overdue",
    "restart the pod that crashed",
    "rename a folder",
    "show the weather of tomorrow",
];

/// The measured times, in milliseconds.
pub struct SearchTimes {
    pub index: f64,
    pub answer: f64,
    pub scan: f64,
}

pub fn measure(rounds: usize) -> SearchTimes {
    let mut figures = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let snapshot = snapshot();
        figures[0].push(millis(|| drop(snapshot.search(QUERIES[0], None, 10))));
        for query in QUERIES {
            figures[1].push(millis(|| drop(snapshot.search(query, None, 10))));
            figures[2].push(millis(|| drop(scan(&snapshot, query))));
        }
    }
    let [index, answer, scan] = figures.map(median);
    SearchTimes { index, answer, scan }
}

fn millis(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    let took: Duration = began.elapsed();
    took.as_secs_f64() * 1e3
}

/// Returns the ten tools whose definitions contain the most words of the query.
fn scan(snapshot: &Snapshot, query: &str) -> Vec<(usize, String)> {
    let words: Vec<String> = query.split(' ').map(str::to_lowercase).collect();
    let mut found: Vec<(usize, String)> = snapshot
        .tools()
        .known_tools()
        .map(|at| {
            let (_, tool) = snapshot.tools().tool(at);
            let text = String::from_utf8_lossy(tool.raw.as_bytes()).to_lowercase();
            (words.iter().filter(|word| text.contains(word.as_str())).count(), tool.name.clone())
        })
        .filter(|(count, _)| *count > 0)
        .collect();
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    found.truncate(10);
    found
}

fn snapshot() -> Snapshot {
    let entry = json!({"command": "x", "description": "Does a certain kind of work."});
    let servers: Map<_, _> =
        (0..SERVERS).map(|number| (format!("server-{number}"), entry.clone())).collect();
    let config = json!({"mcpServers": servers}).to_string();
    let parsed = parse(&config, "bench.json".as_ref(), &Environment::default()).expect("valid");
    let config = parsed.config;
    let snapshot = Snapshot::new(Arc::default(), &ServerId::number(&config.servers));
    let known = snapshot
        .offers
        .iter()
        .enumerate()
        .map(|(at, offer)| (offer.id, offer.expose(&Arc::new(catalog(at)), &BTreeSet::new())));
    snapshot.recalled(known.collect())
}

fn catalog(server: usize) -> ServerCatalog {
    let greeting = Greeting {
        era: Era::Legacy,
        version: "2025-11-25".to_owned(),
        capabilities: Raw::empty_object(),
        instructions: None,
        about: None,
        answer: None,
    };
    let tools = (0..TOOLS).map(|number| tool(server * TOOLS + number)).collect();
    ServerCatalog { tools, ..ServerCatalog::empty(greeting) }
}

/// Creates a tool with about 1.2 kB of text, which shares as many words with other tools as real
/// tools do.
fn tool(number: usize) -> Tool {
    const VERBS: [&str; 12] = [
        "create", "delete", "list", "get", "update", "search", "restart", "rename", "show",
        "export", "merge", "schedule",
    ];
    const NOUNS: [&str; 16] = [
        "invoice",
        "branch",
        "pod",
        "folder",
        "backup",
        "release",
        "customer",
        "ticket",
        "page",
        "report",
        "image",
        "query",
        "channel",
        "calendar",
        "forecast",
        "deployment",
    ];
    let (verb, noun) = (VERBS[number % VERBS.len()], NOUNS[number / VERBS.len() % NOUNS.len()]);
    let other = NOUNS[(number / 7) % NOUNS.len()];
    let sentence = format!(
        "{verb}s one {noun} of the workspace, optionally with every {other} that belongs to it. \
         Use when somebody wants to {verb} a {noun}; not for a {other}."
    );
    let parameter = |what: &str| {
        let description = format!("The {what} of the {noun} number{}", number % 97);
        json!({"type": "string", "description": description})
    };
    let properties: Map<_, _> = ["id", "owner", "label", "reason", "before", "after"]
        .map(|name| (format!("{noun}_{name}"), parameter(name)))
        .into_iter()
        .collect();
    let definition = json!({
        "name": format!("{verb}_{noun}_{number}"),
        "description": format!("{sentence} {sentence}"),
        "inputSchema": {"type": "object", "properties": properties},
    });
    Tool::read(&Raw::encode(&definition)).expect("a tool")
}
