//! Finds the servers in the files of apps.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::{
    app::{APPS, App, UNKNOWN_APP},
    entry::{TranslatedEntry, is_server_entry},
    found_server::{FoundEntry, FoundServer, OtherProjectServers, ServerSource},
    locations::{Directories, FileLocation, FileScope, KeyPaths, PROJECT_KEY},
    variables::VariableContext,
};
use crate::{base::read_text, config::Format};

/// A file in which an app keeps servers, or the part of it for one project. The file may be
/// missing.
#[derive(Clone, Debug)]
pub struct AppFile {
    pub app: &'static App,
    pub scope: FileScope,
    pub path: PathBuf,
    pub(super) servers: KeyPaths,
    /// Directory of the project that the file or part belongs to. `None` for [`FileScope::User`].
    pub(super) project: Option<PathBuf>,
    /// The entry that `dormouse connect` has written, if there is a record of it.
    pub(super) dormouse_entry: Option<Value>,
}

impl App {
    /// Returns all files that the app may read, in the order of its locations.
    pub fn files(&'static self, directories: &Directories) -> Vec<AppFile> {
        let mut app_files: Vec<AppFile> = Vec::new();
        for location in self.locations {
            for path in directories.files(location) {
                let app_file = self.file_at(location, path, directories);
                // If the working directory is the home directory, two locations can be one file.
                let is_known = |known: &AppFile| {
                    known.path == app_file.path && known.servers == app_file.servers
                };
                if !app_files.iter().any(is_known) {
                    app_files.push(app_file);
                }
            }
        }
        app_files
    }

    /// Returns the file that `connect` writes to: the first existing file of the scope, or its
    /// first file if none exists.
    pub fn writable_file(
        &'static self,
        scope: FileScope,
        directories: &Directories,
    ) -> Option<AppFile> {
        let locations = self.locations_of(scope).filter(|location| location.is_writable);
        let files = locations.flat_map(|location| {
            directories
                .files(location)
                .into_iter()
                .map(|path| self.file_at(location, path, directories))
        });
        let files: Vec<AppFile> = files.collect();
        let is_there = |app_file: &&AppFile| app_file.path.is_file();
        files.iter().find(is_there).or(files.first()).cloned()
    }

    /// Returns the servers that the app keeps for projects other than the working directory.
    pub fn servers_of_other_projects(
        &'static self,
        directories: &Directories,
    ) -> Vec<OtherProjectServers> {
        let local = self
            .files(directories)
            .into_iter()
            .filter(|app_file| app_file.scope == FileScope::Local);
        let read = |app_file: &AppFile| {
            let text = read_text(&app_file.path).ok()?;
            Format::of(&app_file.path).value(&text).ok()
        };
        let of_file = |app_file: AppFile| {
            Some(app_file.servers_of_other_projects(&read(&app_file)?, directories))
        };
        local.filter_map(of_file).flatten().collect()
    }

    fn file_at(
        &'static self,
        location: &FileLocation,
        path: PathBuf,
        directories: &Directories,
    ) -> AppFile {
        AppFile {
            app: self,
            scope: location.scope,
            path,
            servers: location.servers.unwrap_or(self.servers),
            project: (location.scope != FileScope::User).then(|| directories.project.clone()),
            dormouse_entry: None,
        }
    }
}

