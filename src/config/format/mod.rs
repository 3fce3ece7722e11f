//! The three formats of a config: each is read into the same tree of located values, and edited in
//! place with every other byte preserved.

mod edit_text;
mod json;
mod member_edit;
mod toml;
mod yaml;

use std::path::Path;

pub(crate) use member_edit::{Edit, EditError};
use serde_json::{Map, Value};

/// The format of a file, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON with comments and trailing commas.
    Json,
    Yaml,
    Toml,
}

/// A value of a file, and the byte at which it begins.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Scalar(Value),
    Sequence(Vec<Node>),
    Mapping(Vec<Member>),
}

/// A key with its value, and the byte at which the key begins.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) at: usize,
    pub(super) node: Node,
}

/// The reason that a text cannot be read, and the byte of the error.
#[derive(Debug, PartialEq)]
pub(super) struct Unreadable {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Unreadable {
    pub(super) fn empty() -> Self {
        Self { at: 0, message: "the file is empty".to_owned() }
    }
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

    pub(super) fn read(self, text: &str) -> Result<Node, Unreadable> {
        match self {
            Self::Json => json::read(text),
            Self::Yaml => yaml::read(text),
            Self::Toml => toml::read(text),
        }
    }
}

impl Node {
    /// Returns the number of values in the tree, itself included.
    fn size(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(_) => 0,
            Content::Sequence(nodes) => nodes.iter().map(Self::size).sum(),
            Content::Mapping(members) => members.iter().map(|member| member.node.size()).sum(),
        }
    }

    /// Returns a tree whose values all have one place.
    pub(super) fn of_value(at: usize, value: Value) -> Self {
        let content = match value {
            Value::Array(elements) => Content::Sequence(
                elements.into_iter().map(|value| Self::of_value(at, value)).collect(),
            ),
            Value::Object(members) => {
                let member = |(key, value)| Member { key, at, node: Self::of_value(at, value) };
                Content::Mapping(members.into_iter().map(member).collect())
            }
            scalar => Content::Scalar(scalar),
        };
        Self { at, content }
    }

    pub(super) fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::Sequence(nodes) => nodes.iter().map(Self::to_value).collect(),
            Content::Mapping(members) => {
                let members = members.iter();
                let members: Map<String, Value> =
                    members.map(|member| (member.key.clone(), member.node.to_value())).collect();
                Value::Object(members)
            }
        }
    }
}

/// Returns the line and column, from 1, of a byte offset.
pub(super) fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigError, Environment, parse};

    const FORMS: [(&str, &str); 3] = [
        (
            "x.json",
            "// é\n{\n  \"surface\": \"direct\",\n  \"mcpServers\": {\"a\": {\"command\": \"x\", \
                \"args\": [\"1\", TAIL]}}\n}",
        ),
        ("x.yml", "# é\nsurface: direct\nmcpServers:\n  a: {command: x, args: ['1', TAIL]}\n"),
        (
            "x.toml",
            "# é\nsurface = \"direct\"\n[mcpServers]\na = { command = \"x\", args = [\"1\", TAIL] \
                }\n",
        ),
    ];

    #[test]
    fn all_formats_have_the_same_meaning() {
        let values = FORMS.map(|(name, text)| {
            let text = text.replace("TAIL", "\"2\"");
            Format::of(Path::new(name)).read(&text).unwrap().to_value()
        });
        assert_eq!(values[0]["mcpServers"]["a"]["args"][1], "2");
        assert_eq!(values[0], values[1]);
        assert_eq!(values[0], values[2]);
    }

    #[test]
    fn problems_have_places_in_all_formats() {
        let environment = Environment::default();
        for (name, text) in FORMS {
            let wrong = text.replace("TAIL", "7");
            let Err(ConfigError::Invalid(problems)) = parse(&wrong, Path::new(name), &environment)
            else {
                panic!("{name} is valid")
            };
            let problem = &problems[0];
            let line = wrong.lines().nth(problem.line - 1).unwrap();
            let rest: String = line.chars().skip(problem.column - 1).collect();
            assert!(rest.starts_with('7'), "{name}: {problem}");
            assert_eq!(problem.key_path, "mcpServers.a.args[1]", "{name}");
        }
    }
}
