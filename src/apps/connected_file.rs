//! Adds dormouse to the file of an app, and removes it again.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{
    app_file::{self, AppFile},
    dormouse_entry::{DormouseTransport, ENTRY_NAME},
    entry::TranslatedEntry,
    found_server::{FoundEntry, FoundServer},
    locations::{Directories, PROJECT_KEY},
    plan::server_identity,
};
use crate::config::{Edit, EditError, Environment, Format};

/// The content of an app's file after dormouse was added.
#[derive(Debug, Default)]
pub struct ConnectedFile {
    pub text: String,
    /// The removed entries in their original form, by server name.
    pub taken_out: Map<String, Value>,
    /// The entries removed from the parts for single projects, by project directory.
    pub taken_out_of_projects: Map<String, Value>,
    /// Names of the usable servers that stay in the file next to dormouse.
    pub kept: Vec<String>,
    /// Set if the file contained dormouse before.
    pub was_connected: bool,
    /// Names of all servers in the file before the change.
    pub server_names: Vec<String>,
    /// The entry for dormouse.
    pub entry: Value,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    #[error("the file does not contain an object: remove its content first")]
    NotAnObject,
    #[error("the file contains a single server, not a list: move the server to another file first")]
    SingleServer,
    #[error("`{0}` in the file is neither an object nor a list of servers")]
    NotServers(String),
    #[error("the file has a server named {ENTRY_NAME} that is not dormouse")]
    NameTaken,
    #[error("several servers in the file are named {0:?}: rename all but one")]
    NameRepeated(String),
    #[error("{0} cannot reach a server by a URL")]
    UrlsNotSupported(&'static str),
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl AppFile {
    fn root(&self, text: &str) -> Result<Value, ConnectError> {
        Format::of(&self.path).value(text).map_err(ConnectError::Unreadable)
    }

    /// Locates the servers of the file, or the place where the first one would be added.
    fn server_section<'a>(
        &self,
        root: &'a Value,
        directories: &Directories,
    ) -> Result<ServerSection<'a>, ConnectError> {
        let project = Some(directories.project.as_path());
        let found =
            app_file::locate_servers(root, self.servers, project).map(|(key_path, _)| key_path);
        let key_path = found.or(self.servers.last().copied()).unwrap_or_default();
        let step = |step: &&str| match *step {
            PROJECT_KEY => directories.project.to_string_lossy().into_owned(),
            step => step.to_owned(),
        };
        let servers = ServerSection {
            root,
            path: key_path.iter().map(step).collect(),
            is_list: self.app.has_list(),
        };
        if !root.is_object() {
            return Err(ConnectError::NotAnObject);
        }
        let has_expected_type = match servers.value() {
            None | Some(Value::Null) => true,
            Some(Value::Array(entries)) => servers.is_list || entries.is_empty(),
            Some(all) => all.is_object() && !servers.is_list,
        };
        if has_expected_type {
            Ok(servers)
        } else {
            Err(ConnectError::NotServers(servers.path.join(".")))
        }
    }

