//! A fixture server as an entry of a config.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// A fixture server with its script and its config entry.
#[must_use]
#[derive(Clone)]
pub struct Server {
    pub name: String,
    script: Map<String, Value>,
    entry: Map<String, Value>,
    /// Commands of a shell that becomes the server after them.
    shell_setup: Option<String>,
}

impl Server {
    /// Creates a lazy server that behaves well.
    pub fn lazy(name: &str) -> Self {
        Self::eager(name).set("description", json!(format!("The {name} server. Use when testing.")))
    }

    pub fn eager(name: &str) -> Self {
        Self { name: name.to_owned(), script: Map::new(), entry: Map::new(), shell_setup: None }
    }

    /// Sets a member of the fixture's script.
    pub fn script(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.script.insert(member.to_owned(), value.into());
        self
    }

    /// Sets a member of the server's config entry.
    pub fn set(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.entry.insert(member.to_owned(), value.into());
        self
    }

    /// Runs commands in the shell that becomes the server.
    pub fn after(self, commands: &str) -> Self {
        Self { shell_setup: Some(commands.to_owned()), ..self }
    }

    /// Returns the entry, for a config that the test writes itself.
    pub fn at(&self, directory: &Path) -> Value {
        self.entry(directory)
    }

    pub(super) fn entry(&self, directory: &Path) -> Value {
        let mut script = self.script.clone();
        script.insert("log".to_owned(), json!(self.log(directory)));
        let mut entry = self.entry.clone();
        if let Some(commands) = &self.shell_setup {
            let commands = format!("{commands}; exec \"$0\" \"$1\"");
            entry.insert("command".to_owned(), json!("sh"));
            let script = Value::Object(script.clone()).to_string();
            entry.insert("args".to_owned(), json!(["-c", commands, fixture(), script]));
        }
        if !entry.contains_key("url") {
            entry.entry("command").or_insert_with(|| json!(fixture()));
            entry.entry("args").or_insert_with(|| json!([Value::Object(script).to_string()]));
        }
        Value::Object(entry)
    }

    pub fn log(&self, directory: &Path) -> PathBuf {
        let name: String = self.name.chars().filter(char::is_ascii_alphanumeric).collect();
        directory.join(format!("{name}.log"))
    }
}

/// Returns the path of the fixture, which cargo builds as an example next to the program.
pub fn fixture() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_dormouse"));
    let directory = program.parent().expect("it lies in a directory");
    directory.join("examples").join("fixture")
}
