//! What imported servers are for: a server with a description sleeps until an agent asks for it.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{arguments::Options, ask, probe, refresh, runtime};
use crate::{
    catalog::ServerCatalog,
    config::{ConfigFile, Startup, visible},
    hosts::{Plan, Planned},
    surface::{one_line, shortened},
};

/// In characters.
const LONGEST: usize = 300;
/// Of the tools that a proposal names.
const MOST_TOOLS: usize = 8;

/// Gives each new server a description, or says when it is to be connected instead. With `probing` the servers are
/// connected and say themselves what they are.
pub(super) fn describe(
    plan: &mut Plan,
    file: &ConfigFile,
    options: &Options,
    probing: bool,
    may_ask: bool,
) -> anyhow::Result<()> {
    let startup = options.startup.chosen();
    let new = plan.servers.iter_mut().filter(|planned| planned.outcome.is_written());
    let mut new: Vec<&mut Planned> = new.collect();
    if let Some(startup) = startup {
        for planned in &mut new {
            planned.set_startup(startup);
        }
    }
    new.retain(|planned| !has_description(&planned.entry));
    if startup == Some(Startup::Eager) || new.is_empty() {
        return Ok(());
    }
    let proposals = if probing { proposals(&new, file)? } else { HashMap::new() };
    if may_ask {
        errln!(
            "A server with a description sleeps until an agent asks for it. Say what each is for, and when to use it;"
        );
        errln!(
            "without a description it is connected once, to learn what it has, and then on use.\n"
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
            planned.describe(&description);
        } else if !planned.entry.contains_key("startup") {
            planned.set_startup(Startup::Hybrid);
        }
    }
    Ok(())
}

fn has_description(entry: &Map<String, Value>) -> bool {
    entry.get("description").and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
}

/// What the servers say of themselves; those that cannot be connected say nothing, and that is noted.
fn proposals(
    planned: &[&mut Planned],
    file: &ConfigFile,
) -> anyhow::Result<HashMap<String, String>> {
    let entries = planned.iter().map(|planned| (planned.name.clone(), json!(planned.entry)));
    let servers = json!({"mcpServers": entries.collect::<Map<_, _>>()});
    let trial = ConfigFile::unwritten(file.path.with_extension("json"), &servers.to_string());
    let seen = runtime()?.block_on(probe::probe(trial.parse(&trial.environment())?));
    refresh::keep(file, &seen);
    let mut proposals = HashMap::new();
    for probe::Seen { config, outcome, .. } in seen {
        match outcome {
            Ok(catalog) => drop(proposals.insert(config.name.clone(), proposal(&catalog))),
            Err(error) => errln!("{}: {}", visible(&config.name), visible(&error.to_string())),
        }
    }
    Ok(proposals)
}

/// A description made of a server's own words.
fn proposal(catalog: &ServerCatalog) -> String {
    let said = [&catalog.greeting.about, &catalog.greeting.instructions];
    let said = said.into_iter().flatten().map(|text| with_stop(&plain(text)));
    let said = said.collect::<Vec<_>>().join(" ");
    let names: Vec<&str> = catalog.tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut tools = names.iter().take(MOST_TOOLS).copied().collect::<Vec<_>>().join(", ");
    if names.len() > MOST_TOOLS {
        tools.push_str(", …");
    }
    let tools = if tools.is_empty() { tools } else { format!(" Tools: {tools}") };
    let tools = shortened(&tools, LONGEST / 2);
    let said = shortened(said.trim(), LONGEST - tools.chars().count());
    format!("{said}{tools}").trim().to_owned()
}

/// On one line, without headings of Markdown.
fn plain(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    one_line(&lines.collect::<Vec<_>>().join(" "))
}

fn with_stop(sentence: &str) -> String {
    let has_end = sentence.is_empty() || sentence.ends_with(['.', '!', '?', '…', ':']);
    if has_end { sentence.to_owned() } else { format!("{sentence}.") }
}
