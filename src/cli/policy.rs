//! `dormouse policy`: show which rule decides about a call, and allow a tool.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use serde::Serialize;
use serde_json::json;

use super::{
    UsageError, arguments::PolicySubcommand, edit, settings, shared_flags::Options,
    wanted_tool::WantedTool,
};
use crate::{
    base::visible,
    config::{Config, ConfigEdit, NamePattern, ServerConfig, Verdict},
    policy::{Decision, RuleList, RuleLists, RulePlace, ToolCall},
    wire::{self, Raw},
};

pub(super) fn run(options: &Options, command: &PolicySubcommand) -> anyhow::Result<ExitCode> {
    match command {
        PolicySubcommand::Check { tool, input, json } => {
            check(options, tool, input.as_deref(), *json)
        }
        PolicySubcommand::Allow { tool, rules, dry_run } => allow(options, tool, rules, *dry_run),
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
    let input = match input {
        None => Raw::empty_object(),
        Some(text) => Raw::parse(text.to_owned())
            .map_err(|error| UsageError(format!("the tool's input is not valid JSON: {error}")))?,
    };
    let wanted = WantedTool::find(&config, tool)?;
    if wanted.definition.is_none() && NamePattern::new(&wanted.tool).is_glob() {
        let message = format!("{tool:?} is a pattern: name the tool that a call would have");
        return Err(UsageError(message).into());
    }
    let params = Raw::encode(&json!({"name": wanted.tool}));
    let params = wire::edit::set(&params, "arguments", &input);
    let lists = lists(&config, wanted.server);
    let malformed =
        |cause| anyhow!("the policy refuses this malformed call of {}: {cause}", visible(tool));
    let call = ToolCall::read(&wanted.server.name, &params).map_err(malformed)?;
    let call = call.annotated(wanted.annotations());
    let decision = wanted.decide(&lists, &call).map_err(malformed)?;
    if json {
        let commands = &config.settings.launch.commands;
        let message = decision.by.message(call.server(), call.tool(), commands);
        let checked = CheckedCall {
            tool: call.full_name(),
            verdict: decision.verdict,
            rule: decision.place().map(ToString::to_string),
            reason: message.as_deref().or(decision.reason.as_deref()),
            is_known: wanted.definition.is_some(),
        };
        outln!("{}", super::output::json(&checked)?);
    } else {
        settings::say_which(&file);
        print(&call, &lists, &decision)?;
    }
    say_if_unknown(&config, &wanted);
    Ok(ExitCode::SUCCESS)
}

fn say_if_unknown(config: &Config, wanted: &WantedTool<'_>) {
    if wanted.definition.is_none() {
        let server = &wanted.server.name;
        errln!(
            "the tool is not in the known list of {:?}, so that its annotations count as missing: \
                `{}` reads the list",
            visible(server),
            config.settings.launch.commands.refresh(server)
        );
    }
}

fn print(call: &ToolCall, lists: &RuleLists<'_>, decision: &Decision) -> anyhow::Result<()> {
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

/// Adds rules that allow a tool, before those that ask or deny.
fn allow(
    options: &Options,
    tool: &str,
    rules: &[RulePlace],
    dry_run: bool,
) -> anyhow::Result<ExitCode> {
    let file = settings::find_trusted(options)?;
    let config = settings::parse(&file, options)?;
    let wanted = WantedTool::find(&config, tool)?;
    let params = Raw::encode(&json!({"name": wanted.tool}));
    let call = ToolCall::read(&wanted.server.name, &params)?;
    let call = call.annotated(wanted.annotations());
    let name = visible(call.full_name());
    say_if_unknown(&config, &wanted);
    let decision = wanted.decide(&lists(&config, wanted.server), &call)?;
    let places: Vec<&RulePlace> =
        if rules.is_empty() { decision.places().collect() } else { rules.iter().collect() };
    if places.is_empty() {
        let commands = &config.settings.launch.commands;
        if let Some(message) = decision.by.message(call.server(), call.tool(), commands) {
            bail!("no rule can allow {name}: {message}");
        }
        outln!(
            "{name} is allowed without arguments ({}); --rule makes an exception to a rule",
            visible(&decision.by.to_string())
        );
        return Ok(ExitCode::SUCCESS);
    }
    let mut exceptions = Vec::new();
    for place in &places {
        let exception = lists_with(&config, wanted.server, place)?.exception(&call, place);
        let refused = |why| UsageError(format!("cannot allow {name}: {why}"));
        exceptions.push(exception.map_err(refused)?);
    }
    let names: Vec<String> = places.iter().map(|place| visible(&place.to_string())).collect();
    let path = file.path.clone();
    edit::make_all(options, file, &[ConfigEdit::AddRuleExceptions(exceptions)], dry_run)?;
    if !dry_run {
        outln!("allowed {name} in {}, before {}", path.display(), names.join(" and "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the rules for hosts that have chosen the profile of a rule.
fn lists_with<'a>(
    config: &'a Config,
    server: &'a ServerConfig,
    place: &RulePlace,
) -> anyhow::Result<RuleLists<'a>> {
    let RuleList::Profile(profile) = &place.list else { return Ok(lists(config, server)) };
    let profile = config.settings.profiles.named(profile)?;
    Ok(RuleLists::of(&config.settings, server, Some(&profile)))
}

/// Returns the rules for hosts that choose no profile.
fn lists<'a>(config: &'a Config, server: &'a ServerConfig) -> RuleLists<'a> {
    RuleLists::of(&config.settings, server, config.settings.profiles.default_name())
}
