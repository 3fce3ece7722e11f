//! The servers in the files of hosts.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::{
    entry::{Entry, is_entry},
    places::{Directories, PROJECT, Place, Scope, Ways},
    table::{ANY, HOSTS, Host},
    variables::Meanings,
};
use crate::config::Format;

/// A file in which a host has servers, or would have.
#[derive(Clone, Debug)]
pub struct Spot {
    pub host: &'static Host,
    pub scope: Scope,
    pub path: PathBuf,
    pub(super) servers: Ways,
}

/// Where a server was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The host's name, or the kind of the file.
    pub host: &'static str,
    /// As on the command line.
    pub id: &'static str,
    pub path: PathBuf,
}

/// A server that was found in a file.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub name: String,
    pub source: Source,
    pub fate: Fate,
}

/// What may become of it.
#[derive(Clone, Debug)]
pub enum Fate {
    Ready(Entry),
    Disabled,
    /// It is dormouse.
    Ourselves,
    /// Why it cannot be used.
    Unusable(String),
}

impl Host {
    /// The files that it may have, those that are written to first.
    pub fn spots(&'static self, directories: &Directories) -> Vec<Spot> {
        let mut spots: Vec<Spot> = Vec::new();
        for place in self.places {
            for path in directories.files(place) {
                let spot = self.spot(place, path);
                // The home can be the working directory.
                let is_known =
                    |known: &Spot| known.path == spot.path && known.servers == spot.servers;
                if !spots.iter().any(is_known) {
                    spots.push(spot);
                }
            }
        }
        spots
    }

    /// The file that is written to: the first that is there, else the first.
    pub fn own_spot(&'static self, scope: Scope, directories: &Directories) -> Option<Spot> {
        let places = self.places_of(scope).filter(|place| place.is_written);
        let files = places.flat_map(|place| {
            directories.files(place).into_iter().map(|path| self.spot(place, path))
        });
        let files: Vec<Spot> = files.collect();
        let is_there = |spot: &&Spot| spot.path.is_file();
        files.iter().find(is_there).or(files.first()).cloned()
    }

    fn spot(&'static self, place: &Place, path: PathBuf) -> Spot {
        Spot {
            host: self,
            scope: place.scope,
            path,
            servers: place.servers.unwrap_or(self.servers),
        }
    }
}

impl Spot {
    /// A file that was named: one of a host's, by its place, or of any host.
    pub fn named(path: &Path, directories: &Directories) -> Vec<Self> {
        let is_it = |spot: &Spot| {
            spot.path
                .canonicalize()
                .is_ok_and(|known| path.canonicalize().is_ok_and(|p| p == known))
        };
        let known: Vec<Self> =
            HOSTS.iter().flat_map(|host| host.spots(directories)).filter(is_it).collect();
        if !known.is_empty() {
            return known;
        }
        // A file of the kind that a host has, wherever it lies.
        let ends_like = |place: &Place| !place.path.contains('*') && path.ends_with(place.path);
        let host = HOSTS.iter().find(|host| host.places.iter().any(ends_like)).unwrap_or(&ANY);
        vec![Self { host, scope: Scope::User, path: path.to_owned(), servers: host.servers }]
    }

    /// A file that belongs to a project speaks of it.
    fn project<'a>(&self, directories: &'a Directories) -> Option<&'a Path> {
        (self.scope != Scope::User).then_some(directories.project.as_path())
    }

    fn source(&self) -> Source {
        Source { host: self.host.name, id: self.host.id, path: self.path.clone() }
    }

    fn candidate(&self, name: String, entry: Value, look: &Look<'_>) -> Option<Candidate> {
        let fate = self.fate(&name, entry, look)?;
        Some(Candidate { name, source: self.source(), fate })
    }

    fn fate(&self, name: &str, entry: Value, look: &Look<'_>) -> Option<Fate> {
        let Value::Object(members) = entry else {
            return Some(Fate::Unusable("its entry is no object".to_owned()));
        };
        // Parts of Goose itself.
        if members.get("type").and_then(Value::as_str).is_some_and(|kind| PARTS.contains(&kind)) {
            return None;
        }
        if !is_entry(&members) {
            return Some(Fate::Unusable("it has neither a command nor a URL".to_owned()));
        }
        let mut entry = Entry::read(members, self.host.timeout, &look.meanings);
        if is_ourselves(name, &entry.members) {
            return Some(Fate::Ourselves);
        }
        if !entry.is_enabled || look.switched_off.contains(name) {
            return Some(Fate::Disabled);
        }
        if let Some(project) = look.meanings.project
            && entry.members.contains_key("command")
        {
            // It was started there.
            let own = entry.members.get("cwd").and_then(Value::as_str).unwrap_or_default();
            let directory =
                if own.starts_with("${") { PathBuf::from(own) } else { project.join(own) };
            let directory = directory.to_string_lossy();
            entry.members.insert("cwd".to_owned(), json!(directory.trim_end_matches('/')));
        }
        Some(Fate::Ready(entry))
    }
}

