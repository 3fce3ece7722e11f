//! The scripts that the user has saved, as tools.

use serde_json::json;

use super::{
    Action, View,
    action::failure,
    argument_problems::ArgumentProblems,
    wanted_script::{ScriptSource, WantedScript},
};
use crate::{
    config::SavedScript,
    wire::{Raw, edit},
};

/// Returns the definitions of the saved scripts.
pub(super) fn listed(view: View<'_>) -> impl Iterator<Item = Raw> {
    // The tools in front of one server are those of the server.
    let is_listed = view.snapshot.sole.is_none();
    let all = view.snapshot.settings.lists.scripts.saved.iter().filter(move |_| is_listed);
    all.map(|(name, script)| {
        let definition = json!({"name": name, "description": script.description});
        edit::set(&Raw::encode(&definition), "inputSchema", &input_schema(script))
    })
}

fn input_schema(script: &SavedScript) -> Raw {
    let written = Raw::encode(&script.input);
    let is_typed = script.input.contains_key("type");
    if is_typed { written } else { edit::set(&written, "type", &Raw::encode("object")) }
}

/// Handles a call of the saved script of this name; `None` if there is none.
pub(super) fn run(view: View<'_>, name: &str, arguments: &Raw) -> Option<Action> {
    let script = view.snapshot.settings.lists.scripts.saved.get(name)?;
    if view.snapshot.sole.is_some() {
        return None;
    }
    if !arguments.is_object() {
        return Some(failure(format!("the arguments of {name} are an object")));
    }
    let problems = ArgumentProblems::of(&input_schema(script), arguments);
    if let Some(problems) = problems.filter(ArgumentProblems::lacks_required) {
        let lines = problems.lines().join("\n");
        return Some(failure(format!("the arguments of {name} do not fit its schema\n{lines}")));
    }
    Some(Action::RunScript(Box::new(WantedScript {
        name: name.to_owned(),
        source: ScriptSource::File(script.file.clone()),
        input: arguments.clone(),
    })))
}