impl AppFile {
    /// Returns the apps' files and parts at this path.
    ///
    /// Apps are recognized by their locations, then by the end of the path, so that a copy of an
    /// app's file elsewhere is read as that app's. All other files are read as `UNKNOWN_APP`.
    pub fn at_path(path: &Path, directories: &Directories) -> Vec<Self> {
        let is_it = |app_file: &AppFile| {
            app_file
                .path
                .canonicalize()
                .is_ok_and(|known| path.canonicalize().is_ok_and(|p| p == known))
        };
        let known: Vec<Self> =
            APPS.iter().flat_map(|app| app.files(directories)).filter(is_it).collect();
        if !known.is_empty() {
            return known;
        }
        // The path ends like a file of an app, but is below another directory.
        let has_ending = |location: &&FileLocation| {
            !location.path.contains('*') && path.ends_with(location.path)
        };
        let similar =
            APPS.iter().find_map(|app| Some((app, app.locations.iter().find(has_ending)?)));
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let Some((app, location)) = similar else {
            let (scope, servers) = (FileScope::User, UNKNOWN_APP.servers);
            return vec![Self {
                app: &UNKNOWN_APP,
                scope,
                path,
                servers,
                project: None,
                dormouse_entry: None,
            }];
        };
        let depth = location.path.split('/').count();
        let project = path.ancestors().nth(depth).filter(|_| location.scope == FileScope::Project);
        let project = project.map(Path::to_owned);
        vec![Self {
            app,
            scope: location.scope,
            path,
            servers: app.servers,
            project,
            dormouse_entry: None,
        }]
    }

    /// Returns the parts of this file that hold servers only for the project in the working
    /// directory.
    pub(super) fn local_parts(&self, directories: &Directories) -> Vec<Self> {
        let all = match self.scope {
            FileScope::User => self.app.files(directories),
            FileScope::Local | FileScope::Project => Vec::new(),
        };
        let is_part =
            |app_file: &Self| app_file.scope == FileScope::Local && app_file.path == self.path;
        all.into_iter().filter(is_part).collect()
    }

    fn servers_of_other_projects(
        &self,
        root: &Value,
        directories: &Directories,
    ) -> Vec<OtherProjectServers> {
        let here = directories.project.to_string_lossy();
        let before =
            self.servers.first().map(|key_path| key_path.split(|step| *step == PROJECT_KEY));
        let projects = before.and_then(|mut parts| value_at(root, parts.next()?, None));
        let others = projects.and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let elsewhere = |project: &String| {
            let there = Directories { project: PathBuf::from(project), ..directories.clone() };
            let part = Self { project: Some(there.project.clone()), ..self.clone() };
            let found = part.servers_with(root, BTreeSet::new(), &there).into_iter();
            let found = found.filter(|server| matches!(server.entry, FoundEntry::Ready(_)));
            let servers: Vec<String> = found.map(|server| server.name).collect();
            (!servers.is_empty()).then(|| OtherProjectServers {
                app: self.app,
                project: project.clone(),
                servers,
            })
        };
        others.filter(|project| **project != *here).filter_map(elsewhere).collect()
    }

    /// Returns whether the file applies to all users of a project while the app also has a file for
    /// the user alone.
    pub fn is_shared(&self) -> bool {
        let has_own = self.app.locations_of(FileScope::User).next().is_some();
        self.scope == FileScope::Project && has_own
    }

    fn source(&self) -> ServerSource {
        let (app, id, path) = (self.app.name, self.app.id, self.path.clone());
        ServerSource { app, id, path, is_project: self.scope == FileScope::Project }
    }

    fn found_server(
        &self,
        name: String,
        entry: Value,
        context: &EntryContext<'_>,
    ) -> Option<FoundServer> {
        let entry = self.classify(&name, entry, context)?;
        Some(FoundServer { name, source: self.source(), entry })
    }

    fn classify(&self, name: &str, entry: Value, context: &EntryContext<'_>) -> Option<FoundEntry> {
        if self.dormouse_entry.as_ref() == Some(&entry) {
            return Some(FoundEntry::Dormouse);
        }
        let Value::Object(members) = entry else {
            return Some(FoundEntry::Unusable("its entry is not an object".to_owned()));
        };
        // Extensions that are built into Goose.
        if members
            .get("type")
            .and_then(Value::as_str)
            .is_some_and(|kind| GOOSE_BUILTIN_TYPES.contains(&kind))
        {
            return None;
        }
        if !is_server_entry(&members) {
            return Some(FoundEntry::Unusable("it has neither a command nor a URL".to_owned()));
        }
        let mut entry = TranslatedEntry::read(members, self.app.timeout, &context.variables);
        if is_dormouse(name, &entry.members) {
            return Some(FoundEntry::Dormouse);
        }
        if !entry.is_enabled || context.switched_off.contains(name) {
            return Some(FoundEntry::Disabled);
        }
        if let Some(project) = context.variables.project
            && entry.members.contains_key("command")
        {
            entry.resolve_cwd(project);
        }
        Some(FoundEntry::Ready(entry))
    }
}

