//! Translates entries that other programs have written into the keys of dormouse's config.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{
    login,
    table::Unit,
    variables::{Findings, Meanings, Needed},
};
use crate::config::{has_authorization, server_keys};

/// The entry of a server, translated into the keys of dormouse's config and its syntax for
/// variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub members: Map<String, Value>,
    /// Set if the server is enabled in the original file.
    pub is_enabled: bool,
    pub needed: Vec<Needed>,
    /// Differences from the original entry, for the user.
    pub notes: Vec<String>,
    /// Directory in which the app starts the server although the entry has no `cwd`.
    pub(super) started_in: Option<String>,
}

impl Entry {
    pub(super) fn of_ours(members: Map<String, Value>) -> Self {
        let (needed, notes, started_in) = Default::default();
        Self { members, is_enabled: true, needed, notes, started_in }
    }

    /// Resolves the working directory of an entry that the app starts in its project directory.
    pub(super) fn begin_in(&mut self, project: &Path) {
        let own = self.members.get("cwd").and_then(Value::as_str).unwrap_or_default();
        if own.is_empty() {
            self.started_in = Some(project.to_string_lossy().into_owned());
        } else if !own.starts_with("${") {
            let directory = project.join(own).to_string_lossy().into_owned();
            self.members.insert("cwd".to_owned(), json!(directory));
        }
    }

    /// Returns the members, with `cwd` if the app starts the server in a directory that the entry
    /// does not name.
    pub(super) fn in_place(&self) -> Map<String, Value> {
        let mut members = self.members.clone();
        if let Some(directory) = &self.started_in {
            members.insert("cwd".to_owned(), json!(directory));
        }
        members
    }

    /// Translates the members of an app's entry. `timeout` is the unit of a numeric `timeout`, or
    /// `None` if that key does not limit calls.
    pub(super) fn read(
        members: Map<String, Value>,
        timeout: Option<Unit>,
        meanings: &Meanings<'_>,
    ) -> Self {
        let mut findings = Findings::default();
        let mut translation = Translation::default();
        for (key, mut value) in members {
            if !value.is_null() {
                // `envFile` is not imported, so the variables in it are not required.
                if key != "envFile" {
                    meanings.normalise(&mut value, &mut findings);
                }
                translation.take(&key, value, timeout);
            }
        }
        translation.settle();
        let Translation { entry, is_disabled, left_out, notes } = translation;
        let Findings { needed, notes: mut all } = findings;
        all.extend(notes);
        if !left_out.is_empty() {
            all.push(format!("left out, as it means nothing here: {}", left_out.join(", ")));
        }
        let mut members: Vec<(String, Value)> = entry.into_iter().collect();
        members.sort_by_key(|(key, _)| position(key));
        let members = members.into_iter().collect();
        Self { members, is_enabled: !is_disabled, needed, notes: all, started_in: None }
    }
}

/// The customary order of keys. All others follow.
const ORDER: [&str; 9] =
    ["description", "type", "command", "args", "env", "cwd", "url", "headers", "startup"];

fn position(key: &str) -> usize {
    ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len())
}

/// An entry during its translation.
#[derive(Debug, Default)]
struct Translation {
    entry: Map<String, Value>,
    is_disabled: bool,
    /// Keys without an equivalent in dormouse's config.
    left_out: Vec<String>,
    notes: Vec<String>,
}

/// Returns whether the members are an entry of a server: whether they have a command or a URL.
pub(super) fn is_entry(members: &Map<String, Value>) -> bool {
    let is_there = |key: &&str| members.get(*key).is_some_and(|value| !value.is_null());
    ["command", "cmd", "url", "serverUrl", "httpUrl", "uri"].iter().any(is_there)
}

/// Keys that are left out without a note: they repeat other information or concern only the app.
const ALREADY_SAID: [&str; 5] = ["name", "source", "bundled", "display_name", "id"];

