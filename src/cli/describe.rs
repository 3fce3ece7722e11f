//! Descriptions of imported servers: a server with a description sleeps until an agent needs it.

use std::{collections::HashMap, time::Duration};

use serde_json::{Map, Value, json};

use super::{
    arguments::TimeLimit, ask, probe, refresh, runtime, settings, shared_flags::Options,
    state_stores::StateStores,
};
use crate::{
    apps::{ImportPlan, PlannedServer, app_file_names},
    auth::Auth,
    base::{one_line, shortened, visible},
    catalog::ServerCatalog,
    config::{ConfigFile, Startup},
};

/// Maximum length of a proposal, in characters.
const MAX_CHARS: usize = 300;
/// Maximum time for each server.
const ASK_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of tools that a proposal names.
const MAX_TOOLS: usize = 8;

/// The servers that are connected for a proposal.
#[derive(Clone, Copy)]
pub(super) enum Probing {
    None,
    /// Servers in the user's own files; anyone may have written a project's file.
    OwnFiles,
    All,
}

/// Asks for a description of each new server, or for the time of its connection. Probed servers are
/// connected, and their own words are proposed.
pub(super) fn describe(
    plan: &mut ImportPlan,
    file: &ConfigFile,
    options: &Options,
    probing: Probing,
    may_ask: bool,
) -> anyhow::Result<()> {
    let startup = options.startup.chosen();
    let new = plan.servers.iter_mut().filter(|planned| planned.outcome.is_written());
    let mut new: Vec<&mut PlannedServer> = new.collect();
    if let Some(startup) = startup {
        for planned in &mut new {
            planned.set_startup(startup);
        }
    }
    new.retain(|planned| !has_description(&planned.entry));
    if startup == Some(Startup::Eager) || new.is_empty() {
        return Ok(());
    }
    let is_probed = |planned: &PlannedServer| match probing {
        Probing::None => false,
        Probing::OwnFiles => planned.from.iter().any(|source| !source.is_project),
        Probing::All => true,
    };
    let probed: Vec<&PlannedServer> =
        new.iter().map(|planned| &**planned).filter(|p| is_probed(p)).collect();
    let stores = StateStores::of(&settings::parse(file, options)?.settings)?;
    let auth = stores.auth(Some(file), options);
    let proposals =
        if probed.is_empty() { HashMap::new() } else { proposals(&probed, file, auth, &stores)? };
    if may_ask {
        errln!(
            "A server with a description sleeps until an agent needs it. Describe what each is \
                for and when to use it;"
        );
        errln!(
            "without a description, a server is connected once to learn its tools, and then on \
                use.\n"
        );
    }
    for planned in new {
        let proposal = proposals.get(&planned.name).map(String::as_str);
        let description = if may_ask {
            ask::text(&visible(&planned.name), proposal)?
        } else {
            proposal.unwrap_or_default().to_owned()
        };
        if !description.is_empty() {
            planned.set_description(&description);
        } else if !planned.entry.contains_key("startup") {
            planned.set_startup(Startup::Hybrid);
        }
    }
    Ok(())
}

fn has_description(entry: &Map<String, Value>) -> bool {
    entry.get("description").and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
}

/// Returns proposals from the servers' own words. Servers that cannot be connected have none, which
/// is reported.
fn proposals(
    planned: &[&PlannedServer],
    file: &ConfigFile,
    auth: Auth,
    stores: &StateStores,
) -> anyhow::Result<HashMap<String, String>> {
    let entries = planned.iter().map(|planned| (planned.name.clone(), json!(planned.entry)));
    let servers = json!({"mcpServers": entries.collect::<Map<_, _>>()});
    let trial = ConfigFile::unwritten(
        file.path.with_extension("json"),
        &servers.to_string(),
        app_file_names(),
    );
    let config = trial.parse(&trial.environment())?.config;
    let all = config.servers.len();
    let tell = |seen: &probe::ProbedServer, number: usize| {
        errln!("[{number}/{all}] {}", visible(&seen.config.name));
    };
    let limit = TimeLimit { timeout: ASK_TIMEOUT };
    let probed = runtime()?.block_on(probe::probe(config, auth, None, limit, tell));
    probed.report_not_done();
    let seen = probed.seen;
    refresh::keep(stores, &seen);
    let mut proposals = HashMap::new();
    for seen in &seen {
        let name = &seen.config.name;
        if let Ok(catalog) = &seen.outcome {
            proposals.insert(name.clone(), proposal(catalog));
        } else if let Some(error) = seen.error() {
            errln!("{}: {}", visible(name), visible(&error));
        }
    }
    Ok(proposals)
}

/// Returns a description from a server's own words.
fn proposal(catalog: &ServerCatalog) -> String {
    let said = [&catalog.greeting.about, &catalog.greeting.instructions];
    let said = said.into_iter().flatten().map(|text| with_stop(&plain(text)));
    let said = said.collect::<Vec<_>>().join(" ");
    let names: Vec<&str> = catalog.tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut tools = names.iter().take(MAX_TOOLS).copied().collect::<Vec<_>>().join(", ");
    if names.len() > MAX_TOOLS {
        tools.push_str(", …");
    }
    let tools = if tools.is_empty() { tools } else { format!(" Tools: {tools}") };
    let tools = shortened(&tools, MAX_CHARS / 2);
    let said = shortened(said.trim(), MAX_CHARS - tools.chars().count());
    format!("{said}{tools}").trim().to_owned()
}

/// Returns the text on one line, without Markdown headings.
fn plain(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    one_line(&lines.collect::<Vec<_>>().join(" "))
}

fn with_stop(sentence: &str) -> String {
    let has_end = sentence.is_empty() || sentence.ends_with(['.', '!', '?', '…', ':']);
    if has_end { sentence.to_owned() } else { format!("{sentence}.") }
}
