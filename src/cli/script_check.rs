//! The problems of a script's calls, as far as the tools of its servers are known.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{script_tools::known_tools, settings};
use crate::{
    base::one_line,
    catalog::Cache,
    config::{Config, ConfigFile, ServerConfig},
    script::{Failure, ToolUse, find_spelled_alike},
    surface::{ArgumentProblems, near_misses},
    wire::{Raw, edit},
};

/// A problem of a script.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScriptProblem {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    pub(super) message: String,
    /// True if the script may run well all the same.
    #[serde(rename = "warning")]
    pub(super) is_warning: bool,
}

impl From<Failure> for ScriptProblem {
    fn from(failure: Failure) -> Self {
        let (line, column) = failure.place.map(|it| (it.line, it.column)).unzip();
        Self { line, column, message: failure.message, is_warning: false }
    }
}

impl ScriptProblem {
    /// Returns the place as it follows the name of a file.
    pub(super) fn place(&self) -> String {
        let (line, column) = (self.line, self.column);
        line.zip(column).map_or(String::new(), |(line, column)| format!(":{line}:{column}"))
    }
}

/// Returns the problems of calls.
pub(super) fn problems_of(
    file: &ConfigFile,
    config: &Config,
    uses: &[ToolUse],
) -> Vec<ScriptProblem> {
    let cache = settings::storage(Some(file)).catalogs;
    let checker = Checker { config, cache };
    let mut warned = HashSet::new();
    let problems = uses.iter().filter_map(|used| {
        let Finding { message, is_warning } = checker.check(used).err()?;
        if is_warning && !warned.insert(message.clone()) {
            return None;
        }
        let (line, column) = (Some(used.place.line), Some(used.place.column));
        Some(ScriptProblem { line, column, message: one_line(&message), is_warning })
    });
    problems.collect()
}

struct Checker<'a> {
    config: &'a Config,
    cache: Option<Cache>,
}

/// A fault of a call.
struct Finding {
    message: String,
    is_warning: bool,
}

impl Finding {
    fn problem(message: String) -> Self {
        Self { message, is_warning: false }
    }
}

impl Checker<'_> {
    fn check(&self, used: &ToolUse) -> Result<(), Finding> {
        let server = self.server(&used.server)?;
        let Some(tools) = known_tools(self.cache.as_ref(), server) else {
            let command = self.config.settings.launch.commands.refresh(&server.name);
            let message =
                format!("the tools of {:?} are not known yet: run `{command}`", server.name);
            return Err(Finding { message, is_warning: true });
        };
        let names = || tools.iter().map(|tool| tool.name.as_str());
        let name = find_spelled_alike(names(), &used.tool);
        let Some(tool) = tools.iter().find(|tool| Some(tool.name.as_str()) == name) else {
            let what = format!("server {:?} has no tool {:?}", server.name, used.tool);
            return Err(Finding::problem(with_near(what, &used.tool, names())));
        };
        check_arguments(used, &tool.raw)
    }

    fn server(&self, written: &str) -> Result<&ServerConfig, Finding> {
        let names = || self.config.servers.iter().map(|server| server.name.as_str());
        let name = find_spelled_alike(names(), written);
        let found = self.config.servers.iter().find(|server| Some(server.name.as_str()) == name);
        match found {
            Some(server) if server.enabled => Ok(server),
            Some(server) => {
                let command = self.config.settings.launch.commands.enable(&server.name);
                let message = format!("server {:?} is disabled: run `{command}`", server.name);
                Err(Finding::problem(message))
            }
            None => {
                let what = format!("unknown server {written:?}");
                Err(Finding::problem(with_near(what, written, names())))
            }
        }
    }
}

fn check_arguments(used: &ToolUse, definition: &Raw) -> Result<(), Finding> {
    let Some(names) = &used.arguments else { return Ok(()) };
    let given: Map<String, Value> = names.iter().map(|name| (name.clone(), Value::Null)).collect();
    let (given, schema) = (Raw::encode(&given), edit::get(definition, "inputSchema"));
    let Some(schema) = schema else { return Ok(()) };
    let Some(problems) = ArgumentProblems::of(&schema, &given) else { return Ok(()) };
    let message = format!("{}/{}: {}", used.server, used.tool, problems.lines().join("; "));
    // A tool may take arguments that its schema does not name.
    Err(Finding { message, is_warning: !problems.lacks_required() })
}

/// Adds the known names that are most similar to a written one.
fn with_near<'a>(what: String, written: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = near_misses(written, known.map(str::to_owned));
    if near.is_empty() { what } else { format!("{what}; did you mean {}?", near.join(", ")) }
}
