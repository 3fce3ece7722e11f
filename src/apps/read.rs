//! Finds the servers in the files of apps.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::{
    backups::Backups,
    entry::{Entry, is_entry},
    places::{Directories, PROJECT, Place, Scope, Ways},
    table::{ANY, APPS, App},
    variables::Meanings,
};
use crate::config::{Format, read_text};

/// A file in which an app keeps servers, or the part of it for one project. The file may be missing.
#[derive(Clone, Debug)]
pub struct Spot {
    pub app: &'static App,
    pub scope: Scope,
    pub path: PathBuf,
    pub(super) servers: Ways,
    /// Directory of the project that the file or part belongs to. `None` for [`FileScope::User`].
    pub(super) project: Option<PathBuf>,
    /// The entry that `dormouse connect` has written, if there is a record of it.
    pub(super) ours: Option<Value>,
}

/// The file in which a server was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the app, or of the other proxy whose config it is.
    pub app: &'static str,
    /// Id of the app on the command line.
    pub id: &'static str,
    pub path: PathBuf,
    /// Set if the file applies to all users of a project.
    pub is_project: bool,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.app)?;
        if self.is_project { f.write_str(" (project)") } else { Ok(()) }
    }
}

/// The servers that an app keeps for one project other than the current one. They stand in a file of
/// the user that holds the servers of several projects.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    pub app: &'static App,
    pub project: String,
    pub servers: Vec<String>,
}

impl std::fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { app, project, servers } = self;
        write!(f, "{} has servers for the project {project}: {}", app.name, servers.join(", "))
    }
}

/// A server that was found in a file.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub name: String,
    pub source: Source,
    pub fate: Fate,
}

/// An entry, classified by whether it can be imported.
#[derive(Clone, Debug)]
pub enum Fate {
    Ready(Entry),
    Disabled,
    /// The entry starts or connects to dormouse itself.
    Ourselves,
    /// The entry cannot be used, for this reason.
    Unusable(String),
}

impl App {
    /// Returns all files that the app may read, in the order of its locations.
    pub fn spots(&'static self, directories: &Directories) -> Vec<Spot> {
        let mut spots: Vec<Spot> = Vec::new();
        for place in self.places {
            for path in directories.files(place) {
                let spot = self.spot(place, path, directories);
                // If the working directory is the home directory, two locations can be one file.
                let is_known =
                    |known: &Spot| known.path == spot.path && known.servers == spot.servers;
                if !spots.iter().any(is_known) {
                    spots.push(spot);
                }
            }
        }
        spots
    }

    /// Returns the file that `connect` writes to: the first existing file of the scope, or its first
    /// file if none exists.
    pub fn own_spot(&'static self, scope: Scope, directories: &Directories) -> Option<Spot> {
        let places = self.places_of(scope).filter(|place| place.is_written);
        let files = places.flat_map(|place| {
            directories.files(place).into_iter().map(|path| self.spot(place, path, directories))
        });
        let files: Vec<Spot> = files.collect();
        let is_there = |spot: &&Spot| spot.path.is_file();
        files.iter().find(is_there).or(files.first()).cloned()
    }

    /// Returns the servers that the app keeps for projects other than the working directory.
    pub fn elsewhere(&'static self, directories: &Directories) -> Vec<Elsewhere> {
        let local = self.spots(directories).into_iter().filter(|spot| spot.scope == Scope::Local);
        let read = |spot: &Spot| {
            let text = read_text(&spot.path).ok()?;
            Format::of(&spot.path).value(&text).ok()
        };
        let of_spot = |spot: Spot| Some(spot.elsewhere(&read(&spot)?, directories));
        local.filter_map(of_spot).flatten().collect()
    }

    fn spot(&'static self, place: &Place, path: PathBuf, directories: &Directories) -> Spot {
        Spot {
            app: self,
            scope: place.scope,
            path,
            servers: place.servers.unwrap_or(self.servers),
            project: (place.scope != Scope::User).then(|| directories.project.clone()),
            ours: None,
        }
    }
}

