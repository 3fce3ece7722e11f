//! Translates entries that other programs have written into the keys of dormouse's config.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{
    app::TimeUnit,
    oauth_settings,
    variables::{RequiredVariable, VariableContext, VariableFindings},
};
use crate::config::{has_authorization, server_keys};

/// The entry of a server, translated into the keys of dormouse's config and its syntax for
/// variables.
#[derive(Clone, Debug, PartialEq)]
pub struct TranslatedEntry {
    pub members: Map<String, Value>,
    /// Set if the server is enabled in the original file.
    pub is_enabled: bool,
    pub required: Vec<RequiredVariable>,
    /// Differences from the original entry, for the user.
    pub notes: Vec<String>,
    /// Directory in which the app starts the server although the entry has no `cwd`.
    pub(super) implicit_cwd: Option<String>,
}

impl TranslatedEntry {
    pub(super) fn from_own_config(members: Map<String, Value>) -> Self {
        let (required, notes, implicit_cwd) = Default::default();
        Self { members, is_enabled: true, required, notes, implicit_cwd }
    }

    /// Resolves the working directory of an entry that the app starts in its project directory.
    pub(super) fn resolve_cwd(&mut self, project: &Path) {
        let cwd = self.members.get("cwd").and_then(Value::as_str).unwrap_or_default();
        if cwd.is_empty() {
            self.implicit_cwd = Some(project.to_string_lossy().into_owned());
        } else if !cwd.starts_with("${") {
            let directory = project.join(cwd).to_string_lossy().into_owned();
            self.members.insert("cwd".to_owned(), json!(directory));
        }
    }

    /// Returns the members, with `cwd` if the app starts the server in a directory that the entry
    /// does not name.
    pub(super) fn members_with_cwd(&self) -> Map<String, Value> {
        let mut members = self.members.clone();
        if let Some(directory) = &self.implicit_cwd {
            members.insert("cwd".to_owned(), json!(directory));
        }
        members
    }

    /// Translates the members of an app's entry. `timeout` is the unit of a numeric `timeout`, or
    /// `None` if that key does not limit calls.
    pub(super) fn read(
        members: Map<String, Value>,
        timeout: Option<TimeUnit>,
        variables: &VariableContext<'_>,
    ) -> Self {
        let mut findings = VariableFindings::default();
        let mut translation = EntryTranslation::default();
        for (key, mut value) in members {
            if !value.is_null() {
                // `envFile` is not imported, so the variables in it are not required.
                if key != "envFile" {
                    variables.translate(&mut value, &mut findings);
                }
                translation.add_member(&key, value, timeout);
            }
        }
        translation.resolve_conflicts();
        let EntryTranslation { entry, is_disabled, left_out, notes } = translation;
        let VariableFindings { required, notes: mut all } = findings;
        all.extend(notes);
        if !left_out.is_empty() {
            all.push(format!("ignored, not supported by dormouse: {}", left_out.join(", ")));
        }
        let mut members: Vec<(String, Value)> = entry.into_iter().collect();
        members.sort_by_key(|(key, _)| rank(key));
        let members = members.into_iter().collect();
        Self { members, is_enabled: !is_disabled, required, notes: all, implicit_cwd: None }
    }
}

/// The customary order of keys. All others follow.
const KEY_ORDER: [&str; 9] =
    ["description", "type", "command", "args", "env", "cwd", "url", "headers", "startup"];

fn rank(key: &str) -> usize {
    KEY_ORDER.iter().position(|known| *known == key).unwrap_or(KEY_ORDER.len())
}

/// An entry during its translation.
#[derive(Debug, Default)]
struct EntryTranslation {
    entry: Map<String, Value>,
    is_disabled: bool,
    /// Keys without an equivalent in dormouse's config.
    left_out: Vec<String>,
    notes: Vec<String>,
}

/// Returns whether the members are an entry of a server: whether they have a command or a URL.
pub(super) fn is_server_entry(members: &Map<String, Value>) -> bool {
    let is_there = |key: &&str| members.get(*key).is_some_and(|value| !value.is_null());
    ["command", "cmd", "url", "serverUrl", "httpUrl", "uri"].iter().any(is_there)
}

/// Keys that are left out without a note: they repeat other information or concern only the app.
const IGNORED_KEYS: [&str; 5] = ["name", "source", "bundled", "display_name", "id"];

