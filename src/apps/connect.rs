//! dormouse in the file of a host: put there, and taken out.

use serde_json::{Map, Value, json};

use super::{
    entry::Entry,
    own::{NAME, Way},
    places::{Directories, PROJECT},
    plan::target,
    read::{self, Candidate, Fate, Spot},
};
use crate::config::{Edit, EditError, Environment, Format};

/// A host's file with dormouse in it.
#[derive(Debug, Default)]
pub struct Connected {
    pub text: String,
    /// The entries that were taken out, as they were written.
    pub taken_out: Map<String, Value>,
    /// Those of them that the host had for one project of its user alone, by the project.
    pub taken_out_of_projects: Map<String, Value>,
    /// The servers that stay beside dormouse.
    pub left: Vec<String>,
    /// Whether dormouse was in it.
    pub was_there: bool,
    /// The names of all servers that were in it.
    pub present: Vec<String>,
    /// Our entry.
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

    /// The servers of the file, where they are or would be.
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

    /// Puts dormouse into the text of the file, and takes out those servers that dormouse has: `carried` is what they lead
    /// to ([`target`]).
    ///
    /// # Errors
    /// When the text cannot be read, or not be edited without touching more.
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
            // In a list the new entry is another element.
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

    /// Takes out what dormouse has of the servers for the current project alone, which the host prefers to all others.
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

    /// Puts servers back that were taken out of the parts for single projects; `None` where there is nothing to do.
    ///
    /// # Errors
    /// As for `connect`.
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

    /// Takes dormouse out, and puts servers back that were taken out for it; `None` where there is nothing to do.
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

    /// The names of all servers in the text but dormouse.
    ///
    /// # Errors
    /// When the text cannot be read.
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

/// The servers of a file, in a mapping or in a list.
struct Servers<'a> {
    root: &'a Value,
    place: Vec<String>,
    /// Whether the host has them in a list.
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

    /// The edits after which the servers have these entries; in a list they stand behind all others.
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
            // The first of them make the place where they are.
            (_, true) => {
                let all = cloned().map(|(_, value)| value).collect();
                vec![Edit::put(self.root, &place, all)]
            }
            (_, false) => vec![Edit::put(self.root, &place, cloned().collect())],
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
