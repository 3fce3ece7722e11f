//! The toolsets that are proposed for servers with many tools, printed or added to the config.

use serde_json::{Map, Value, json};

use super::{Reports, toolset_proposal::propose_toolsets};
use crate::{
    base::{counted, visible},
    cli::{edit, probe::ProbedServer, shared_flags::Options},
    config::{ConfigEdit, ConfigFile, ProposedToolset, UserCommands},
};

/// Returns toolsets for a server with many tools that has none.
pub(super) fn proposal(seen: &ProbedServer) -> Vec<ProposedToolset> {
    let (Ok(catalog), true) = (&seen.outcome, seen.config.offer.extent.toolsets().is_empty())
    else {
        return Vec::new();
    };
    let tools = catalog.tools.iter().map(|tool| tool.name.as_str());
    let shown: Vec<&str> = tools.filter(|tool| seen.config.offer.allow_tool(tool)).collect();
    propose_toolsets(&shown)
}

pub(super) fn as_entry(proposed: &[ProposedToolset]) -> Map<String, Value> {
    proposed.iter().map(|toolset| (toolset.name.clone(), json!(toolset))).collect()
}

/// Prints the proposed toolsets of a server, to be pasted into its entry.
pub(super) fn print_proposal(seen: &ProbedServer, commands: &UserCommands) {
    let proposed = proposal(seen);
    if proposed.is_empty() {
        return;
    }
    let name = &seen.config.name;
    outln!("toolsets for {}, which `{}` adds:", visible(name), commands.write_toolsets(name));
    let line = |(name, toolset)| format!("    {}: {toolset}", json!(name));
    let lines: Vec<String> = as_entry(&proposed).into_iter().map(line).collect();
    outln!("  \"toolsets\": {{\n{}\n  }}", lines.join(",\n"));
}

/// Adds the proposed toolsets to the config, and to the reports.
///
/// # Errors
/// If the config is not valid with them.
pub(super) fn add_toolsets(
    options: &Options,
    file: ConfigFile,
    seen: &[ProbedServer],
    reports: &mut Reports,
) -> anyhow::Result<ConfigFile> {
    let mut after = file;
    for (seen, report) in seen.iter().zip(reports) {
        let Ok(said) = report else { continue };
        let toolsets = proposal(seen);
        if toolsets.is_empty() {
            said.push_str("; no toolsets to add");
            continue;
        }
        said.push_str(&format!("; added {}", counted(toolsets.len(), "toolset")));
        let edit = ConfigEdit::AddToolsets { server: seen.config.name.clone(), toolsets };
        match after.with(&edit) {
            Ok(divided) => after = divided,
            Err(error) => *report = Err(error.into()),
        }
    }
    edit::valid(options, after)
}
