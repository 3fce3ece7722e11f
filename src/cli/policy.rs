//! `dormouse policy`: show which rule decides about a call, and allow a tool.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    UsageError, arguments::PolicySubcommand, edit, served_fleet::rule_edit, settings,
    shared_flags::Options,
};
use crate::{
    base::visible,
    config::{Config, ConfigFile, ServerConfig, Verdict},
    policy::{Decision, RuleLists, ToolCall},
    proxy::RuleAddition,
    wire::Raw,
};

pub(super) fn run(options: &Options, command: &PolicySubcommand) -> anyhow::Result<ExitCode> {
    match command {
        PolicySubcommand::Check { tool, input, json } => {
            check(options, tool, input.as_deref(), *json)
        }
        PolicySubcommand::Allow { tool, dry_run } => allow(options, tool, *dry_run),
    }
}

/// The verdict on a call, in `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckedCall<'a> {
    /// `server/tool`
    tool: &'a str,
    verdict: Verdict,
    /// The place of the rule that decides; `null` if no rule matches.
    rule: Option<String>,
    reason: Option<&'a str>,
    /// True if the definition of the tool is known, with its annotations.
    is_known: bool,
}

fn check(
    options: &Options,
    tool: &str,
    input: Option<&str>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = settings::parse(&file, options)?;
    let input: Value = match input {
        None => json!({}),
        Some(text) => serde_json::from_str(text)
            .map_err(|error| UsageError(format!("the tool's input is not valid JSON: {error}")))?,
    };
    let wanted = WantedTool::find(&file, &config, tool)?;
    let params = Raw::encode(&json!({"name": wanted.tool, "arguments": input}));
    let call = ToolCall::read(&wanted.server.name, &params, &wanted.definition)?;
    let lists = lists(&config, wanted.server);
    let decision = lists.decide(&call);
    if json {
        let checked = CheckedCall {
            tool: call.full_name(),
            verdict: decision.verdict,
            rule: decision.place().map(ToString::to_string),
            reason: decision.reason.as_deref(),
            is_known: wanted.is_known,
        };
        outln!("{}", super::output::json(&checked)?);
    } else {
        settings::say_which(&file);
        print(&call, &lists, &decision)?;
    }
    if !wanted.is_known {
        let server = visible(&wanted.server.name);
        errln!(
            "the tool is not in the known list of {server:?}, so that its annotations count as \
                missing: `dormouse refresh {server}` reads the list"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn print(call: &ToolCall<'_>, lists: &RuleLists<'_>, decision: &Decision) -> anyhow::Result<()> {
    let tool = visible(call.full_name());
    let verdict = match decision.verdict {
        Verdict::Allow => "allowed",
        Verdict::Ask => "the user is asked",
        Verdict::Deny => "denied",
    };
    outln!("{tool}: {verdict} ({})", visible(&decision.by.to_string()));
    if let Some(rule) = decision.place().and_then(|place| lists.rule(place)) {
        outln!("  {}", visible(&serde_json::to_string(rule)?));
    }
    Ok(())
}

/// Adds a rule that allows a tool, before the one that asks or denies.
fn allow(options: &Options, tool: &str, dry_run: bool) -> anyhow::Result<ExitCode> {
    let file = settings::find_trusted(options)?;
    let config = settings::parse(&file, options)?;
    let wanted = WantedTool::find(&file, &config, tool)?;
    let params = Raw::encode(&json!({"name": wanted.tool}));
    let call = ToolCall::read(&wanted.server.name, &params, &wanted.definition)?;
    let lists = lists(&config, wanted.server);
    let decision = lists.decide(&call);
    let name = visible(call.full_name());
    if decision.verdict == Verdict::Allow {
        outln!("{name} is allowed ({})", visible(&decision.by.to_string()));
        return Ok(ExitCode::SUCCESS);
    }
    let Some(place) = decision.place() else { bail!("{name} is denied by {}", decision.by) };
    let before = lists.rule(place).context("the rule is not in the config")?.clone();
    let Some(rule) = call.allowing(&place.list, &before) else {
        bail!("a rule for {name} would match other tools too: edit {place} by hand");
    };
    let addition = RuleAddition { list: place.list.clone(), rule, before };
    let path = file.path.clone();
    edit::make_all(options, file, &[rule_edit(addition)], dry_run)?;
    if !dry_run {
        outln!("allowed {name} in {}, before {place}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the rules for hosts that choose no profile.
fn lists<'a>(config: &'a Config, server: &'a ServerConfig) -> RuleLists<'a> {
    RuleLists::of(&config.settings, server, config.settings.profiles.default_name())
}

/// A tool that a command names.
struct WantedTool<'a> {
    server: &'a ServerConfig,
    tool: String,
    /// The last known definition; an empty object if there is none.
    definition: Raw,
    is_known: bool,
}

impl<'a> WantedTool<'a> {
    /// Finds `server/tool` or `server__tool`. The longest name of a server wins, and a tool whose
    /// definition is known.
    fn find(file: &ConfigFile, config: &'a Config, written: &str) -> anyhow::Result<Self> {
        let cache = settings::storage(Some(file)).catalogs;
        let mut candidates: Vec<(&ServerConfig, &str)> = config
            .servers
            .iter()
            .filter_map(|server| {
                let rest = written.strip_prefix(server.name.as_str())?;
                Some((server, rest.strip_prefix('/').or_else(|| rest.strip_prefix("__"))?))
            })
            .filter(|(_, tool)| !tool.is_empty())
            .collect();
        candidates.sort_by_key(|(_, tool)| tool.len());
        let known = candidates.iter().find_map(|(server, tool)| {
            let (record, _) = cache.as_ref()?.last(server)?;
            let known = record.catalog.tools.iter().find(|known| known.name == *tool)?;
            Some((*server, *tool, known.raw.clone()))
        });
        let is_known = known.is_some();
        let found = known.or_else(|| {
            candidates.first().map(|(server, tool)| (*server, *tool, Raw::empty_object()))
        });
        let Some((server, tool, definition)) = found else {
            let message = format!("{written:?} names no server: write SERVER/TOOL");
            return Err(UsageError(message).into());
        };
        Ok(Self { server, tool: tool.to_owned(), definition, is_known })
    }
}
