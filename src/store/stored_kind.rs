//! The number of the stored values of one kind, and what is wrong with them.

use serde::Serialize;

/// The stored values of one kind.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredKind {
    pub kind: &'static str,
    pub values: u64,
    pub bytes: u64,
    /// Values that were sealed with another key than the first one, and can be opened.
    pub sealed_with_older_key: u64,
    /// Values that were sealed with a key that the config does not have, or are damaged.
    pub unreadable: u64,
    /// Values of a newer version of dormouse.
    pub newer: u64,
}

impl StoredKind {
    /// Returns texts that tell which values need attention.
    pub(super) fn shortcomings(&self) -> impl Iterator<Item = String> {
        let Self { kind, sealed_with_older_key, unreadable, newer, .. } = self;
        [
            (sealed_with_older_key, "were sealed with an older key, which storeKeys must keep"),
            (unreadable, "cannot be read: storeKeys lacks their key, or they are damaged"),
            (newer, "were written by a newer dormouse, and cannot be read by this one"),
        ]
        .into_iter()
        .filter(|(count, _)| **count > 0)
        .map(move |(count, what)| format!("{count} of the {kind} {what}"))
        .collect::<Vec<_>>()
        .into_iter()
    }
}