    /// Adds dormouse to the text of the file, and removes the servers that dormouse serves.
    /// `served` has the [`server_identity`] of each of these.
    ///
    /// # Errors
    /// Fails if the text cannot be parsed, or cannot be edited without changing other parts of it.
    pub fn connect(
        &self,
        text: &str,
        transport: &DormouseTransport,
        served: &[Value],
        environment: &Environment,
        directories: &Directories,
    ) -> Result<ConnectedFile, ConnectError> {
        let entry = self
            .app
            .entry_format
            .entry(transport)
            .ok_or(ConnectError::UrlsNotSupported(self.app.name))?;
        let root = self.root(text)?;
        let servers = self.server_section(&root, directories)?;
        // A list of servers would hide the server that the file consists of.
        if self.is_single_server(&root, directories) {
            return Err(ConnectError::SingleServer);
        }
        let is_served = |entry: &TranslatedEntry| {
            let is_known = |identity: &Value| served.contains(identity);
            let identity = |members: &Map<String, Value>| server_identity(members, environment);
            is_known(&identity(&entry.members)) || is_known(&identity(&entry.members_with_cwd()))
        };
        let mut connected = ConnectedFile { entry: entry.clone(), ..ConnectedFile::default() };
        let mut name = ENTRY_NAME.to_owned();
        let found = self.servers_in(&root, directories);
        let repeated = repeated_names(&found);
        for server in found {
            connected.server_names.push(server.name.clone());
            match server.entry {
                FoundEntry::Dormouse => {
                    connected.was_connected = true;
                    name = server.name;
                }
                FoundEntry::Ready(entry)
                    if is_served(&entry) && !repeated.contains(&server.name) =>
                {
                    let written = servers.get(&server.name).cloned().unwrap_or_default();
                    connected.taken_out.insert(server.name, written);
                }
                FoundEntry::Ready(_) => connected.kept.push(server.name),
                FoundEntry::Disabled | FoundEntry::Unusable(_) => {}
            }
        }
        if repeated.contains(&name) {
            return Err(ConnectError::NameRepeated(name));
        }
        if !connected.was_connected && servers.get(&name).is_some() {
            return Err(ConnectError::NameTaken);
        }
        let mut edits = if text.trim().is_empty() { self.preamble_edits() } else { Vec::new() };
        let mut gone: Vec<&String> = connected.taken_out.keys().collect();
        if servers.get(&name) != Some(&entry) {
            // In a list, the new entry becomes another element, so the old one is removed.
            gone.extend(servers.is_in_list(&name).then_some(&name));
            edits.extend(servers.edits_to_add(&[(&name, &entry)]));
        }
        edits.extend(servers.edits_to_remove(gone));
        for part in self.local_parts(directories) {
            edits.extend(part.replace_local(&root, &is_served, &mut connected, directories)?);
        }
        connected.text = self.edit_text(text, &edits)?;
        Ok(connected)
    }

    /// Returns the edits that remove the servers that dormouse serves from the part for the current
    /// project. The app would prefer these servers to those for all projects.
    fn replace_local(
        &self,
        root: &Value,
        is_served: &dyn Fn(&TranslatedEntry) -> bool,
        connected: &mut ConnectedFile,
        directories: &Directories,
    ) -> Result<Vec<Edit>, ConnectError> {
        let servers = self.server_section(root, directories)?;
        let project = directories.project.to_string_lossy().into_owned();
        let found = self.servers_in(root, directories);
        let repeated = repeated_names(&found);
        let mut taken_out = Map::new();
        for FoundServer { name, entry, .. } in found {
            match entry {
                FoundEntry::Ready(entry) if is_served(&entry) && !repeated.contains(&name) => {
                    let written = servers.get(&name).cloned().unwrap_or_default();
                    taken_out.insert(name, written);
                }
                FoundEntry::Ready(_) => connected.kept.push(format!("{name} (for this project)")),
                FoundEntry::Dormouse | FoundEntry::Disabled | FoundEntry::Unusable(_) => {}
            }
        }
        let edits = servers.edits_to_remove(taken_out.keys().collect());
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
    pub fn restore_projects(
        &self,
        text: &str,
        removed: &Map<String, Value>,
        directories: &Directories,
    ) -> Result<Option<String>, ConnectError> {
        let mut after = None;
        for (project, taken_out) in removed {
            let there = Directories { project: project.into(), ..directories.clone() };
            for part in self.local_parts(&there) {
                let text = after.as_deref().unwrap_or(text);
                let root = part.root(text)?;
                let servers = part.server_section(&root, &there)?;
                let taken_out = taken_out.as_object().into_iter().flatten();
                let back = taken_out.filter(|(name, _)| servers.get(name).is_none());
                let edits = servers.edits_to_add(&back.collect::<Vec<_>>());
                if !edits.is_empty() {
                    after = Some(part.edit_text(text, &edits)?);
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
        removed: &Map<String, Value>,
        directories: &Directories,
    ) -> Result<Option<String>, ConnectError> {
        let root = self.root(text)?;
        let servers = self.server_section(&root, directories)?;
        let found = self.servers_in(&root, directories);
        let repeated = repeated_names(&found);
        let own = found.into_iter().filter(|it| matches!(it.entry, FoundEntry::Dormouse));
        let own_names: Vec<String> = own.map(|server| server.name).collect();
        if let Some(name) = own_names.iter().find(|name| repeated.contains(*name)) {
            return Err(ConnectError::NameRepeated(name.clone()));
        }
        let back = removed.iter().filter(|(name, _)| servers.get(name).is_none());
        let mut edits = servers.edits_to_add(&back.collect::<Vec<_>>());
        edits.extend(servers.edits_to_remove(own_names.iter().collect()));
        if edits.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.edit_text(text, &edits)?))
    }

    /// Returns the names of all servers in the text except dormouse.
    ///
    /// # Errors
    /// Fails if the text cannot be parsed.
    pub fn server_names(
        &self,
        text: &str,
        directories: &Directories,
    ) -> Result<Vec<String>, ConnectError> {
        let root = self.root(text)?;
        let others = self.servers_in(&root, directories).into_iter();
        let others = others.filter(|server| !matches!(server.entry, FoundEntry::Dormouse));
        Ok(others.map(|server| server.name).collect())
    }

    fn preamble_edits(&self) -> Vec<Edit> {
        let member = |(key, value): &(&str, &str)| Edit::put(&json!({}), &[key], json!(value));
        self.app.connecting.preamble.iter().map(member).collect()
    }

    fn edit_text(&self, text: &str, edits: &[Edit]) -> Result<String, EditError> {
        if edits.is_empty() {
            Ok(text.to_owned())
        } else {
            Format::of(&self.path).edit(text, edits)
        }
    }
}

/// The mapping or list of servers in a file.
struct ServerSection<'a> {
    root: &'a Value,
    path: Vec<String>,
    /// Set if the app keeps its servers in a list.
    is_list: bool,
}

impl<'a> ServerSection<'a> {
    fn value(&self) -> Option<&'a Value> {
        self.path.iter().try_fold(self.root, |value, step| value.get(step))
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        match self.value()? {
            Value::Array(entries) => entries.iter().find(|entry| entry["name"] == name),
            entries => entries.get(name),
        }
    }