impl Spot {
    /// Returns the apps' files and parts at this path.
    ///
    /// Apps are recognized by their locations, then by the end of the path, so that a copy of an
    /// app's file elsewhere is read as that app's. All other files are read as [`ANY`].
    pub fn named(path: &Path, directories: &Directories) -> Vec<Self> {
        let is_it = |spot: &Spot| {
            spot.path
                .canonicalize()
                .is_ok_and(|known| path.canonicalize().is_ok_and(|p| p == known))
        };
        let known: Vec<Self> =
            APPS.iter().flat_map(|app| app.spots(directories)).filter(is_it).collect();
        if !known.is_empty() {
            return known;
        }
        // The path ends like a file of an app, but is below another directory.
        let likes = |place: &&Place| !place.path.contains('*') && path.ends_with(place.path);
        let alike = APPS.iter().find_map(|app| Some((app, app.places.iter().find(likes)?)));
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let Some((app, place)) = alike else {
            let (scope, servers) = (Scope::User, ANY.servers);
            return vec![Self { app: &ANY, scope, path, servers, project: None, ours: None }];
        };
        let depth = place.path.split('/').count();
        let project = path.ancestors().nth(depth).filter(|_| place.scope == Scope::Project);
        let project = project.map(Path::to_owned);
        vec![Self { app, scope: place.scope, path, servers: app.servers, project, ours: None }]
    }

    /// Returns the parts of this file that hold servers only for the project in the working
    /// directory.
    pub(super) fn local_parts(&self, directories: &Directories) -> Vec<Self> {
        let all = match self.scope {
            Scope::User => self.app.spots(directories),
            Scope::Local | Scope::Project => Vec::new(),
        };
        let is_part = |spot: &Self| spot.scope == Scope::Local && spot.path == self.path;
        all.into_iter().filter(is_part).collect()
    }

    fn elsewhere(&self, root: &Value, directories: &Directories) -> Vec<Elsewhere> {
        let here = directories.project.to_string_lossy();
        let before = self.servers.first().map(|way| way.split(|step| *step == PROJECT));
        let projects = before.and_then(|mut parts| follow(root, parts.next()?, None));
        let others = projects.and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let elsewhere = |project: &String| {
            let there = Directories { project: PathBuf::from(project), ..directories.clone() };
            let part = Self { project: Some(there.project.clone()), ..self.clone() };
            let found = part.all(root, BTreeSet::new(), &there).into_iter();
            let found = found.filter(|candidate| matches!(candidate.fate, Fate::Ready(_)));
            let servers: Vec<String> = found.map(|candidate| candidate.name).collect();
            (!servers.is_empty()).then(|| Elsewhere {
                app: self.app,
                project: project.clone(),
                servers,
            })
        };
        others.filter(|project| **project != *here).filter_map(elsewhere).collect()
    }

    /// Loads the entry that `dormouse connect` has written into this file from the record.
    ///
    /// The entry may launch dormouse under another name or have the URL of another machine, so that
    /// its content alone does not identify it.
    pub fn remember(&mut self, backups: &Backups) {
        // `disconnect` and `prepare` report an unreadable record.
        self.ours = backups.of(&self.path).ok().flatten().map(|connection| connection.entry);
    }

    /// Returns whether the file applies to all users of a project while the app also has a file for
    /// the user alone.
    pub fn is_shared(&self) -> bool {
        let has_own = self.app.places_of(Scope::User).next().is_some();
        self.scope == Scope::Project && has_own
    }

    fn source(&self) -> Source {
        let (app, id, path) = (self.app.name, self.app.id, self.path.clone());
        Source { app, id, path, is_project: self.scope == Scope::Project }
    }

    fn candidate(&self, name: String, entry: Value, look: &Look<'_>) -> Option<Candidate> {
        let fate = self.fate(&name, entry, look)?;
        Some(Candidate { name, source: self.source(), fate })
    }

