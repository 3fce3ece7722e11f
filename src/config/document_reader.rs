//! Reads parts of a config file, and collects their problems.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    Environment, LaunchContext, MAX_PROBLEMS, Problem,
    document::Document,
    expand::{MAX_EXPANSION, drop_unset, expand, reference_to, unclosed},
    key_path::Step,
    keys::{KeyGroup, classes},
    plain_words::in_plain_words,
    reading_rules::{ReadingRules, Variables},
    schema,
    unknown_key::unknown_key,
};

/// Maximum number of bad values that are reported of an object: for each, the object is read once
/// more.
const MAX_BAD_VALUES: usize = 100;

/// Reads the parts of a document, expands their variables, and collects the problems.
pub(super) struct DocumentReader<'a, 'text> {
    document: &'a Document<'text>,
    environment: &'a Environment,
    rules: ReadingRules,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    /// The number of bytes to which variables may still expand.
    room: usize,
}

impl<'a, 'text> DocumentReader<'a, 'text> {
    pub(super) fn new(document: &'a Document<'text>, environment: &'a Environment) -> Self {
        Self {
            document,
            environment,
            rules: document.rules(),
            problems: [document.repeated_keys(), document.problems()].concat(),
            warnings: document.warnings(),
            room: MAX_EXPANSION,
        }
    }

    pub(super) fn launch_context(&self) -> &'a Arc<LaunchContext> {
        self.environment.launch_context()
    }

    /// Returns the warnings if there are no problems.
    ///
    /// # Errors
    /// The problems in their order in the file.
    pub(super) fn finish(mut self) -> Result<Vec<Problem>, Vec<Problem>> {
        if self.room == 0 {
            self.report(&[], format!("the variables expand to more than {MAX_EXPANSION} bytes"));
        }
        let Self { mut problems, warnings, .. } = self;
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems.dedup();
        if problems.is_empty() { Ok(warnings) } else { Err(problems) }
    }

    pub(super) fn report(&mut self, path: &[Step], message: impl Into<String>) {
        if !self.is_full() {
            self.problems.push(self.document.problem(path, message));
        }
    }

    pub(super) fn warn(&mut self, path: &[Step], message: impl Into<String>) {
        // The limit is that of problems.
        if self.warnings.len() < MAX_PROBLEMS {
            self.warnings.push(self.document.problem(path, message));
        }
    }

    fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    /// Removes the keys of a group from `object`, which is the root, expands the variables that
    /// they may have, and reads them. `written` is the root before variables were expanded.
    pub(super) fn group<G: KeyGroup>(&mut self, written: &Value, object: &mut Value) -> G {
        let mut value = G::take(object);
        // The classes are a part of the schema, which takes time to make.
        let is_empty = value.as_object().is_none_or(Map::is_empty);
        let classes = if is_empty { Vec::new() } else { classes::<G>() };
        for (key, _) in classes.into_iter().filter(|(_, class)| class.is_expanded) {
            if let Some(value) = value.get_mut(&key) {
                self.expand_setting(&key, value);
            }
        }
        let group: G = self.read(&[], written, value.clone());
        for (path, message) in group.problems(&value) {
            self.report(&path, message);
        }
        group
    }

    /// Reads `value`, which is at `base`, and reports every unknown key and every bad value in it.
    ///
    /// serde stops at the first bad value, so that this removes it and reads the rest again.
    /// `written` is the value before variables were expanded: messages must not show their values.
    pub(super) fn read<T: DeserializeOwned + Default>(
        &mut self,
        base: &[Step],
        written: &Value,
        mut value: Value,
    ) -> T {
        if !value.is_object() {
            self.report(base, "expected an object");
            return T::default();
        }
        let mut reported = None;
        for _ in 0..MAX_BAD_VALUES {
            let mut unknown = Vec::new();
            let mut track = serde_path_to_error::Track::new();
            let deserializer = serde_path_to_error::Deserializer::new(value.clone(), &mut track);
            let read = serde_ignored::deserialize(deserializer, |path| unknown.push(steps(&path)));
            let error = match read {
                Ok(read) => {
                    self.report_unknown(base, &unknown);
                    return read;
                }
                Err(error) => error,
            };
            let found: Vec<Step> = track.path().iter().filter_map(step).collect();
            if is_null_of_known_key(base, &found, &value) && neutralise(&mut value, &found) {
                continue;
            }
            let message = match at(written, &found) {
                Some(Value::String(text)) if text.contains("${") => {
                    format!("the expanded value of {text:?} is not valid here")
                }
                _ => in_plain_words(&error.to_string()),
            };
            // The replacement of a value may be of a wrong type too.
            if reported.as_ref() != Some(&found) {
                self.report(&[base, &found].concat(), message);
            }
            if found.is_empty() || self.is_full() || !neutralise(&mut value, &found) {
                self.report_unknown(base, &unknown);
                break;
            }
            reported = Some(found);
        }
        T::default()
    }

    fn report_unknown(&mut self, base: &[Step], unknown: &[Vec<Step>]) {
        for path in unknown.iter().take(MAX_PROBLEMS) {
            let path = [base, path.as_slice()].concat();
            let Some((Step::Key(key), parent)) = path.split_last() else { continue };
            let message = unknown_key(key, &schema::known_keys(parent));
            self.report(&path, message);
        }
    }

    /// Expands the value of a setting for all servers. An undefined variable is a problem: in a
    /// token it would admit every host, or none.
    fn expand_setting(&mut self, key: &str, value: &mut Value) {
        let at = [Step::Key(key.to_owned())];
        self.check_references(&at, value, &[]);
        let undefined = self.expand(value);
        if !undefined.is_empty() {
            self.report(&at, format!("undefined: {}", undefined.join(", ")));
        }
    }

    /// Expands the entry of a server, which is at `at`, and returns the variables that it lacks.
    pub(super) fn expand_entry(&mut self, at: &[Step], entry: &mut Value) -> Vec<String> {
        let written = entry.clone();
        if self.rules.variables != Variables::Nowhere {
            drop_unset(entry, self.environment);
        }
        let undefined = self.expand(entry);
        self.check_references(at, &written, &undefined);
        undefined
    }

    /// Expands references to variables, and returns the undefined ones that are required.
    fn expand(&mut self, value: &mut Value) -> Vec<String> {
        if self.rules.variables == Variables::Nowhere {
            return Vec::new();
        }
        let undefined = expand(value, self.environment, &mut self.room);
        if self.rules.keeps_undefined { Vec::new() } else { undefined }
    }

    /// Reports references that have no end, and warns of references to undefined variables, without
    /// which a server is unavailable. `at` is the path of `written`.
    fn check_references(&mut self, at: &[Step], written: &Value, undefined: &[String]) {
        if self.rules.variables == Variables::Nowhere {
            return;
        }
        for path in unclosed(written) {
            self.report(&[at, &path].concat(), "\"${\" has no closing \"}\"");
        }
        for variable in undefined {
            // Servers report themselves which variables they lack.
            let path = reference_to(written, variable).unwrap_or_default();
            let message = format!(
                "undefined variable {variable}: the server is unavailable until it is set in the \
                    environment or in .env"
            );
            self.warn(&[at, &path].concat(), message);
        }
    }
}

