//! The history of one value, and the search for an order of its operations that explains it.

use std::{collections::HashSet, fmt::Write as _};

use crate::store::StoredVersion;

/// An operation with the moments of its call and its return.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) thread: usize,
    pub(super) operation: Operation,
}

/// An operation with its result; `None` for an outcome that is an error.
#[derive(Debug)]
pub(super) enum Operation {
    Get(Option<String>),
    Version(StoredVersion),
    Put {
        value: String,
        is_done: bool,
    },
    Append {
        before: Option<String>,
        after: String,
        is_done: bool,
    },
    Update {
        seen: StoredVersion,
        value: String,
        is_done: Option<bool>,
    },
    Remove(Option<bool>),
    /// A file that was replaced while it was cut still has its value.
    Cut {
        is_done: bool,
    },
}

impl Operation {
    pub(super) fn has_failed(&self) -> bool {
        match self {
            Self::Put { is_done, .. } | Self::Append { is_done, .. } => !is_done,
            Self::Update { is_done, .. } => is_done.is_none(),
            _ => false,
        }
    }

    pub(super) fn is_refused(&self) -> bool {
        matches!(self, Self::Update { is_done: Some(false), .. })
    }
}

/// What a store remembers of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// Nothing: a removed value has the version of one that there never was.
    Forgotten,
    /// A version of its own.
    Recorded,
}

/// A value, or nothing after this number of recorded removals.
type Content = (Option<String>, u32);

/// A value, and the contents of the versions that were seen until now. Each write has a value of
/// its own, so that two versions are equal only if their contents are.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct ValueState {
    value: Option<String>,
    removals: u32,
    versions: Vec<(usize, Content)>,
}

impl ValueState {
    /// Returns the states after an operation; none if it cannot have its result in this state.
    fn after(
        &self,
        operation: &Operation,
        versions: &[StoredVersion],
        removal: Removal,
    ) -> Vec<Self> {
        let unchanged = || self.clone();
        let with = |value: Option<String>| Self { value, ..self.clone() };
        let one = |is_possible: bool, state: Self| is_possible.then_some(state).into_iter();
        let number = |version: &StoredVersion| versions.iter().position(|other| other == version);
        match operation {
            Operation::Get(value) => one(*value == self.value, unchanged()).collect(),
            Operation::Version(version) => {
                self.with_version(number(version).unwrap_or_default()).into_iter().collect()
            }
            Operation::Put { value, is_done: true } => vec![with(Some(value.clone()))],
            Operation::Put { is_done: false, .. } | Operation::Cut { is_done: false } => {
                vec![unchanged()]
            }
            Operation::Append { before, after, is_done } => {
                let state = if *is_done { with(Some(after.clone())) } else { unchanged() };
                one(*before == self.value, state).collect()
            }
            Operation::Update { seen, value, is_done } => {
                let is_current = self.content_of(number(seen)) == Some(&self.content());
                match is_done {
                    Some(true) => one(is_current, with(Some(value.clone()))).collect(),
                    Some(false) => one(!is_current, unchanged()).collect(),
                    None => vec![unchanged()],
                }
            }
            Operation::Remove(Some(was_there)) => {
                let recorded = u32::from(removal == Removal::Recorded);
                let removed = Self { removals: self.removals + recorded, ..with(None) };
                one(*was_there == self.value.is_some(), removed).collect()
            }
            Operation::Remove(None) => vec![unchanged()],
            Operation::Cut { is_done: true } => {
                let cut = self.value.as_ref().map(|_| String::new());
                vec![with(cut), unchanged()]
            }
        }
    }

    fn content(&self) -> Content {
        (self.value.clone(), self.removals)
    }

    fn content_of(&self, version: Option<usize>) -> Option<&Content> {
        let known = self.versions.iter().find(|(number, _)| Some(*number) == version);
        known.map(|(_, content)| content)
    }

    /// Returns the state in which this is the version of the content; `None` if the version is
    /// known as that of another content, or the content has another version.
    fn with_version(&self, number: usize) -> Option<Self> {
        let content = self.content();
        let is_own = |(other, known): &(usize, Content)| (*other == number) == (*known == content);
        if !self.versions.iter().all(is_own) {
            return None;
        }
        let mut state = self.clone();
        if self.content_of(Some(number)).is_none() {
            state.versions.push((number, content));
            state.versions.sort();
        }
        Some(state)
    }
}

/// Checks that the operations can have happened one after the other, each between its call and its
/// return (Wing and Gong, Testing and Verifying Concurrent Objects, 1993).
pub(super) fn check_history(mut history: Vec<Recorded>, removal: Removal) -> Result<(), String> {
    history.sort_by_key(|one| one.began);
    let mut versions = vec![StoredVersion::default()];
    for one in &history {
        if let Operation::Version(version) = one.operation
            && !versions.contains(&version)
        {
            versions.push(version);
        }
    }
    // The version of a value that does not exist is known.
    let start = ValueState { versions: vec![(0, (None, 0))], ..ValueState::default() };
    let visited = HashSet::new();
    let mut search = Search { history: &history, versions: &versions, removal, visited };
    if search.can_continue(0, &start) {
        return Ok(());
    }
    let mut lines = String::from("no order explains this history:\n");
    for Recorded { began, ended, thread, operation } in &history {
        let _ = writeln!(lines, "  {began:3}..{ended:3} thread {thread}: {operation:?}");
    }
    Err(lines)
}

struct Search<'a> {
    history: &'a [Recorded],
    versions: &'a [StoredVersion],
    removal: Removal,
    /// The sets of operations, as bits, and the states from which the search has gone on.
    visited: HashSet<(u64, ValueState)>,
}

impl Search<'_> {
    /// Returns whether the operations that are not in `done` can follow in some order.
    fn can_continue(&mut self, done: u64, state: &ValueState) -> bool {
        let history = self.history;
        let rest = || history.iter().enumerate().filter(|(at, _)| done & (1 << at) == 0);
        let Some(first_end) = rest().map(|(_, one)| one.ended).min() else { return true };
        if !self.visited.insert((done, state.clone())) {
            return false;
        }
        let mut next = rest().filter(|(_, one)| one.began < first_end);
        next.any(|(at, one)| {
            let states = state.after(&one.operation, self.versions, self.removal);
            states.into_iter().any(|state| self.can_continue(done | 1 << at, &state))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(operations: impl IntoIterator<Item = (u64, u64, Operation)>) -> bool {
        let recorded = |(began, ended, operation)| Recorded { began, ended, thread: 0, operation };
        check_history(operations.into_iter().map(recorded).collect(), Removal::Forgotten).is_ok()
    }

    #[test]
    fn old_value_may_be_read_only_while_the_write_goes_on() {
        let put = || Operation::Put { value: "a".to_owned(), is_done: true };
        let nothing = || Operation::Get(None);
        assert!(checked([(0, 3, put()), (1, 2, nothing())]));
        assert!(!checked([(0, 1, put()), (2, 3, nothing())]));
    }

    #[test]
    fn one_version_has_one_value() {
        let put = |value: &str| Operation::Put { value: value.to_owned(), is_done: true };
        let version = |mark: &[u8]| Operation::Version(StoredVersion::of(mark));
        let history = |second| {
            [(0, 1, put("a")), (2, 3, version(b"1")), (4, 5, put("b")), (6, 7, version(second))]
        };
        assert!(checked(history(b"2")));
        assert!(!checked(history(b"1")));
    }
}