impl Translation {
    fn take(&mut self, key: &str, value: Value, timeout: Option<Unit>) {
        match (key, value) {
            ("command" | "cmd", Value::Array(words)) => {
                let mut words = words.into_iter();
                self.set("command", words.next().unwrap_or_default());
                // The arguments in `command` precede those in `args`, in whichever order the two
                // keys appear.
                let later = self.entry.shift_remove("args");
                self.extend("args", words.collect());
                if let Some(Value::Array(later)) = later {
                    self.extend("args", later);
                }
            }
            // An older format of Zed.
            ("command", Value::Object(mut inner)) => {
                let path = inner.remove("path").unwrap_or_default();
                self.set("command", path);
                inner.into_iter().for_each(|(key, value)| self.take(&key, value, timeout));
            }
            ("command" | "cmd", command) => self.set("command", command),
            ("args", Value::Array(words)) => self.extend("args", words),
            // `httpUrl` is for streamable HTTP and takes precedence over `url`.
            ("httpUrl" | "serverUrl" | "uri", url) => self.set("url", url),
            ("url", url) if !self.entry.contains_key("url") => self.set("url", url),
            ("url", _) => {}
            ("env" | "environment" | "envs", Value::Object(variables)) => {
                variables.into_iter().for_each(|(name, value)| self.set_in("env", &name, value));
            }
            ("headers" | "http_headers", Value::Object(headers)) => {
                for (name, value) in headers {
                    self.set_in("headers", &name, as_text(value));
                }
            }
            ("requestOptions", Value::Object(mut options)) => {
                let headers = options.remove("headers").unwrap_or_default();
                self.take("headers", headers, timeout);
            }
            ("workingDirectory", directory) => self.set("cwd", directory),
            ("disabled", Value::Bool(is_disabled)) => self.is_disabled = is_disabled,
            ("enabled", Value::Bool(is_enabled)) => self.is_disabled = !is_enabled,
            ("type" | "transport" | "transportType", Value::String(kind)) => self.kind(key, &kind),
            (key, value) => self.take_variables(key, value, timeout),
        }
    }

    /// Adds a member that refers to environment variables or holds a token.
    fn take_variables(&mut self, key: &str, value: Value, timeout: Option<Unit>) {
        match (key, value) {
            ("env_vars" | "env_keys", Value::Array(names)) => {
                for name in names {
                    let name = name["name"].as_str().or(name.as_str()).unwrap_or_default();
                    // The app passes these variables on if they are set, and does not require them.
                    self.set_in("env", name, json!(format!("${{{name}:-}}")));
                }
            }
            ("env_http_headers", Value::Object(headers)) => {
                for (header, name) in headers {
                    let name = name.as_str().unwrap_or_default();
                    self.set_in("headers", &header, json!(format!("${{{name}}}")));
                }
            }
            ("bearer_token_env_var", Value::String(name)) => {
                self.set_in("headers", "Authorization", json!(format!("Bearer ${{{name}}}")));
            }
            ("apiKey", Value::String(token)) => {
                self.set_in("headers", "Authorization", json!(format!("Bearer {token}")));
            }
            (key, value) => self.take_choices(key, value, timeout),
        }
    }