/// Returns the part of `value` at `path`.
fn at<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

/// Returns whether the value is a `null` that stands for the default of its key.
fn is_null_of_known_key(base: &[Step], found: &[Step], value: &Value) -> bool {
    let Some((Step::Key(key), parents)) = found.split_last() else { return false };
    at(value, found) == Some(&Value::Null)
        && schema::known_keys(&[base, parents].concat()).contains(key)
}

/// Replaces a bad value, so that the rest can be read.
fn neutralise(value: &mut Value, path: &[Step]) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let parent = parents.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    });
    match (last, parent) {
        (Step::Key(key), Some(Value::Object(members))) => members.shift_remove(key).is_some(),
        (Step::Index(index), Some(Value::Array(elements))) => match elements.get_mut(*index) {
            // Every array of the file holds strings or objects; an empty element keeps the
            // positions of later ones.
            Some(element) if element.is_string() => {
                *element = Value::Object(Map::new());
                true
            }
            Some(element) if !element.is_object() => {
                *element = Value::String(String::new());
                true
            }
            _ => false,
        },
        _ => false,
    }
}

fn step(segment: &serde_path_to_error::Segment) -> Option<Step> {
    use serde_path_to_error::Segment;
    match segment {
        Segment::Map { key } => Some(Step::Key(key.clone())),
        Segment::Seq { index } => Some(Step::Index(*index)),
        Segment::Enum { .. } | Segment::Unknown => None,
    }
}

fn steps(path: &serde_ignored::Path<'_>) -> Vec<Step> {
    use serde_ignored::Path;
    let (parent, own) = match path {
        Path::Root => return Vec::new(),
        Path::Map { parent, key } => (parent, Some(Step::Key(key.clone()))),
        Path::Seq { parent, index } => (parent, Some(Step::Index(*index))),
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => (parent, None),
    };
    steps(parent).into_iter().chain(own).collect()
}
