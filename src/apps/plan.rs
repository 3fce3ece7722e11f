//! Plans an import: each server that was found is added once, under one name.

use serde_json::{Map, Value, json};

use super::{
    entry::TranslatedEntry,
    found_server::{FoundEntry, FoundServer, ServerSource},
    variables::RequiredVariable,
};
use crate::config::{Environment, Startup, check_entry};

/// The servers that an import would add and those that it would skip.
#[derive(Debug, Default)]
pub(crate) struct ImportPlan {
    pub servers: Vec<PlannedServer>,
    pub skipped: Vec<SkippedServer>,
}

/// A server that is not imported, with the reason.
#[derive(Debug)]
pub(crate) struct SkippedServer {
    pub name: String,
    pub source: ServerSource,
    pub why: String,
}

/// The servers of the config that receives the import.
struct ExistingServers<'a> {
    existing: &'a Map<String, Value>,
    environment: &'a Environment,
    force: bool,
}

impl ExistingServers<'_> {
    /// Returns the name under which the config already has the server. `bare` is the identity of
    /// the entry without the directory in which the app starts it.
    fn existing_name(&self, entry: &TranslatedEntry, bare: &Value) -> Option<&str> {
        let members_with_cwd = server_identity(&entry.members_with_cwd(), self.environment);
        let is_same = |other: &Value| {
            let other = other.as_object().map(|other| server_identity(other, self.environment));
            other.is_some_and(|other| other == *bare || other == members_with_cwd)
        };
        self.existing.iter().find(|(_, other)| is_same(other)).map(|(name, _)| name.as_str())
    }

    /// Returns the outcome for a server that the config does not have.
    fn outcome(&self, name: &str) -> PlannedOutcome {
        if !self.existing.contains_key(name) {
            PlannedOutcome::Added
        } else if self.force {
            PlannedOutcome::Replaced
        } else {
            PlannedOutcome::NameTaken
        }
    }
}

/// A server that was found, possibly in several files.
#[derive(Clone, Debug)]
pub(crate) struct PlannedServer {
    pub name: String,
    /// The entry in the keys of dormouse's config.
    pub entry: Map<String, Value>,
    pub from: Vec<ServerSource>,
    pub outcome: PlannedOutcome,
    pub required: Vec<RequiredVariable>,
    pub notes: Vec<String>,
    /// The [`server_identity`] of the entry.
    identity: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlannedOutcome {
    Added,
    /// The server replaces another server of the same name.
    Replaced,
    /// The config already has the server, possibly under another name.
    AlreadyThere,
    /// The config has another server of the same name.
    NameTaken,
}

impl PlannedServer {
    /// Sets the description as the first member of the entry.
    pub(crate) fn set_description(&mut self, description: &str) {
        self.entry.shift_insert(0, "description".to_owned(), json!(description));
    }

    pub(crate) fn set_startup(&mut self, startup: Startup) {
        self.entry.insert("startup".to_owned(), json!(startup.name()));
    }
}

impl PlannedOutcome {
    pub(crate) fn is_written(self) -> bool {
        matches!(self, Self::Added | Self::Replaced)
    }
}

impl ImportPlan {
    /// Plans the import of these servers. `existing` are the entries of the config; with `force`,
    /// the import replaces those of the same name.
    pub(crate) fn new(
        found: Vec<FoundServer>,
        existing: &Map<String, Value>,
        environment: &Environment,
        force: bool,
    ) -> Self {
        let mut plan = Self::default();
        let known = ExistingServers { existing, environment, force };
        for FoundServer { name, source, entry } in found {
            let why = match entry {
                FoundEntry::Ready(entry) => match check_entry(&name, &entry.members) {
                    Ok(()) => {
                        plan.add_server(&name, source, entry, &known);
                        continue;
                    }
                    Err(why) => why,
                },
                FoundEntry::Disabled => "it is disabled there".to_owned(),
                FoundEntry::Dormouse => "it is dormouse itself".to_owned(),
                FoundEntry::Unusable(why) => why,
            };
            plan.skipped.push(SkippedServer { name, source, why });
        }
        plan
    }

    fn add_server(
        &mut self,
        name: &str,
        source: ServerSource,
        entry: TranslatedEntry,
        known: &ExistingServers<'_>,
    ) {
        let identity = server_identity(&entry.members, known.environment);
        if let Some(same) = self.servers.iter_mut().find(|planned| planned.identity == identity) {
            if same.name != name {
                same.notes.push(format!("is {name:?} in {}", source.app));
            }
            same.from.push(source);
            return;
        }
        let there = known.existing_name(&entry, &identity);
        let own_name =
            there.map_or_else(|| self.free_name(name, source.id, known.existing), str::to_owned);
        let is_there = there.is_some();
        let outcome =
            if is_there { PlannedOutcome::AlreadyThere } else { known.outcome(&own_name) };
        let members_with_cwd = entry.members_with_cwd();
        let mut notes = entry.notes;
        if own_name != name && !is_there {
            notes.push(format!("renamed from {name:?}, which another server has"));
        }
        self.servers.push(PlannedServer {
            name: own_name,
            entry: members_with_cwd,
            from: vec![source],
            outcome,
            required: entry.required,
            notes,
            identity,
        });
    }

    /// Returns the name, or a variant with the id of the app if another server of the plan has it.
    fn free_name(&self, name: &str, app: &str, existing: &Map<String, Value>) -> String {
        let is_taken = |name: &str| self.servers.iter().any(|planned| planned.name == name);
        if !is_taken(name) {
            return name.to_owned();
        }
        let with_app = format!("{name}-{app}");
        let numbered = (2..).map(|number| format!("{with_app}-{number}"));
        let mut names = [with_app.clone()].into_iter().chain(numbered);
        names
            .find(|name| !is_taken(name) && !existing.contains_key(name))
            .expect("there is no end to numbers")
    }
}

/// Returns the parts of an entry that identify its server, with variables expanded. Two entries
/// with the same identity are the same server.
pub fn server_identity(entry: &Map<String, Value>, environment: &Environment) -> Value {
    let mut identity = Map::new();
    for key in ["command", "args", "env", "cwd", "url", "headers"] {
        let value = entry.get(key).map(|value| environment.expanded(value));
        let is_empty = |value: &Value| *value == json!([]) || *value == json!({});
        let value = match value {
            Some(Value::String(text)) if key == "url" => json!(text.trim_end_matches('/')),
            Some(value) => value,
            None => continue,
        };
        if !is_empty(&value) {
            identity.insert(key.to_owned(), value);
        }
    }
    Value::Object(identity)
}