    fn fate(&self, name: &str, entry: Value, look: &Look<'_>) -> Option<Fate> {
        if self.ours.as_ref() == Some(&entry) {
            return Some(Fate::Ourselves);
        }
        let Value::Object(members) = entry else {
            return Some(Fate::Unusable("its entry is no object".to_owned()));
        };
        // Extensions that are built into Goose.
        if members.get("type").and_then(Value::as_str).is_some_and(|kind| PARTS.contains(&kind)) {
            return None;
        }
        if !is_entry(&members) {
            return Some(Fate::Unusable("it has neither a command nor a URL".to_owned()));
        }
        let mut entry = Entry::read(members, self.app.timeout, &look.meanings);
        if is_ourselves(name, &entry.members) {
            return Some(Fate::Ourselves);
        }
        if !entry.is_enabled || look.switched_off.contains(name) {
            return Some(Fate::Disabled);
        }
        if let Some(project) = look.meanings.project
            && entry.members.contains_key("command")
        {
            entry.begin_in(project);
        }
        Some(Fate::Ready(entry))
    }
}

/// Types of Goose extensions that are not MCP servers.
const PARTS: [&str; 4] = ["builtin", "platform", "frontend", "inline_python"];

/// The settings of a file that apply to each of its entries.
struct Look<'a> {
    meanings: Meanings<'a>,
    switched_off: BTreeSet<String>,
}

/// Returns the servers in the existing files, and the files that cannot be read, each with the
/// reason.
pub fn candidates(
    spots: &[Spot],
    directories: &Directories,
) -> (Vec<Candidate>, Vec<(PathBuf, String)>) {
    let mut unreadable = Vec::new();
    let mut read: Vec<(&Spot, Value)> = Vec::new();
    for spot in spots {
        match read_text(&spot.path) {
            Ok(text) => match Format::of(&spot.path).value(&text) {
                Ok(root) => read.push((spot, root)),
                Err(why) => unreadable.push((spot.path.clone(), why)),
            },
            Err(error) if spot.path.exists() => {
                unreadable.push((spot.path.clone(), error.to_string()));
            }
            Err(_) => {}
        }
    }
    unreadable.dedup();
    let mut found: Vec<Candidate> = Vec::new();
    for (spot, root) in &read {
        let of_app = read.iter().filter(|(other, _)| other.app.id == spot.app.id);
        let switched_off =
            of_app.flat_map(|(other, root)| other.app.switched_off(root, directories));
        found.extend(spot.all(root, switched_off.collect(), directories));
    }
    (found, unreadable)
}

impl App {
    fn switched_off(&self, root: &Value, directories: &Directories) -> Vec<String> {
        let lists = self
            .switched_off
            .iter()
            .filter_map(|way| follow(root, way, Some(&directories.project)));
        let names = lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    }
}

impl Spot {
    pub(super) fn meanings<'a>(
        &'a self,
        root: &Value,
        directories: &'a Directories,
    ) -> Meanings<'a> {
        let inputs = root["inputs"].as_array().into_iter().flatten();
        let input = |input: &Value| {
            let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
            (text("id"), text("description"))
        };
        Meanings {
            syntax: self.app.variables,
            os: directories.os,
            home: &directories.home,
            project: self.project.as_deref(),
            inputs: inputs.map(input).collect::<BTreeMap<_, _>>(),
        }
    }

    /// Returns the servers in this file. Lists of disabled servers in the app's other files are
    /// ignored.
    pub(super) fn all_of(&self, root: &Value, directories: &Directories) -> Vec<Candidate> {
        let switched_off = self.app.switched_off(root, directories);
        self.all(root, switched_off.into_iter().collect(), directories)
    }

    fn all(
        &self,
        root: &Value,
        switched_off: BTreeSet<String>,
        directories: &Directories,
    ) -> Vec<Candidate> {
        let look = Look { meanings: self.meanings(root, directories), switched_off };
        let found = servers(root, self.servers, Some(&directories.project));
        let found = found.unwrap_or_else(|| match root {
            // A file with a single entry, named after the file (Continue).
            Value::Object(members) if is_entry(members) => {
                let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
                vec![(name.into_owned(), root.clone())]
            }
            _ => Vec::new(),
        });
        found.into_iter().filter_map(|(name, entry)| self.candidate(name, entry, &look)).collect()
    }
}

