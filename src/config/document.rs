//! A config file's text as a value in which every place can be found again.

use std::path::{Path, PathBuf};

use jsonc_parser::{
    ParseOptions, ast,
    common::{Range, Ranged},
    parse_to_ast,
};
use serde_json::{Map, Value};

use super::{ConfigError, Problem};

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// A way to a part of a value, shown as `mcpServers.docs.args[1]`.
pub(super) fn show_path(path: &[Step]) -> String {
    let mut shown = String::new();
    for step in path {
        match step {
            Step::Key(key) => {
                if !shown.is_empty() {
                    shown.push('.');
                }
                shown.push_str(key);
            }
            Step::Index(index) => shown.push_str(&format!("[{index}]")),
        }
    }
    shown
}

pub(super) struct Document<'a> {
    file: PathBuf,
    text: &'a str,
    tree: ast::Value<'a>,
}

impl<'a> Document<'a> {
    /// Reads JSON with comments and trailing commas.
    pub(super) fn parse(text: &'a str, file: &Path) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let problem = |offset: usize, message: String| {
            let (line, column) = place(text, offset);
            let file = file.to_owned();
            let problem = Problem { file, line, column, key_path: String::new(), message };
            ConfigError::Invalid(vec![problem])
        };
        let parsed = parse_to_ast(text, &jsonc_parser::CollectOptions::default(), &options())
            .map_err(|error| problem(error.range().start, format!("not JSON: {}", error.kind())))?;
        let tree = parsed.value.ok_or_else(|| problem(0, "the file is empty".to_owned()))?;
        Ok(Self { file: file.to_owned(), text, tree })
    }

    pub(super) fn value(&self) -> Value {
        to_value(&self.tree)
    }

    /// A problem at the key of `path` (or the element, or the file).
    pub(super) fn problem(&self, path: &[Step], message: impl Into<String>) -> Problem {
        let (line, column) = place(self.text, self.locate(path).start);
        let key_path = show_path(path);
        Problem { file: self.file.clone(), line, column, key_path, message: message.into() }
    }

    /// Keys that stand twice in one object; the second would silently win.
    pub(super) fn repeated_keys(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.find_repeated(&self.tree, &mut Vec::new(), &mut problems);
        problems
    }

    fn find_repeated(&self, node: &ast::Value<'_>, path: &mut Vec<Step>, found: &mut Vec<Problem>) {
        match node {
            ast::Value::Object(object) => {
                for (index, property) in object.properties.iter().enumerate() {
                    let name = property.name.as_str();
                    path.push(Step::Key(name.to_owned()));
                    if object.properties[..index].iter().any(|other| other.name.as_str() == name) {
                        let (line, column) = place(self.text, property.range.start);
                        found.push(Problem {
                            file: self.file.clone(),
                            line,
                            column,
                            key_path: show_path(path),
                            message: "this key stands here twice".to_owned(),
                        });
                    }
                    self.find_repeated(&property.value, path, found);
                    path.pop();
                }
            }
            ast::Value::Array(array) => {
                for (index, element) in array.elements.iter().enumerate() {
                    path.push(Step::Index(index));
                    self.find_repeated(element, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    fn locate(&self, path: &[Step]) -> Range {
        let mut node = &self.tree;
        let mut range = node.range();
        for step in path {
            match (step, node) {
                (Step::Key(key), ast::Value::Object(object)) => {
                    let property = object.properties.iter().rev().find(|p| p.name.as_str() == key);
                    let Some(property) = property else { return range };
                    range = property.range;
                    node = &property.value;
                }
                (Step::Index(index), ast::Value::Array(array)) => {
                    let Some(element) = array.elements.get(*index) else { return range };
                    range = element.range();
                    node = element;
                }
                _ => return range,
            }
        }
        range
    }
}

fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Line and column from 1, of a byte offset.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

fn to_value(node: &ast::Value<'_>) -> Value {
    match node {
        ast::Value::StringLit(string) => Value::String(string.value.to_string()),
        // A number that is none for serde (1e999) stays visible as text, and is refused by type.
        ast::Value::NumberLit(number) => serde_json::from_str(number.value)
            .unwrap_or_else(|_| Value::String(number.value.to_owned())),
        ast::Value::BooleanLit(boolean) => Value::Bool(boolean.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(array) => Value::Array(array.elements.iter().map(to_value).collect()),
        ast::Value::Object(object) => {
            let members: Map<_, _> = object
                .properties
                .iter()
                .map(|property| (property.name.as_str().to_owned(), to_value(&property.value)))
                .collect();
            Value::Object(members)
        }
    }
}
