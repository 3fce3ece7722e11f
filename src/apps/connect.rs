//! Adds dormouse to the file of an app, and removes it again.

use serde_json::{Map, Value, json};

use super::{
    entry::Entry,
    own::{NAME, Way},
    places::{Directories, PROJECT},
    plan::target,
    read::{self, Candidate, Fate, Spot},
};
use crate::config::{Edit, EditError, Environment, Format};

/// The content of an app's file after dormouse was added.
#[derive(Debug, Default)]
pub struct Connected {
    pub text: String,
    /// The removed entries in their original form, by server name.
    pub taken_out: Map<String, Value>,
    /// The entries removed from the parts for single projects, by project directory.
    pub taken_out_of_projects: Map<String, Value>,
    /// Names of the usable servers that stay in the file next to dormouse.
    pub left: Vec<String>,
    /// Set if the file contained dormouse before.
    pub was_there: bool,
    /// Names of all servers in the file before the change.
    pub present: Vec<String>,
    /// The entry for dormouse.
    pub entry: Value,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    #[error("it holds no object; what is in it has to go first")]
    NoObject,
    #[error("what it says of `{0}` is nothing that servers can be put into")]
    Strange(String),
    #[error("it has a server named {NAME} that is something else")]
    NameTaken,
    #[error("{0} cannot reach a server by a URL")]
    NoUrls(&'static str),
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl Spot {
    fn root(&self, text: &str) -> Result<Value, ConnectError> {
        Format::of(&self.path).value(text).map_err(ConnectError::Unreadable)
    }

    /// Locates the servers of the file, or the place where the first one would be added.
    fn servers<'a>(
        &self,
        root: &'a Value,
        directories: &Directories,
    ) -> Result<Servers<'a>, ConnectError> {
        let project = Some(directories.project.as_path());
        let way = read::place(root, self.servers, project).map(|(way, _)| way);
        let way = way.or(self.servers.last().copied()).unwrap_or_default();
        let step = |step: &&str| match *step {
            PROJECT => directories.project.to_string_lossy().into_owned(),
            step => step.to_owned(),
        };
        let servers =
            Servers { root, place: way.iter().map(step).collect(), is_list: self.app.has_list() };
        if !root.is_object() {
            return Err(ConnectError::NoObject);
        }
        let is_right = match servers.all() {
            None | Some(Value::Null) => true,
            Some(Value::Array(entries)) => servers.is_list || entries.is_empty(),
            Some(all) => all.is_object() && !servers.is_list,
        };
        if is_right { Ok(servers) } else { Err(ConnectError::Strange(servers.place.join("."))) }
    }

    /// Adds dormouse to the text of the file, and removes the servers that dormouse serves. `served`
    /// has the [`server_identity`] of each of these.
    ///
    /// # Errors
    /// Fails if the text cannot be parsed, or cannot be edited without changing other parts of it.
    pub fn connect(
        &self,
        text: &str,
        way: &Way,
        carried: &[Value],
        environment: &Environment,
        directories: &Directories,
    ) -> Result<Connected, ConnectError> {
        let entry = self.app.form.entry(way).ok_or(ConnectError::NoUrls(self.app.name))?;
        let root = self.root(text)?;
        let servers = self.servers(&root, directories)?;
        let is_carried = |entry: &Entry| {
            let is_it = |target: &Value| carried.iter().any(|own| own == target);
            let of = |members: &Map<String, Value>| target(members, environment);
            is_it(&of(&entry.members)) || is_it(&of(&entry.in_place()))
        };
        let mut connected = Connected { entry: entry.clone(), ..Connected::default() };
        let mut name = NAME.to_owned();
        for candidate in self.all_of(&root, directories) {
            connected.present.push(candidate.name.clone());
            match candidate.fate {
                Fate::Ourselves => {
                    connected.was_there = true;
                    name = candidate.name;
                }
                Fate::Ready(entry) if is_carried(&entry) => {
                    let written = servers.get(&candidate.name).cloned().unwrap_or_default();
                    connected.taken_out.insert(candidate.name, written);
                }
                Fate::Ready(_) => connected.left.push(candidate.name),
                Fate::Disabled | Fate::Unusable(_) => {}
            }
        }
        if !connected.was_there && servers.get(&name).is_some() {
            return Err(ConnectError::NameTaken);
        }
        let mut edits = if text.trim().is_empty() { self.preamble() } else { Vec::new() };
        let mut gone: Vec<&String> = connected.taken_out.keys().collect();
        if servers.get(&name) != Some(&entry) {
            // In a list, the new entry becomes another element, so the old one is removed.
            gone.extend(servers.is_in_list(&name).then_some(&name));
            edits.extend(servers.with_all(&[(&name, &entry)]));
        }
        edits.extend(servers.without(gone));
        for part in self.local_parts(directories) {
            edits.extend(part.replace_local(&root, &is_carried, &mut connected, directories)?);
        }
        connected.text = self.edited(text, &edits)?;
        Ok(connected)
    }

    /// Returns the edits that remove the servers that dormouse serves from the part for the current
    /// project. The app would prefer these servers to those for all projects.
    fn replace_local(
        &self,
        root: &Value,
        is_carried: &dyn Fn(&Entry) -> bool,
        connected: &mut Connected,
        directories: &Directories,
    ) -> Result<Vec<Edit>, ConnectError> {
        let servers = self.servers(root, directories)?;
        let project = directories.project.to_string_lossy().into_owned();
        let mut taken_out = Map::new();
        for Candidate { name, fate, .. } in self.all_of(root, directories) {
            match fate {
                Fate::Ready(entry) if is_carried(&entry) => {
                    let written = servers.get(&name).cloned().unwrap_or_default();
                    taken_out.insert(name, written);
                }
                Fate::Ready(_) => connected.left.push(format!("{name} (for this project)")),
                Fate::Ourselves | Fate::Disabled | Fate::Unusable(_) => {}
            }
        }
        let edits = servers.without(taken_out.keys().collect());
        if !taken_out.is_empty() {
            connected.taken_out_of_projects.insert(project, Value::Object(taken_out));
        }
        Ok(edits)
    }