    /// Adds a member that selects tools, sets a timeout or configures OAuth, or that dormouse's
    /// config has under the same key.
    fn take_choices(&mut self, key: &str, value: Value, timeout: Option<Unit>) {
        match (key, value) {
            (
                "tools" | "includeTools" | "enabled_tools" | "available_tools",
                Value::Array(names),
            ) => {
                let is_all = names.is_empty() || names.iter().any(|name| name == "*");
                if !is_all {
                    self.set_in("tools", "*", json!(false));
                    names.iter().filter_map(Value::as_str).for_each(|name| {
                        // In Gemini CLI, arguments may follow the name of a tool.
                        let name = name.split('(').next().unwrap_or(name);
                        self.set_in("tools", name, json!(true));
                    });
                }
            }
            ("excludeTools" | "disabled_tools" | "disabledTools", Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).for_each(|name| {
                    self.set_in("tools", name, json!(false));
                });
            }
            // Other objects under `tools` hold permissions of other programs.
            ("tools", Value::Object(tools))
                if tools.values().all(|tool| tool.is_boolean() || tool["enabled"].is_boolean()) =>
            {
                self.set("tools", Value::Object(tools));
            }
            ("timeout", Value::Number(number)) if timeout.is_some() => {
                self.deadline("call", number.as_f64(), timeout.unwrap_or(Unit::Seconds));
            }
            ("tool_timeout_sec", Value::Number(number)) => {
                self.deadline("call", number.as_f64(), Unit::Seconds);
            }
            ("startup_timeout_sec", Value::Number(number)) => {
                self.deadline("load", number.as_f64(), Unit::Seconds);
            }
            ("startup_timeout_ms" | "initTimeout", Value::Number(number)) => {
                self.deadline("load", number.as_f64(), Unit::Milliseconds);
            }
            ("envFile", Value::String(path)) => {
                let note = format!(
                    "the variables in {path} are not taken along: put them into `env` or .env"
                );
                self.notes.push(note);
            }
            ("oauth" | "auth", Value::Object(theirs)) => {
                let (ours, left_out) = login::oauth(theirs);
                self.left_out.extend(left_out);
                if !ours.is_empty() {
                    self.set("oauth", Value::Object(ours));
                }
            }
            ("description", Value::String(text)) if text.trim().is_empty() => {}
            (key, value) if server_keys().iter().any(|known| known == key) && key != "tools" => {
                self.set(key, value);
            }
            (key, _) if ALREADY_SAID.contains(&key) => {}
            (key, _) => self.left_out.push(key.to_owned()),
        }
    }

    fn kind(&mut self, key: &str, kind: &str) {
        let ours = match kind.to_lowercase().replace(['-', '_'], "").as_str() {
            "http" | "streamablehttp" => "http",
            "sse" => "sse",
            // `command` or `url` already implies these types.
            "stdio" | "local" | "remote" => return,
            _ => {
                self.left_out.push(format!("{key} {kind:?}"));
                return;
            }
        };
        self.set("type", json!(ours));
    }

    fn deadline(&mut self, which: &str, number: Option<f64>, unit: Unit) {
        let Some(number) = number.filter(|number| *number > 0.0) else { return };
        let milliseconds = if unit == Unit::Seconds { number * 1000.0 } else { number };
        let text = if milliseconds % 1000.0 == 0.0 {
            format!("{}s", milliseconds / 1000.0)
        } else {
            format!("{}ms", milliseconds.round())
        };
        self.set_in("timeouts", which, json!(text));
    }

    /// Removes members that contradict each other: a server has either a URL or a command.
    fn settle(&mut self) {
        if self.entry.contains_key("url") {
            let headers = self.entry.get("headers").and_then(Value::as_object);
            if headers.is_some_and(|all| has_authorization(all.keys()))
                && self.entry.shift_remove("oauth").is_some()
            {
                self.notes.push("\"oauth\" is left out: it has a header for that".to_owned());
            }
            for key in ["command", "args", "env", "cwd"] {
                if self
                    .entry
                    .shift_remove(key)
                    .is_some_and(|value| value != json!({}) && value != json!([]))
                {
                    self.notes.push(format!("{key:?} is left out: it has a URL"));
                }
            }
        } else {
            self.entry.shift_remove("headers");
            self.entry.shift_remove("oauth");
            self.entry.shift_remove("type");
        }
    }

    fn set(&mut self, key: &str, value: Value) {
        self.entry.insert(key.to_owned(), value);
    }

    fn set_in(&mut self, key: &str, name: &str, value: Value) {
        let members = self.entry.entry(key).or_insert_with(|| json!({}));
        // The check of the whole entry reports a value that is not a mapping.
        if let Some(members) = members.as_object_mut()
            && !name.is_empty()
            && !value.is_null()
        {
            members.insert(name.to_owned(), value);
        }
    }

    fn extend(&mut self, key: &str, words: Vec<Value>) {
        let list = self.entry.entry(key).or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.extend(words.into_iter().map(as_text));
        }
    }
}

/// Turns numbers and booleans into strings: arguments and headers are always text.
fn as_text(value: Value) -> Value {
    match value {
        Value::Number(_) | Value::Bool(_) => Value::String(value.to_string()),
        value => value,
    }
}
