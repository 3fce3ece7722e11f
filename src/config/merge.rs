//! Brings the `tools` of a config up to what its servers have (DESIGN.md section 6, `refresh`).

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::{
    ConfigError, ConfigFile, Dialect, ToolRules, TrustStore,
    characters::is_invisible,
    document::Document,
    format::{Edit, Format},
    tools::is_glob,
};

/// How the tools of a server differ from those that the config names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolChanges {
    /// The server has them, and nothing in the config speaks of them.
    pub added: Vec<String>,
    /// The config names them, and the server has them no more.
    pub gone: Vec<String>,
    /// They are marked as gone, and the server has them.
    pub back: Vec<String>,
    /// New, and not to be written: as a key they would be a glob, or cannot be a key at all.
    pub left_out: Vec<String>,
}

/// Longer ones are no keys in YAML (1.2.2, section 7.4.2).
const LONGEST_KEY: usize = 1000;

/// Whether a tool's name can stand in a config and mean that tool alone.
fn can_be_key(tool: &str) -> bool {
    !is_glob(tool) && tool.len() <= LONGEST_KEY && !tool.contains(is_invisible)
}

impl ToolChanges {
    /// What to write of a server that has these tools. What a glob decides is left to it.
    pub fn between(rules: &ToolRules, tools: &[&str]) -> Self {
        let named: Vec<(&str, bool)> = rules.named().collect();
        let new = tools.iter().filter(|tool| !rules.decide(tool)).map(|tool| (*tool).to_owned());
        let (added, left_out) = new.partition(|tool| can_be_key(tool));
        let of = |is_wanted: &dyn Fn(bool, bool) -> bool| {
            let wanted =
                named.iter().filter(|(tool, stale)| is_wanted(tools.contains(tool), *stale));
            wanted.map(|(tool, _)| (*tool).to_owned()).collect()
        };
        Self {
            added,
            left_out,
            gone: of(&|is_there, is_stale| !is_there && !is_stale),
            back: of(&|is_there, is_stale| is_there && is_stale),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.gone.is_empty() && self.back.is_empty()
    }

    /// The edits that bring them into a file in which this server has this entry.
    fn edits(&self, server: &str, dialect: Option<Dialect>, entry: &Value) -> Vec<Edit> {
        let servers = dialect.map_or("mcpServers", Dialect::servers_key);
        let place = |steps: &[&str]| -> Vec<String> {
            let base = [servers, server, "tools"];
            base.iter().chain(steps).map(|step| (*step).to_owned()).collect()
        };
        if self.is_empty() {
            return Vec::new();
        }
        // So that multi-mcp can still read its own file.
        let on = if dialect.is_some() { json!({"enabled": true}) } else { Value::Bool(true) };
        let Some(switches) = entry.get("tools").filter(|switches| !switches.is_null()) else {
            let switches: Map<String, Value> =
                self.added.iter().map(|tool| (tool.clone(), on.clone())).collect();
            return vec![Edit::Set { path: place(&[]), value: Value::Object(switches) }];
        };
        let enabled = |tool: &String| Edit::Set { path: place(&[tool]), value: on.clone() };
        let stale = |tool: &String| match &switches[tool] {
            Value::Bool(enabled) => {
                let value = json!({"enabled": enabled, "stale": true});
                Edit::Set { path: place(&[tool]), value }
            }
            _ => Edit::Set { path: place(&[tool, "stale"]), value: Value::Bool(true) },
        };
        let fresh = |tool: &String| Edit::Remove { path: place(&[tool, "stale"]) };
        let added = self.added.iter().map(enabled);
        added.chain(self.gone.iter().map(stale)).chain(self.back.iter().map(fresh)).collect()
    }
}

/// Why a config is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("cannot edit the entry of {server:?}, which has to be done by hand: {reason}")]
    Edit { server: String, reason: String },
    #[error("the config was changed meanwhile; say it again")]
    Changed,
    #[error("{0} may not be written")]
    ReadOnly(PathBuf),
    #[error("cannot write the config")]
    Write(#[from] io::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl ConfigFile {
    /// The file with these changes in it. Only what has to be different is.
    ///
    /// # Errors
    /// When the server's entry is written in a way that cannot be edited without touching more.
    pub fn with_tools(&self, server: &str, changes: &ToolChanges) -> Result<Self, MergeError> {
        let by_hand = |reason: String| MergeError::Edit { server: server.to_owned(), reason };
        let text = str::from_utf8(&self.text).map_err(|error| by_hand(error.to_string()))?;
        let document = Document::parse(text, &self.path)?;
        let dialect = document.dialect();
        if let Some(dialect) = dialect.filter(|dialect| !dialect.has_tools()) {
            let name = dialect.name();
            return Err(by_hand(format!("a config of {name} has no place for tools")));
        }
        let servers = dialect.map_or("mcpServers", Dialect::servers_key);
        let edits = changes.edits(server, dialect, &document.written()[servers][server]);
        let edited = Format::of(&self.path).edit(text, &edits);
        let edited = edited.map_err(|error| by_hand(error.to_string()))?;
        Ok(Self { text: edited.into_bytes(), ..self.clone() })
    }

    /// The file with this server in it, in the place of one of that name or behind all others.
    ///
    /// # Errors
    /// When that cannot be done without touching more, or the file is one of another system.
    pub fn with_server(&self, name: &str, entry: Value) -> Result<Self, MergeError> {
        self.edited(name, |servers, value| {
            if value[servers].is_object() {
                Edit::Set { path: vec![servers.to_owned(), name.to_owned()], value: entry }
            } else {
                Edit::Set { path: vec![servers.to_owned()], value: json!({name: entry}) }
            }
        })
    }

    /// The file without this server.
    ///
    /// # Errors
    /// As for `with_server`.
    pub fn without_server(&self, name: &str) -> Result<Self, MergeError> {
        self.edited(name, |servers, _| Edit::Remove {
            path: vec![servers.to_owned(), name.to_owned()],
        })
    }

    /// The file with this server switched on or off.
    ///
    /// # Errors
    /// As for `with_server`.
    pub fn with_enabled(&self, name: &str, enabled: bool) -> Result<Self, MergeError> {
        self.edited(name, |servers, _| Edit::Set {
            path: [servers, name, "enabled"].map(str::to_owned).to_vec(),
            value: Value::Bool(enabled),
        })
    }

    /// `edit` gets the key under which the servers are, and the file's value.
    fn edited(
        &self,
        server: &str,
        edit: impl FnOnce(&str, &Value) -> Edit,
    ) -> Result<Self, MergeError> {
        let by_hand = |reason: String| MergeError::Edit { server: server.to_owned(), reason };
        let text = str::from_utf8(&self.text).map_err(|error| by_hand(error.to_string()))?;
        let document = Document::parse(text, &self.path)?;
        if let Some(dialect) = document.dialect() {
            return Err(by_hand(format!("the file is a config of {}", dialect.name())));
        }
        let edit = edit("mcpServers", &document.value());
        let edited = Format::of(&self.path).edit(text, &[edit]);
        let edited = edited.map_err(|error| by_hand(error.to_string()))?;
        Ok(Self { text: edited.into_bytes(), ..self.clone() })
    }

    /// Writes a file where there is none.
    ///
    /// # Errors
    /// When there is one, or it cannot be written.
    pub fn create(path: &Path, text: &str) -> io::Result<()> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        File::create_new(path)?.write_all(text.as_bytes())
    }