    /// Restores servers that were removed from the parts for single projects. Returns `None` if
    /// nothing changes.
    ///
    /// # Errors
    /// Fails for the same reasons as `connect`.
    pub fn put_back(
        &self,
        text: &str,
        of_projects: &Map<String, Value>,
        directories: &Directories,
    ) -> Result<Option<String>, ConnectError> {
        let mut after = None;
        for (project, taken_out) in of_projects {
            let there = Directories { project: project.into(), ..directories.clone() };
            for part in self.local_parts(&there) {
                let text = after.as_deref().unwrap_or(text);
                let root = part.root(text)?;
                let servers = part.servers(&root, &there)?;
                let taken_out = taken_out.as_object().into_iter().flatten();
                let back = taken_out.filter(|(name, _)| servers.get(name).is_none());
                let edits = servers.with_all(&back.collect::<Vec<_>>());
                if !edits.is_empty() {
                    after = Some(part.edited(text, &edits)?);
                }
            }
        }
        Ok(after)
    }

    /// Removes dormouse, and restores servers that were removed for it. Returns `None` if nothing
    /// changes.
    ///
    /// # Errors
    /// Fails for the same reasons as `connect`.
    pub fn disconnect(
        &self,
        text: &str,
        put_back: &Map<String, Value>,
        directories: &Directories,
    ) -> Result<Option<String>, ConnectError> {
        let root = self.root(text)?;
        let servers = self.servers(&root, directories)?;
        let all = self.all_of(&root, directories).into_iter();
        let ours = all.filter(|candidate| matches!(candidate.fate, Fate::Ourselves));
        let ours: Vec<String> = ours.map(|candidate| candidate.name).collect();
        let back = put_back.iter().filter(|(name, _)| servers.get(name).is_none());
        let mut edits = servers.with_all(&back.collect::<Vec<_>>());
        edits.extend(servers.without(ours.iter().collect()));
        if edits.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.edited(text, &edits)?))
    }

    /// Returns the names of all servers in the text except dormouse.
    ///
    /// # Errors
    /// Fails if the text cannot be parsed.
    pub fn names(
        &self,
        text: &str,
        directories: &Directories,
    ) -> Result<Vec<String>, ConnectError> {
        let root = self.root(text)?;
        let others = self.all_of(&root, directories).into_iter();
        let others = others.filter(|candidate| !matches!(candidate.fate, Fate::Ourselves));
        Ok(others.map(|candidate| candidate.name).collect())
    }

    fn preamble(&self) -> Vec<Edit> {
        let member = |(key, value): &(&str, &str)| Edit::put(&json!({}), &[key], json!(value));
        self.app.preamble.iter().map(member).collect()
    }

    fn edited(&self, text: &str, edits: &[Edit]) -> Result<String, EditError> {
        if edits.is_empty() {
            Ok(text.to_owned())
        } else {
            Format::of(&self.path).edit(text, edits)
        }
    }
}

/// The mapping or list of servers in a file.
struct Servers<'a> {
    root: &'a Value,
    place: Vec<String>,
    /// Set if the app keeps its servers in a list.
    is_list: bool,
}

impl<'a> Servers<'a> {
    fn all(&self) -> Option<&'a Value> {
        self.place.iter().try_fold(self.root, |value, step| value.get(step))
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        match self.all()? {
            Value::Array(entries) => entries.iter().find(|entry| entry["name"] == name),
            entries => entries.get(name),
        }
    }

    /// Returns the last component of the path to a server: its name, or its index in a list.
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

    /// Returns the edits that add these entries. In a list, they are appended.
    fn with_all(&self, entries: &[(&String, &Value)]) -> Vec<Edit> {
        let place: Vec<&str> = self.place.iter().map(String::as_str).collect();
        let cloned = || entries.iter().map(|(name, entry)| ((*name).clone(), (*entry).clone()));
        match (self.all(), self.is_list) {
            _ if entries.is_empty() => Vec::new(),
            (Some(Value::Array(_)), true) => {
                let end = self.path(Edit::END.to_owned());
                cloned().map(|(_, value)| Edit::Set { path: end.clone(), value }).collect()
            }
            (Some(Value::Object(_)), false) => {
                cloned().map(|(name, value)| Edit::Set { path: self.path(name), value }).collect()
            }
            // There are no servers yet: the edit also creates the mapping or list.
            (_, true) => {
                let all = cloned().map(|(_, value)| value).collect();
                vec![Edit::put(self.root, &place, all)]
            }
            (_, false) => vec![Edit::put(self.root, &place, cloned().collect())],
        }
    }

    /// Returns the edits that remove these servers.
    fn without(&self, names: Vec<&String>) -> Vec<Edit> {
        let mut steps: Vec<String> = names.into_iter().map(|name| self.step(name)).collect();
        if self.all().is_some_and(Value::is_array) {
            // Starts at the end, so that the other indices stay valid.
            steps.sort_by_key(|step| std::cmp::Reverse(step.parse::<usize>().unwrap_or_default()));
        }
        steps.into_iter().map(|step| Edit::Remove { path: self.path(step) }).collect()
    }
}
