//! A config file's text as a value whose every part can be located in the text.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{
    ConfigError, MAX_PROBLEMS, Problem,
    dialect::{Dialect, Notes, Translated},
    format::{Content, Format, Node, Unreadable, place},
    key_path::{Step, show_path},
    reading_rules::ReadingRules,
};

/// Maximum number of repeated keys that are reported: locating each costs a pass over the text.
const MAX_REPEATED: usize = 100;

/// A text that was read.
pub(super) struct Document<'a> {
    file: PathBuf,
    text: &'a str,
    /// The tree in the form of a dormouse config.
    root: Node,
    /// The original, if it belongs to another system.
    foreign: Option<Foreign>,
}

/// The config of another system.
struct Foreign {
    dialect: Dialect,
    root: Node,
    rules: ReadingRules,
    notes: Notes,
}

impl<'a> Document<'a> {
    /// Parses a text that may be empty.
    pub(super) fn parse_or_empty(text: &'a str, file: &Path) -> Result<Self, ConfigError> {
        Self::parse(text, file).or_else(|error| match Format::of(file).read(text) {
            Err(unreadable) if unreadable == Unreadable::empty() => {
                let root = Node::of_value(0, Value::Object(Map::new()));
                Ok(Self { file: file.to_owned(), text, root, foreign: None })
            }
            _ => Err(error),
        })
    }

    /// Parses the text in the format that the file's name tells.
    pub(super) fn parse(text: &'a str, file: &Path) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = Format::of(file).read(text).map_err(|Unreadable { at, message }| {
            let (line, column) = place(text, at);
            let file = file.to_owned();
            let problem = Problem { file, line, column, key_path: String::new(), message };
            ConfigError::Invalid(vec![problem])
        })?;
        let is_ours = file.file_stem().is_some_and(|stem| stem == "dormouse");
        let file = file.to_owned();
        let is_yaml = Format::of(&file) == Format::Yaml;
        let Some(dialect) = Dialect::of(&root, is_ours, is_yaml) else {
            return Ok(Self { file, text, root, foreign: None });
        };
        let Translated { root: ours, rules, notes } = dialect.translate(&root);
        Ok(Self { file, text, root: ours, foreign: Some(Foreign { dialect, root, rules, notes }) })
    }

    /// Returns the value in the form of a dormouse config.
    pub(super) fn value(&self) -> Value {
        self.root.to_value()
    }

    /// Returns the value as written, in the form of any system.
    pub(super) fn written(&self) -> Value {
        self.written_root().to_value()
    }

    fn written_root(&self) -> &Node {
        self.foreign.as_ref().map_or(&self.root, |foreign| &foreign.root)
    }

    pub(super) fn dialect(&self) -> Option<Dialect> {
        self.foreign.as_ref().map(|foreign| foreign.dialect)
    }

    pub(super) fn rules(&self) -> ReadingRules {
        self.foreign.as_ref().map(|foreign| foreign.rules).unwrap_or_default()
    }

    /// Returns the problems of a config of another system.
    pub(super) fn problems(&self) -> Vec<Problem> {
        self.notes(|notes| &notes.problems)
    }

    /// Returns the parts of such a config that dormouse ignores or treats differently.
    pub(super) fn warnings(&self) -> Vec<Problem> {
        self.notes(|notes| &notes.warnings)
    }

    fn notes(&self, which: impl Fn(&Notes) -> &Vec<(usize, String)>) -> Vec<Problem> {
        let notes = self.foreign.iter().flat_map(|foreign| which(&foreign.notes));
        let mut notes: Vec<_> = notes.collect();
        notes.sort_by_key(|(at, _)| *at);
        notes.truncate(MAX_PROBLEMS);
        let problem = |(at, message): &(usize, String)| self.problem_at(*at, &[], message.clone());
        notes.into_iter().map(problem).collect()
    }

    /// Returns a problem at the key of `path` (or the element, or the file).
    pub(super) fn problem(&self, path: &[Step], message: impl Into<String>) -> Problem {
        self.problem_at(self.locate(path), path, message.into())
    }

    fn problem_at(&self, at: usize, path: &[Step], message: String) -> Problem {
        let (line, column) = place(self.text, at);
        // A user who wrote the file for another system knows its keys.
        let written =
            self.foreign.as_ref().map(|foreign| path_to(&foreign.root, at).unwrap_or_default());
        let key_path = show_path(written.as_deref().unwrap_or(path));
        Problem { file: self.file.clone(), line, column, key_path, message }
    }

    /// Reports keys that occur twice in one mapping, of which the second would silently win.
    pub(super) fn repeated_keys(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.find_repeated(self.written_root(), &mut Vec::new(), &mut problems);
        problems
    }

    fn find_repeated(&self, node: &Node, path: &mut Vec<Step>, found: &mut Vec<Problem>) {
        match &node.content {
            Content::Mapping(members) => {
                let mut first_places: HashMap<&str, usize> = HashMap::new();
                for member in members {
                    path.push(Step::Key(member.key.clone()));
                    let first = *first_places.entry(&member.key).or_insert(member.at);
                    if first != member.at && found.len() < MAX_REPEATED {
                        let (line, column) = place(self.text, first);
                        let message = format!(
                            "duplicate key; the first one is at line {line}, column {column}"
                        );
                        found.push(self.problem_at(member.at, path, message));
                    }
                    self.find_repeated(&member.node, path, found);
                    path.pop();
                }
            }
            Content::Sequence(nodes) => {
                for (index, element) in nodes.iter().enumerate() {
                    path.push(Step::Index(index));
                    self.find_repeated(element, path, found);
                    path.pop();
                }
            }
            Content::Scalar(_) => {}
        }
    }

    /// Returns the byte of the value at `path`, or of its last part that exists.
    fn locate(&self, path: &[Step]) -> usize {
        let mut node = &self.root;
        let mut at = node.at;
        for step in path {
            match (step, &node.content) {
                (Step::Key(key), Content::Mapping(members)) => {
                    let member = members.iter().rev().find(|member| member.key == *key);
                    let Some(member) = member else { return at };
                    at = member.at;
                    node = &member.node;
                }
                (Step::Index(index), Content::Sequence(nodes)) => {
                    let Some(element) = nodes.get(*index) else { return at };
                    at = element.at;
                    node = element;
                }
                _ => return at,
            }
        }
        at
    }
}

/// Returns the path to the value or key at this byte. Of several, the first, to which aliases
/// refer.
fn path_to(node: &Node, at: usize) -> Option<Vec<Step>> {
    let below = |step: Step, node: &Node, start: usize| {
        let deeper = path_to(node, at).or_else(|| (start == at).then(Vec::new));
        deeper.map(|rest| [vec![step], rest].concat())
    };
    match &node.content {
        Content::Mapping(members) => members
            .iter()
            .find_map(|member| below(Step::Key(member.key.clone()), &member.node, member.at)),
        Content::Sequence(elements) => {
            let mut elements = elements.iter().enumerate();
            elements.find_map(|(index, element)| below(Step::Index(index), element, element.at))
        }
        Content::Scalar(_) => None,
    }
    .or_else(|| (node.at == at).then(Vec::new))
}