impl EntryTranslation {
    fn add_member(&mut self, key: &str, value: Value, timeout: Option<TimeUnit>) {
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
                inner.into_iter().for_each(|(key, value)| self.add_member(&key, value, timeout));
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
                    self.set_in("headers", &name, into_text(value));
                }
            }
            ("requestOptions", Value::Object(mut options)) => {
                let headers = options.remove("headers").unwrap_or_default();
                self.add_member("headers", headers, timeout);
            }
            ("workingDirectory", directory) => self.set("cwd", directory),
            ("disabled", Value::Bool(is_disabled)) => self.is_disabled = is_disabled,
            ("enabled", Value::Bool(is_enabled)) => self.is_disabled = !is_enabled,
            ("type" | "transport" | "transportType", Value::String(kind)) => {
                self.set_type(key, &kind);
            }
            (key, value) => self.add_variable_member(key, value, timeout),
        }
    }

    /// Adds a member that refers to environment variables or holds a token.
    fn add_variable_member(&mut self, key: &str, value: Value, timeout: Option<TimeUnit>) {
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
            (key, value) => self.add_setting(key, value, timeout),
        }
    }

    /// Adds a member that selects tools, sets a timeout or configures OAuth, or that dormouse's
    /// config has under the same key.
    fn add_setting(&mut self, key: &str, value: Value, timeout: Option<TimeUnit>) {
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
                self.set_timeout("call", number.as_f64(), timeout.unwrap_or(TimeUnit::Seconds));
            }
            ("tool_timeout_sec", Value::Number(number)) => {
                self.set_timeout("call", number.as_f64(), TimeUnit::Seconds);
            }
            ("startup_timeout_sec", Value::Number(number)) => {
                self.set_timeout("load", number.as_f64(), TimeUnit::Seconds);
            }
            ("startup_timeout_ms" | "initTimeout", Value::Number(number)) => {
                self.set_timeout("load", number.as_f64(), TimeUnit::Milliseconds);
            }
            ("envFile", Value::String(path)) => {
                let note =
                    format!("the variables in {path} are not imported: add them to `env` or .env");
                self.notes.push(note);
            }
            ("oauth" | "auth", Value::Object(theirs)) => {
                let (ours, left_out) = oauth_settings::translate_oauth(theirs);
                self.left_out.extend(left_out);
                if !ours.is_empty() {
                    self.set("oauth", Value::Object(ours));
                }
            }
            ("description", Value::String(text)) if text.trim().is_empty() => {}
            (key, value) if server_keys().iter().any(|known| known == key) && key != "tools" => {
                self.set(key, value);
            }
            (key, _) if IGNORED_KEYS.contains(&key) => {}
            (key, _) => self.left_out.push(key.to_owned()),
        }
    }

    fn set_type(&mut self, key: &str, kind: &str) {
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

    fn set_timeout(&mut self, which: &str, number: Option<f64>, unit: TimeUnit) {
        let Some(number) = number.filter(|number| *number > 0.0) else { return };
        let milliseconds = if unit == TimeUnit::Seconds { number * 1000.0 } else { number };
        let text = if milliseconds % 1000.0 == 0.0 {
            format!("{}s", milliseconds / 1000.0)
        } else {
            format!("{}ms", milliseconds.round())
        };
        self.set_in("timeouts", which, json!(text));
    }

    /// Removes members that contradict each other: a server has either a URL or a command.
    fn resolve_conflicts(&mut self) {
        if self.entry.contains_key("url") {
            let headers = self.entry.get("headers").and_then(Value::as_object);
            if headers.is_some_and(|all| has_authorization(all.keys()))
                && self.entry.shift_remove("oauth").is_some()
            {
                self.notes
                    .push("\"oauth\" is ignored: the entry has an authorization header".to_owned());
            }
            for key in ["command", "args", "env", "cwd"] {
                if self
                    .entry
                    .shift_remove(key)
                    .is_some_and(|value| value != json!({}) && value != json!([]))
                {
                    self.notes.push(format!("{key:?} is ignored: the entry has a URL"));
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
            list.extend(words.into_iter().map(into_text));
        }
    }
}

/// Turns numbers and booleans into strings: arguments and headers are always text.
fn into_text(value: Value) -> Value {
    match value {
        Value::Number(_) | Value::Bool(_) => Value::String(value.to_string()),
        value => value,
    }
}