    /// Puts this in the place of `before`. Whoever trusted that trusts this.
    ///
    /// # Errors
    /// When the file is not as it was read before, or cannot be written.
    pub fn replace(&self, before: &Self, store: Option<&TrustStore>) -> Result<(), MergeError> {
        // A link stays a link.
        let path = self.path.canonicalize()?;
        let permissions = path.metadata()?.permissions();
        if permissions.readonly() {
            return Err(MergeError::ReadOnly(path));
        }
        // Whoever waits for it finds then that the file is another.
        let lock = File::open(&path)?;
        super::lock(&lock)?;
        let directory = path.parent().unwrap_or(&path);
        let mut written = tempfile::NamedTempFile::new_in(directory)?;
        written.write_all(&self.text)?;
        written.as_file().set_permissions(permissions)?;
        written.as_file().sync_all()?;
        if std::fs::read(&path)? != before.text {
            return Err(MergeError::Changed);
        }
        written.persist(&path).map_err(|error| error.error)?;
        if let Some(store) = store
            && before.is_trusted(store)
        {
            self.trust(store)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "merge_layouts.rs"]
mod layouts;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn changes(switches: &Value, tools: &[&str]) -> ToolChanges {
        let switches = serde_json::from_value(switches.clone()).unwrap();
        ToolChanges::between(&ToolRules::new(switches), tools)
    }

    #[test]
    fn new_tools_are_enabled_gone_ones_marked_and_settings_kept() {
        let switches = json!({"kept": false, "gone": true, "old": {"stale": true}, "*_x": false});
        assert_eq!(
            changes(&switches, &["kept", "old", "new", "one_x"]),
            ToolChanges {
                added: vec!["new".to_owned()],
                gone: vec!["gone".to_owned()],
                back: vec!["old".to_owned()],
                left_out: Vec::new(),
            }
        );
        assert!(changes(&json!({"*": false, "a": true}), &["a", "b"]).is_empty());
    }

    #[test]
    fn a_server_cannot_switch_its_tools_on_by_what_it_calls_others() {
        let long = "x".repeat(LONGEST_KEY + 1);
        let names = ["*el_all", "?el_all", "*", "a\nb", long.as_str(), "del_all", "good"];
        let found = changes(&json!({"del*": false}), &names);
        assert_eq!((found.added, found.left_out.len()), (vec!["good".to_owned()], 5));
    }
}