/// Returns the first key path that leads to servers, and the mapping or list there.
pub(super) fn place<'a>(
    root: &'a Value,
    ways: Ways,
    project: Option<&Path>,
) -> Option<(&'static [&'static str], &'a Value)> {
    ways.iter().find_map(|way| {
        let place = follow(root, way, project).filter(|place| holds_servers(place))?;
        Some((*way, place))
    })
}

/// Returns the servers at the first key path that leads to some, each with its name. In a list, an
/// entry has its name under `name`.
pub(super) fn servers(
    root: &Value,
    ways: Ways,
    project: Option<&Path>,
) -> Option<Vec<(String, Value)>> {
    Some(match place(root, ways, project)?.1 {
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
fn holds_servers(place: &Value) -> bool {
    match place {
        Value::Object(entries) => {
            !is_entry(entries) && (entries.is_empty() || entries.values().any(Value::is_object))
        }
        Value::Array(entries) => entries.iter().any(Value::is_object),
        _ => false,
    }
}

pub(super) fn follow<'a>(
    root: &'a Value,
    way: &[&str],
    project: Option<&Path>,
) -> Option<&'a Value> {
    way.iter().try_fold(root, |value, step| match (*step, project) {
        (PROJECT, Some(project)) => value.get(project.to_string_lossy().as_ref()),
        (step, _) => value.get(step),
    })
}

/// Programs that run a package by name.
const RUNNERS: [&str; 6] = ["npx", "bunx", "pnpx", "pnpm", "yarn", "npm"];

/// Returns whether the entry starts dormouse with all its servers, or is named `dormouse` and has a
/// URL on this machine.
fn is_ourselves(name: &str, members: &Map<String, Value>) -> bool {
    let text = |key: &str| members.get(key).and_then(Value::as_str).unwrap_or_default();
    let words = members.get("args").and_then(Value::as_array).into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    let program = text("command").rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
    let program = program.strip_suffix(".exe").or(program.strip_suffix(".cmd")).unwrap_or(&program);
    let package =
        words.iter().find(|word| !word.starts_with('-') && !matches!(**word, "dlx" | "exec"));
    let package = package.map(|word| word.split('@').next().unwrap_or_default());
    let is_us =
        program == "dormouse" || RUNNERS.contains(&program) && package == Some("dormouse-mcp");
    let is_local =
        ["//127.0.0.1", "//localhost", "//[::1]"].iter().any(|app| text("url").contains(app));
    // `dormouse -- command` wraps a single server and counts as that server.
    is_us && !words.contains(&"--") || name == "dormouse" && is_local
}

/// Returns the entries of a config in dormouse's own keys. `kind` names the system that the config
/// came from.
pub fn of_config(kind: &'static str, path: &Path, entries: Map<String, Value>) -> Vec<Candidate> {
    let source = Source { app: kind, id: "file", path: path.to_owned(), is_project: false };
    let fate = |name: &str, entry: Value| {
        let Value::Object(members) = entry else {
            return Fate::Unusable("its entry is no object".to_owned());
        };
        if members.get("enabled") == Some(&json!(false)) {
            Fate::Disabled
        } else if is_ourselves(name, &members) {
            Fate::Ourselves
        } else {
            Fate::Ready(Entry::of_ours(members))
        }
    };
    let candidate = |(name, entry): (String, Value)| {
        let fate = fate(&name, entry);
        Candidate { name, source: source.clone(), fate }
    };
    entries.into_iter().map(candidate).collect()
}
