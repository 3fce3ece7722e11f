//! The key `scripts`.

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, Visitor},
    ser::SerializeMap as _,
};
use serde_json::{Map, Value};

use super::{KeyProblem, simple_name};
use crate::config::{
    key_path::keys,
    own_tool_names::{RUN_SCRIPT, is_reserved},
};

/// The separator of a server and its tool in the name of a listed tool.
const SEPARATOR: &str = "__";

/// The scripts that hosts can run. In the config: a boolean, or an object of saved scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptSettings {
    /// True if agents can run scripts of their own, by `run_script`.
    pub runs_any: bool,
    /// The scripts that are tools, by the names of the tools.
    pub saved: IndexMap<String, SavedScript>,
}

/// A script of the user, which is a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields, extend("required" = ["file", "description"]))]
pub struct SavedScript {
    /// The file with the script in JavaScript or TypeScript; a relative path starts from the
    /// directory of the config. It is read at each run.
    pub file: PathBuf,
    /// The purpose of the tool, and the tasks for which to use it.
    pub description: String,
    /// The JSON schema of the tool's arguments, which the script has as `input`. Default: any
    /// object.
    pub input: Map<String, Value>,
}

impl ScriptSettings {
    /// Has relative paths start from a directory.
    pub(in crate::config) fn start_from(&mut self, directory: &Path) {
        for script in self.saved.values_mut() {
            script.file = directory.join(&script.file);
        }
    }

    /// Returns the problems of values that have the right type, with paths from the root. `written`
    /// is the value of the key.
    pub(super) fn problems(&self, written: &Value) -> Vec<KeyProblem> {
        let mut problems = Vec::new();
        for (name, script) in &self.saved {
            if let Some(reason) = refused_name(name) {
                problems.push((keys(["scripts", name]), reason));
            }
            for key in ["file", "description"] {
                let is_blank = |text: &str| text.trim().is_empty();
                if written[name][key].as_str().is_none_or(is_blank) {
                    problems
                        .push((keys(["scripts", name]), format!("a saved script needs {key:?}")));
                }
            }
            if script.input.get("type").is_some_and(|kind| kind != "object") {
                let message = "the input of a script is an object: its \"type\" is \"object\"";
                problems.push((keys(["scripts", name, "input"]), message.to_owned()));
            }
        }
        problems
    }
}

/// Returns the reason that a saved script cannot have this name.
fn refused_name(name: &str) -> Option<String> {
    if !simple_name::is_simple(name) {
        return Some(simple_name::rule("a saved script"));
    }
    if is_reserved(name) {
        return Some(format!("{name:?} is the name of a tool of dormouse"));
    }
    let message = format!("{SEPARATOR:?} separates a server and its tool in names of tools");
    name.contains(SEPARATOR).then_some(message)
}

impl Serialize for ScriptSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.saved.is_empty() {
            return serializer.serialize_bool(self.runs_any);
        }
        let mut map = serializer.serialize_map(None)?;
        if self.runs_any {
            map.serialize_entry(RUN_SCRIPT, &true)?;
        }
        for (name, script) in &self.saved {
            map.serialize_entry(name, script)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ScriptSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SettingsVisitor)
    }
}

struct SettingsVisitor;

impl<'de> Visitor<'de> for SettingsVisitor {
    type Value = ScriptSettings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boolean or an object of saved scripts")
    }

    fn visit_bool<E: de::Error>(self, runs_any: bool) -> Result<ScriptSettings, E> {
        Ok(ScriptSettings { runs_any, ..ScriptSettings::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ScriptSettings, A::Error> {
        let mut settings = ScriptSettings::default();
        while let Some(name) = map.next_key::<String>()? {
            if name == RUN_SCRIPT {
                settings.runs_any = map.next_value()?;
            } else {
                settings.saved.insert(name, map.next_value()?);
            }
        }
        Ok(settings)
    }
}

impl JsonSchema for ScriptSettings {
    fn schema_name() -> Cow<'static, str> {
        "ScriptSettings".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let saved = generator.subschema_for::<SavedScript>();
        json_schema!({
            "type": ["boolean", "object"],
            "properties": {
                RUN_SCRIPT: {
                    "type": "boolean",
                    "description": "`true` also adds `run_script`, for scripts of agents.",
                },
            },
            "additionalProperties": saved,
        })
    }
}
