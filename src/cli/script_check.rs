//! The problems of a script's calls, as far as the tools of its servers are known.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::script_tools::{known_tools, unknown_tools};
use crate::{
    base::one_line,
    catalog::Cache,
    config::{Config, ServerConfig},
    script::{Failure, Place, ToolUse, find_spelled_alike},
    surface::{ArgumentProblems, near_misses},
    wire::{Raw, edit},
};

/// A problem of a script.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScriptProblem {
    #[serde(flatten)]
    place: Option<Place>,
    pub(super) message: String,
    /// True if the script may run well all the same.
    #[serde(rename = "warning")]
    pub(super) is_warning: bool,
}

impl From<Failure> for ScriptProblem {
    fn from(Failure { message, place }: Failure) -> Self {
        Self { place, message, is_warning: false }
    }
}

impl ScriptProblem {
    fn at(place: Place, message: &str, is_warning: bool) -> Self {
        Self { place: Some(place), message: one_line(message), is_warning }
    }

    /// Returns the place as it follows the name of a file.
    pub(super) fn place(&self) -> String {
        self.place.map_or(String::new(), |Place { line, column }| format!(":{line}:{column}"))
    }
}

/// Returns the problems of calls.
pub(super) fn problems_of(
    config: &Config,
    cache: Option<Cache>,
    uses: &[ToolUse],
) -> Vec<ScriptProblem> {
    let checker = Checker { config, cache };
    let mut warned = HashSet::new();
    let problems = uses.iter().filter_map(|used| {
        let problem = checker.check(used).err()?;
        let is_new = !problem.is_warning || warned.insert(problem.message.clone());
        is_new.then_some(problem)
    });
    problems.collect()
}

struct Checker<'a> {
    config: &'a Config,
    cache: Option<Cache>,
}

impl Checker<'_> {
    fn check(&self, used: &ToolUse) -> Result<(), ScriptProblem> {
        let server = self.server(used)?;
        let Some(tools) = known_tools(self.cache.as_ref(), server) else {
            let message = unknown_tools(server, &self.config.settings.launch.commands);
            return Err(ScriptProblem::at(used.place, &message, true));
        };
        let names = || tools.iter().map(|tool| tool.name.as_str());
        let name = find_spelled_alike(names(), &used.tool);
        let Some(tool) = tools.iter().find(|tool| Some(tool.name.as_str()) == name) else {
            let what = format!("server {:?} has no tool {:?}", server.name, used.tool);
            let message = with_near(what, &used.tool, names());
            return Err(ScriptProblem::at(used.place, &message, false));
        };
        check_arguments(used, &tool.raw)
    }

    fn server(&self, used: &ToolUse) -> Result<&ServerConfig, ScriptProblem> {
        let names = || self.config.servers.iter().map(|server| server.name.as_str());
        let written = &used.server;
        let name = find_spelled_alike(names(), written);
        let found = self.config.servers.iter().find(|server| Some(server.name.as_str()) == name);
        let message = match found {
            Some(server) if server.enabled => return Ok(server),
            Some(server) => {
                let command = self.config.settings.launch.commands.enable(&server.name);
                format!("server {:?} is disabled: run `{command}`", server.name)
            }
            None => with_near(format!("unknown server {written:?}"), written, names()),
        };
        Err(ScriptProblem::at(used.place, &message, false))
    }
}

fn check_arguments(used: &ToolUse, definition: &Raw) -> Result<(), ScriptProblem> {
    let Some(names) = &used.arguments else { return Ok(()) };
    let given: Map<String, Value> = names.iter().map(|name| (name.clone(), Value::Null)).collect();
    let (given, schema) = (Raw::encode(&given), edit::get(definition, "inputSchema"));
    let Some(schema) = schema else { return Ok(()) };
    let Some(problems) = ArgumentProblems::of(&schema, &given) else { return Ok(()) };
    let message = format!("{}/{}: {}", used.server, used.tool, problems.lines().join("; "));
    // A tool may take arguments that its schema does not name.
    Err(ScriptProblem::at(used.place, &message, !problems.lacks_required()))
}

/// Adds the known names that are most similar to a written one.
fn with_near<'a>(what: String, written: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = near_misses(written, known.map(str::to_owned));
    if near.is_empty() { what } else { format!("{what}; did you mean {}?", near.join(", ")) }
}