/// Extensions of Goose that are no servers.
const PARTS: [&str; 4] = ["builtin", "platform", "frontend", "inline_python"];

/// What a file's entries are read with.
struct Look<'a> {
    meanings: Meanings<'a>,
    switched_off: BTreeSet<String>,
}

/// The servers in those of the files that are there, and why others cannot be read.
pub fn candidates(
    spots: &[Spot],
    directories: &Directories,
) -> (Vec<Candidate>, Vec<(PathBuf, String)>) {
    let mut unreadable = Vec::new();
    let mut read: Vec<(&Spot, Value)> = Vec::new();
    for spot in spots {
        match std::fs::read_to_string(&spot.path) {
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
        let of_host = read.iter().filter(|(other, _)| other.host.id == spot.host.id);
        let switched_off =
            of_host.flat_map(|(other, root)| other.host.switched_off(root, directories));
        let look = Look {
            meanings: spot.meanings(root, directories),
            switched_off: switched_off.collect(),
        };
        found.extend(spot.all(root, &look, directories));
    }
    (found, unreadable)
}

impl Host {
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
    pub(super) fn meanings<'a>(&self, root: &Value, directories: &'a Directories) -> Meanings<'a> {
        let inputs = root["inputs"].as_array().into_iter().flatten();
        let input = |input: &Value| {
            let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
            (text("id"), text("description"))
        };
        Meanings {
            syntax: self.host.variables,
            os: directories.os,
            home: &directories.home,
            project: self.project(directories),
            inputs: inputs.map(input).collect::<BTreeMap<_, _>>(),
        }
    }

    /// The servers in this file alone.
    pub(super) fn all_of(&self, root: &Value, directories: &Directories) -> Vec<Candidate> {
        let switched_off = self.host.switched_off(root, directories).into_iter().collect();
        let look = Look { meanings: self.meanings(root, directories), switched_off };
        self.all(root, &look, directories)
    }

    fn all(&self, root: &Value, look: &Look<'_>, directories: &Directories) -> Vec<Candidate> {
        let found = servers(root, self.servers, Some(&directories.project));
        let found = found.unwrap_or_else(|| match root {
            // One entry, named as its file is (Continue).
            Value::Object(members) if is_entry(members) => {
                let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
                vec![(name.into_owned(), root.clone())]
            }
            _ => Vec::new(),
        });
        found.into_iter().filter_map(|(name, entry)| self.candidate(name, entry, look)).collect()
    }
}

/// The servers, by name, where one of the ways leads; in a list each has its name in it.
pub(super) fn servers(
    root: &Value,
    ways: Ways,
    project: Option<&Path>,
) -> Option<Vec<(String, Value)>> {
    let place =
        ways.iter().find_map(|way| follow(root, way, project).filter(|it| holds_servers(it)))?;
    Some(match place {
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

/// A server may be called as the mapping of servers is elsewhere.
pub(super) fn holds_servers(place: &Value) -> bool {
    match place {
        Value::Object(entries) => !is_entry(entries) && entries.values().all(Value::is_object),
        Value::Array(entries) => entries.iter().all(Value::is_object),
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

/// Whether the entry starts dormouse, or leads to one on this machine.
fn is_ourselves(name: &str, members: &Map<String, Value>) -> bool {
    let is_us = |word: &str| {
        let file = word.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
        let file = file.strip_suffix(".exe").unwrap_or(&file);
        file.split('@').next() == Some("dormouse")
    };
    let words = members.get("args").and_then(Value::as_array).into_iter().flatten();
    let mut words =
        members.get("command").into_iter().chain(words.take(3)).filter_map(Value::as_str);
    let url = members.get("url").and_then(Value::as_str).unwrap_or_default();
    let is_local = ["//127.0.0.1", "//localhost", "//[::1]"].iter().any(|host| url.contains(host));
    words.any(is_us) || name == "dormouse" && is_local
}

/// The entries of a config of ours, as candidates.
pub fn of_config(kind: &'static str, path: &Path, entries: Map<String, Value>) -> Vec<Candidate> {
    let source = Source { host: kind, id: "file", path: path.to_owned() };
    let fate = |name: &str, entry: Value| {
        let Value::Object(members) = entry else {
            return Fate::Unusable("its entry is no object".to_owned());
        };
        if members.get("enabled") == Some(&json!(false)) {
            Fate::Disabled
        } else if is_ourselves(name, &members) {
            Fate::Ourselves
        } else {
            Fate::Ready(Entry { members, is_enabled: true, needed: Vec::new(), notes: Vec::new() })
        }
    };
    let candidate = |(name, entry): (String, Value)| {
        let fate = fate(&name, entry);
        Candidate { name, source: source.clone(), fate }
    };
    entries.into_iter().map(candidate).collect()
}
