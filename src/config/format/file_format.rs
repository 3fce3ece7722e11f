//! The format of a config file.

use std::path::Path;

use serde_json::{Map, Value};

use super::{
    json,
    node::{Node, Unreadable, place},
    toml, yaml,
};

/// The format of a file, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON with comments and trailing commas.
    Json,
    Yaml,
    Toml,
}

impl Format {
    pub fn of(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_lowercase).as_deref() {
            Some("yaml" | "yml") => Self::Yaml,
            Some("toml") => Self::Toml,
            _ => Self::Json,
        }
    }

    /// Returns the value of a text; an empty text has no members.
    ///
    /// # Errors
    /// The place and the reason, if the text cannot be read.
    pub fn value(self, text: &str) -> Result<Value, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self.read(text) {
            Ok(node) => Ok(node.to_value()),
            Err(error) if error == Unreadable::empty() => Ok(Value::Object(Map::new())),
            Err(Unreadable { at, message }) => {
                let (line, column) = place(text, at);
                Err(format!("{line}:{column}: {message}"))
            }
        }
    }

    pub(in crate::config) fn read(self, text: &str) -> Result<Node, Unreadable> {
        match self {
            Self::Json => json::read(text),
            Self::Yaml => yaml::read(text),
            Self::Toml => toml::read(text),
        }
    }
}