/// Types of Goose extensions that are not MCP servers.
const GOOSE_BUILTIN_TYPES: [&str; 4] = ["builtin", "platform", "frontend", "inline_python"];

/// The settings of a file that apply to each of its entries.
struct EntryContext<'a> {
    variables: VariableContext<'a>,
    switched_off: BTreeSet<String>,
}

/// Returns the servers in the existing files, and the files that cannot be read, each with the
/// reason.
pub fn find_servers(
    app_files: &[AppFile],
    directories: &Directories,
) -> (Vec<FoundServer>, Vec<(PathBuf, String)>) {
    let mut unreadable = Vec::new();
    let mut read: Vec<(&AppFile, Value)> = Vec::new();
    for app_file in app_files {
        match read_text(&app_file.path) {
            Ok(text) => match Format::of(&app_file.path).value(&text) {
                Ok(root) => read.push((app_file, root)),
                Err(why) => unreadable.push((app_file.path.clone(), why)),
            },
            Err(error) if app_file.path.exists() => {
                unreadable.push((app_file.path.clone(), error.to_string()));
            }
            Err(_) => {}
        }
    }
    unreadable.dedup();
    let mut found: Vec<FoundServer> = Vec::new();
    for (app_file, root) in &read {
        let of_app = read.iter().filter(|(other, _)| other.app.id == app_file.app.id);
        let switched_off =
            of_app.flat_map(|(other, root)| other.app.switched_off(root, directories));
        found.extend(app_file.servers_with(root, switched_off.collect(), directories));
    }
    (found, unreadable)
}

impl App {
    fn switched_off(&self, root: &Value, directories: &Directories) -> Vec<String> {
        let lists = self
            .switched_off
            .iter()
            .filter_map(|key_path| value_at(root, key_path, Some(&directories.project)));
        let names = lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    }
}

impl AppFile {
    pub(super) fn variables<'a>(
        &'a self,
        root: &Value,
        directories: &'a Directories,
    ) -> VariableContext<'a> {
        let inputs = root["inputs"].as_array().into_iter().flatten();
        let input = |input: &Value| {
            let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
            (text("id"), text("description"))
        };
        VariableContext {
            syntax: self.app.variable_syntax,
            os: directories.os,
            home: &directories.home,
            project: self.project.as_deref(),
            inputs: inputs.map(input).collect::<BTreeMap<_, _>>(),
        }
    }

    /// Returns the servers in this file. Lists of disabled servers in the app's other files are
    /// ignored.
    pub(super) fn servers_in(&self, root: &Value, directories: &Directories) -> Vec<FoundServer> {
        let switched_off = self.app.switched_off(root, directories);
        self.servers_with(root, switched_off.into_iter().collect(), directories)
    }

    /// Returns whether the file consists of the entry of one server, which is named after the file
    /// (Continue).
    pub(super) fn is_single_server(&self, root: &Value, directories: &Directories) -> bool {
        locate_servers(root, self.servers, Some(&directories.project)).is_none()
            && root.as_object().is_some_and(is_server_entry)
    }

    fn servers_with(
        &self,
        root: &Value,
        switched_off: BTreeSet<String>,
        directories: &Directories,
    ) -> Vec<FoundServer> {
        let context = EntryContext { variables: self.variables(root, directories), switched_off };
        let found = if self.is_single_server(root, directories) {
            let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
            vec![(name.into_owned(), root.clone())]
        } else {
            read_servers(root, self.servers, Some(&directories.project)).unwrap_or_default()
        };
        found
            .into_iter()
            .filter_map(|(name, entry)| self.found_server(name, entry, &context))
            .collect()
    }
}

