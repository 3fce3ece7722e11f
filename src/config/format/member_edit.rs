//! Edits of single members of a file's text, in any format.

use serde_json::{Value, json};

/// One edit. The mapping that holds the member exists.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Adds a member, or replaces its value. In a list, adds an element at a position.
    Set {
        path: Vec<String>,
        value: Value,
    },
    Remove {
        path: Vec<String>,
    },
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("`{0}` cannot be edited in place, for example because it is an alias")]
    NotHere(String),
    /// For example an anchor that is also used elsewhere.
    #[error("the edit would change other parts as well")]
    ChangesMore,
}

impl Edit {
    /// The step to the end of a list, where an element is added.
    pub const END: &str = "-";

    /// Returns an edit that sets a member of a file with this value, and creates missing mappings
    /// on the path.
    pub fn put(root: &Value, path: &[&str], value: Value) -> Self {
        let mut parent = root;
        let mut there = 0;
        while there + 1 < path.len() && parent[path[there]].is_object() {
            parent = &parent[path[there]];
            there += 1;
        }
        let missing = path[there + 1..].iter().rev();
        let value = missing.fold(value, |value, step| json!({*step: value}));
        Self::Set { path: steps(&path[..=there]), value }
    }

    pub fn remove(path: &[&str]) -> Self {
        Self::Remove { path: steps(path) }
    }

    pub(super) fn path(&self) -> &[String] {
        match self {
            Self::Set { path, .. } | Self::Remove { path } => path,
        }
    }

    /// Returns the member's name, and the path of the mapping that holds it.
    pub(super) fn target(&self) -> (&str, &[String]) {
        let (name, parents) = self.path().split_last().expect("a path has a step");
        (name, parents)
    }

    pub(super) fn not_here(&self) -> EditError {
        EditError::NotHere(self.path().join("."))
    }

    /// Returns whether the edit removes something.
    pub(super) fn takes_away(&self, root: &Value) -> bool {
        let step_into = |value: &'_ Value, step: &String| match value {
            Value::Array(elements) => elements.get(step.parse::<usize>().ok()?).cloned(),
            value => value.get(step).cloned(),
        };
        self.path().iter().try_fold(root.clone(), |value, step| step_into(&value, step)).is_some()
    }

    pub(super) fn apply(&self, root: &mut Value) {
        let (name, parents) = self.target();
        let parent = parents.iter().try_fold(root, |value, step| value.get_mut(step));
        if let Some(Value::Array(elements)) = parent {
            match self {
                Self::Set { value, .. } => {
                    let position = name.parse().ok().filter(|at| *at <= elements.len());
                    elements.insert(position.unwrap_or(elements.len()), value.clone());
                }
                Self::Remove { .. } => {
                    let position = name.parse().ok().filter(|position| *position < elements.len());
                    position.map(|position: usize| elements.remove(position));
                }
            }
            return;
        }
        let Some(members) = parent.and_then(Value::as_object_mut) else { return };
        match self {
            Self::Set { value, .. } => {
                members.insert(name.to_owned(), value.clone());
            }
            Self::Remove { .. } => {
                members.shift_remove(name);
            }
        }
    }
}

fn steps(path: &[&str]) -> Vec<String> {
    path.iter().map(|step| (*step).to_owned()).collect()
}