    /// Returns the last component of the path to a server: its name, or its index in a list.
    fn last_component(&self, name: &str) -> String {
        let entries = self.value().and_then(Value::as_array);
        let position =
            entries.and_then(|entries| entries.iter().position(|entry| entry["name"] == name));
        position.map_or_else(|| name.to_owned(), |position| position.to_string())
    }

    fn path_to(&self, last: String) -> Vec<String> {
        self.path.iter().cloned().chain([last]).collect()
    }

    fn is_in_list(&self, name: &str) -> bool {
        self.value().is_some_and(Value::is_array) && self.get(name).is_some()
    }

    /// Returns the edits that add these entries. In a list, they are appended.
    fn edits_to_add(&self, entries: &[(&String, &Value)]) -> Vec<Edit> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let cloned = || entries.iter().map(|(name, entry)| ((*name).clone(), (*entry).clone()));
        match (self.value(), self.is_list) {
            _ if entries.is_empty() => Vec::new(),
            (Some(Value::Array(_)), true) => {
                let end = self.path_to(Edit::END.to_owned());
                cloned().map(|(_, value)| Edit::Set { path: end.clone(), value }).collect()
            }
            (Some(Value::Object(_)), false) => cloned()
                .map(|(name, value)| Edit::Set { path: self.path_to(name), value })
                .collect(),
            // There are no servers yet: the edit also creates the mapping or list.
            (_, true) => {
                let all = cloned().map(|(_, value)| value).collect();
                vec![Edit::put(self.root, &path, all)]
            }
            (_, false) => vec![Edit::put(self.root, &path, cloned().collect())],
        }
    }

    /// Returns the edits that remove these servers.
    fn edits_to_remove(&self, names: Vec<&String>) -> Vec<Edit> {
        let mut steps: Vec<String> =
            names.into_iter().map(|name| self.last_component(name)).collect();
        if self.value().is_some_and(Value::is_array) {
            // Starts at the end, so that the other indices stay valid.
            steps.sort_by_key(|step| std::cmp::Reverse(step.parse::<usize>().unwrap_or_default()));
        }
        steps.into_iter().map(|step| Edit::Remove { path: self.path_to(step) }).collect()
    }
}

/// Returns the names that several servers have. Only the app knows which of them it uses, and in a
/// list an edit by name could meet another one.
fn repeated_names(found: &[FoundServer]) -> HashSet<String> {
    let mut seen = HashSet::new();
    found.iter().filter(|server| !seen.insert(&server.name)).map(|it| it.name.clone()).collect()
}