/// Returns the first key path that leads to servers, and the mapping or list there.
pub(super) fn locate_servers<'a>(
    root: &'a Value,
    key_paths: KeyPaths,
    project: Option<&Path>,
) -> Option<(&'static [&'static str], &'a Value)> {
    key_paths.iter().find_map(|key_path| {
        let servers = value_at(root, key_path, project).filter(|value| holds_servers(value))?;
        Some((*key_path, servers))
    })
}

/// Returns the servers at the first key path that leads to some, each with its name. In a list, an
/// entry has its name under `name`.
pub(super) fn read_servers(
    root: &Value,
    key_paths: KeyPaths,
    project: Option<&Path>,
) -> Option<Vec<(String, Value)>> {
    Some(match locate_servers(root, key_paths, project)?.1 {
        Value::Array(entries) => {
            let named = |entry: &Value| Some((entry["name"].as_str()?.to_owned(), entry.clone()));
            entries.iter().filter_map(named).collect()
        }
        Value::Object(entries) => {
            entries.iter().map(|(name, entry)| (name.clone(), entry.clone())).collect()
        }
        _ => Vec::new(),
    })
}

/// Returns whether a value is a mapping or list of servers.
///
/// An entry itself does not count, since a server can have the name of a key that holds all servers
/// in another app (`servers`). One invalid entry does not hide the others.
fn holds_servers(value: &Value) -> bool {
    match value {
        Value::Object(entries) => {
            !is_server_entry(entries)
                && (entries.is_empty() || entries.values().any(Value::is_object))
        }
        Value::Array(entries) => entries.iter().any(Value::is_object),
        _ => false,
    }
}

pub(super) fn value_at<'a>(
    root: &'a Value,
    key_path: &[&str],
    project: Option<&Path>,
) -> Option<&'a Value> {
    key_path.iter().try_fold(root, |value, step| match (*step, project) {
        (PROJECT_KEY, Some(project)) => value.get(project.to_string_lossy().as_ref()),
        (step, _) => value.get(step),
    })
}

/// Programs that run a package by name.
const PACKAGE_RUNNERS: [&str; 6] = ["npx", "bunx", "pnpx", "pnpm", "yarn", "npm"];

/// Returns whether the entry starts dormouse with all its servers, or is named `dormouse` and has a
/// URL on this machine.
fn is_dormouse(name: &str, members: &Map<String, Value>) -> bool {
    let text = |key: &str| members.get(key).and_then(Value::as_str).unwrap_or_default();
    let words = members.get("args").and_then(Value::as_array).into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    let program = text("command").rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
    let program = program.strip_suffix(".exe").or(program.strip_suffix(".cmd")).unwrap_or(&program);
    let package =
        words.iter().find(|word| !word.starts_with('-') && !matches!(**word, "dlx" | "exec"));
    let package = package.map(|word| word.split('@').next().unwrap_or_default());
    let is_us = program == "dormouse"
        || PACKAGE_RUNNERS.contains(&program) && package == Some("dormouse-mcp");
    let is_local =
        ["//127.0.0.1", "//localhost", "//[::1]"].iter().any(|host| text("url").contains(host));
    // `dormouse -- command` wraps a single server and counts as that server.
    is_us && !words.contains(&"--") || name == "dormouse" && is_local
}

/// Returns the entries of a config in dormouse's own keys. `kind` names the system that the config
/// came from.
pub(crate) fn servers_of_config(
    kind: &'static str,
    path: &Path,
    entries: Map<String, Value>,
) -> Vec<FoundServer> {
    let source = ServerSource { app: kind, id: "file", path: path.to_owned(), is_project: false };
    let classify = |name: &str, entry: Value| {
        let Value::Object(members) = entry else {
            return FoundEntry::Unusable("its entry is not an object".to_owned());
        };
        if members.get("enabled") == Some(&json!(false)) {
            FoundEntry::Disabled
        } else if is_dormouse(name, &members) {
            FoundEntry::Dormouse
        } else {
            FoundEntry::Ready(TranslatedEntry::from_own_config(members))
        }
    };
    let server = |(name, entry): (String, Value)| {
        let entry = classify(&name, entry);
        FoundServer { name, source: source.clone(), entry }
    };
    entries.into_iter().map(server).collect()
}
