//! What becomes of the servers that were found: each is taken once, under one name.

use serde_json::{Map, Value, json};

use super::{
    read::{Candidate, Fate, Source},
    variables::Needed,
};
use crate::config::{Environment, Startup};

/// What an import would do.
#[derive(Debug, Default)]
pub struct Plan {
    pub servers: Vec<Planned>,
    /// What is left where it is, and why.
    pub skipped: Vec<(Candidate, String)>,
}

/// A server that was found, maybe several times.
#[derive(Clone, Debug)]
pub struct Planned {
    pub name: String,
    /// In the keys of our config.
    pub entry: Map<String, Value>,
    pub from: Vec<Source>,
    pub outcome: Outcome,
    pub needed: Vec<Needed>,
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Added,
    /// It takes the place of another of its name.
    Replaced,
    /// The config has it, maybe under another name.
    AlreadyThere,
    /// The config has another of its name.
    NameTaken,
}

impl Planned {
    /// What is said of it stands first, when it starts last.
    pub fn describe(&mut self, description: &str) {
        self.entry.shift_insert(0, "description".to_owned(), json!(description));
    }

    pub fn set_startup(&mut self, startup: Startup) {
        self.entry.insert("startup".to_owned(), json!(startup.name()));
    }
}

impl Outcome {
    pub fn is_written(self) -> bool {
        matches!(self, Self::Added | Self::Replaced)
    }
}

impl Plan {
    /// `existing`: the servers of the config; `force`: servers of the same name are replaced.
    pub fn new(
        found: Vec<Candidate>,
        existing: &Map<String, Value>,
        environment: &Environment,
        force: bool,
    ) -> Self {
        let mut plan = Self::default();
        for candidate in found {
            let why = match &candidate.fate {
                Fate::Ready(_) => {
                    plan.take(candidate, existing, environment, force);
                    continue;
                }
                Fate::Disabled => "it is switched off there".to_owned(),
                Fate::Ourselves => "it is dormouse itself".to_owned(),
                Fate::Unusable(why) => why.clone(),
            };
            plan.skipped.push((candidate, why));
        }
        plan
    }

    fn take(
        &mut self,
        candidate: Candidate,
        existing: &Map<String, Value>,
        environment: &Environment,
        force: bool,
    ) {
        let Candidate { name, source, fate: Fate::Ready(entry) } = candidate else { return };
        let target = target(&entry.members, environment);
        if let Some(same) = self
            .servers
            .iter_mut()
            .find(|planned| self::target(&planned.entry, environment) == target)
        {
            if same.name != name {
                same.notes.push(format!("is {name:?} in {}", source.host));
            }
            same.from.push(source);
            return;
        }
        let is_same = |(_, other): (&String, &Value)| {
            other.as_object().is_some_and(|other| self::target(other, environment) == target)
        };
        let outcome = if existing.iter().any(is_same) {
            Outcome::AlreadyThere
        } else if !existing.contains_key(&name) {
            Outcome::Added
        } else if force {
            Outcome::Replaced
        } else {
            Outcome::NameTaken
        };
        let mut notes = entry.notes;
        let own_name = self.free_name(&name, source.id, existing);
        if own_name != name {
            notes.push(format!("is called {name:?} in {}, as another server is", source.host));
        }
        self.servers.push(Planned {
            name: own_name,
            entry: entry.members,
            from: vec![source],
            outcome,
            needed: entry.needed,
            notes,
        });
    }

    /// The name, unless another that was found has it.
    fn free_name(&self, name: &str, host: &str, existing: &Map<String, Value>) -> String {
        let is_taken = |name: &str| self.servers.iter().any(|planned| planned.name == name);
        if !is_taken(name) {
            return name.to_owned();
        }
        let with_host = format!("{name}-{host}");
        let numbered = (2..).map(|number| format!("{with_host}-{number}"));
        let mut names = [with_host.clone()].into_iter().chain(numbered);
        names
            .find(|name| !is_taken(name) && !existing.contains_key(name))
            .expect("there is no end to numbers")
    }
}

/// What an entry leads to, whatever else it says: two with the same are one server.
pub(super) fn target(entry: &Map<String, Value>, environment: &Environment) -> Value {
    let mut target = Map::new();
    for key in ["command", "args", "env", "url", "headers"] {
        let value = entry.get(key).map(|value| environment.expanded(value));
        let is_empty = |value: &Value| *value == json!([]) || *value == json!({});
        let value = match value {
            Some(Value::String(text)) if key == "url" => json!(text.trim_end_matches('/')),
            Some(value) => value,
            None => continue,
        };
        if !is_empty(&value) {
            target.insert(key.to_owned(), value);
        }
    }
    Value::Object(target)
}
