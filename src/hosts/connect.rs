//! dormouse in the file of a host: put there, and taken out.

use serde_json::{Map, Value, json};

use super::{
    entry::Entry,
    own::Way,
    places::{Directories, PROJECT},
    plan::target,
    read::{Fate, Spot, follow, holds_servers},
    secrets::{Secret, secrets},
};
use crate::config::{Edit, EditError, Environment, Format};

/// The name of our entry.
const NAME: &str = "dormouse";

/// A host's file with dormouse in it.
#[derive(Debug, Default)]
pub struct Connected {
    pub text: String,
    /// The entries that were taken out, as they were written.
    pub taken_out: Map<String, Value>,
    /// The servers that stay beside dormouse.
    pub left: Vec<String>,
    /// What may not be shown of the text.
    pub secrets: Vec<Secret>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    #[error("{0} cannot reach a server by a URL")]
    NoUrls(&'static str),
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl Spot {
    fn root(&self, text: &str) -> Result<Value, ConnectError> {
        Format::of(&self.path).value(text).map_err(ConnectError::Unreadable)
    }

    /// The way to the servers: the first that leads to some, else the last.
    fn way(&self, root: &Value, directories: &Directories) -> Vec<String> {
        let project = Some(directories.project.as_path());
        let leads = |way: &&&[&str]| follow(root, way, project).is_some_and(holds_servers);
        let way =
            self.servers.iter().find(leads).or(self.servers.last()).copied().unwrap_or_default();
        let step = |step: &&str| match *step {
            PROJECT => directories.project.to_string_lossy().into_owned(),
            step => step.to_owned(),
        };
        way.iter().map(step).collect()
    }

    /// Puts dormouse into the text of the file, and with `replaced` takes out the servers of our own config.
    ///
    /// # Errors
    /// When the text cannot be read, or not be edited without touching more.
    pub fn connect(
        &self,
        text: &str,
        way: &Way,
        replaced: Option<(&Map<String, Value>, &Environment)>,
        directories: &Directories,
    ) -> Result<Connected, ConnectError> {
        let entry = self.host.form.entry(way).ok_or(ConnectError::NoUrls(self.host.name))?;
        let root = self.root(text)?;
        let servers = Servers { place: self.way(&root, directories), root: &root };
        let is_carried = |entry: &Entry| {
            replaced.is_some_and(|(ours, environment)| {
                let wanted = target(&entry.members, environment);
                let mut ours = ours.values().filter_map(Value::as_object);
                ours.any(|own| target(own, environment) == wanted)
            })
        };
        let mut connected = Connected::default();
        let mut name = NAME.to_owned();
        for candidate in self.all_of(&root, directories) {
            match candidate.fate {
                Fate::Ourselves => name = candidate.name,
                Fate::Ready(entry) => {
                    connected.secrets.extend(secrets(&candidate.name, &entry.members));
                    if is_carried(&entry) {
                        let written = servers.get(&candidate.name).cloned().unwrap_or_default();
                        connected.taken_out.insert(candidate.name, written);
                    } else {
                        connected.left.push(candidate.name);
                    }
                }
                Fate::Disabled | Fate::Unusable(_) => {}
            }
        }
        let mut edits = if text.trim().is_empty() { self.preamble() } else { Vec::new() };
        let mut gone: Vec<&String> = connected.taken_out.keys().collect();
        if servers.get(&name) != Some(&entry) {
            // In a list the new entry is another element.
            gone.extend(servers.is_in_list(&name).then_some(&name));
            edits.push(servers.with(&name, entry, self.host.has_list()));
        }
        edits.extend(servers.without(gone));
        connected.text = self.edited(text, &edits)?;
        Ok(connected)
    }

    /// Takes dormouse out, and puts servers back that were taken out for it; `None` where it is not in it.
    ///
    /// # Errors
    /// As for `connect`.
    pub fn disconnect(
        &self,
        text: &str,
        put_back: &Map<String, Value>,
        directories: &Directories,
    ) -> Result<Option<String>, ConnectError> {
        let root = self.root(text)?;
        let servers = Servers { place: self.way(&root, directories), root: &root };
        let all = self.all_of(&root, directories).into_iter();
        let ours = all.filter(|candidate| matches!(candidate.fate, Fate::Ourselves));
        let ours: Vec<String> = ours.map(|candidate| candidate.name).collect();
        if ours.is_empty() {
            return Ok(None);
        }
        let back = put_back.iter().filter(|(name, _)| servers.get(name).is_none());
        let back =
            back.map(|(name, value)| servers.with(name, value.clone(), self.host.has_list()));
        let mut edits: Vec<Edit> = back.collect();
        edits.extend(servers.without(ours.iter().collect()));
        Ok(Some(self.edited(text, &edits)?))
    }

    fn preamble(&self) -> Vec<Edit> {
        let member = |(key, value): &(&str, &str)| Edit::put(&json!({}), &[key], json!(value));
        self.host.preamble.iter().map(member).collect()
    }

    fn edited(&self, text: &str, edits: &[Edit]) -> Result<String, EditError> {
        if edits.is_empty() {
            Ok(text.to_owned())
        } else {
            Format::of(&self.path).edit(text, edits)
        }
    }
}

/// The servers of a file, in a mapping or in a list.
struct Servers<'a> {
    root: &'a Value,
    place: Vec<String>,
}

impl Servers<'_> {
    fn all(&self) -> Option<&Value> {
        self.place.iter().try_fold(self.root, |value, step| value.get(step))
    }

    fn get(&self, name: &str) -> Option<&Value> {
        match self.all()? {
            Value::Array(entries) => entries.iter().find(|entry| entry["name"] == name),
            entries => entries.get(name),
        }
    }

    /// The last step to a server.
    fn step(&self, name: &str) -> String {
        let entries = self.all().and_then(Value::as_array);
        let position =
            entries.and_then(|entries| entries.iter().position(|entry| entry["name"] == name));
        position.map_or_else(|| name.to_owned(), |position| position.to_string())
    }

    fn path(&self, last: String) -> Vec<String> {
        self.place.iter().cloned().chain([last]).collect()
    }

    fn is_in_list(&self, name: &str) -> bool {
        self.all().is_some_and(Value::is_array) && self.get(name).is_some()
    }

    /// The edit after which the server has this entry; in a list it stands behind all others.
    fn with(&self, name: &str, entry: Value, is_list: bool) -> Edit {
        let place: Vec<&str> = self.place.iter().map(String::as_str).collect();
        match (self.all(), is_list) {
            (Some(Value::Array(_)), _) => {
                Edit::Set { path: self.path(Edit::END.to_owned()), value: entry }
            }
            (_, true) => Edit::put(self.root, &place, json!([entry])),
            (_, false) => Edit::put(self.root, &[&place[..], &[name]].concat(), entry),
        }
    }

    /// The edits after which these servers are gone.
    fn without(&self, names: Vec<&String>) -> Vec<Edit> {
        let mut steps: Vec<String> = names.into_iter().map(|name| self.step(name)).collect();
        if self.all().is_some_and(Value::is_array) {
            // From the end, so that positions stay what they are.
            steps.sort_by_key(|step| std::cmp::Reverse(step.parse::<usize>().unwrap_or_default()));
        }
        steps.into_iter().map(|step| Edit::Remove { path: self.path(step) }).collect()
    }
}
