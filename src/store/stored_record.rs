//! The form of a value in a shared store: a head that is compared without reading the rest, and the
//! sealed value.

use super::StoredVersion;
use crate::base::{SEAL_MARK_BYTES, SealMark, SealUse, SealingKeys};

/// The form that this version of dormouse writes. A newer one may write a greater number, and its
/// values are neither read nor replaced.
pub(super) const FORM: u8 = 1;
/// Size of the head: the form, the state, and the revision.
pub(super) const HEAD_BYTES: usize = 2 + REVISION_BYTES;
/// Size of the head and of what sealing adds.
pub(super) const OVERHEAD_BYTES: u64 = 256;

/// Size of the head, and of the mark of the key that sealed the value.
pub(super) const MARK_BYTES: usize = HEAD_BYTES + SEAL_MARK_BYTES;

const REVISION_BYTES: usize = 16;
const IS_VALUE: u8 = 0;
const IS_REMOVED: u8 = 1;

/// A value as it is in the store.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StoredRecord {
    Value(Vec<u8>),
    /// The value was removed, and has not vanished.
    Removed,
}

/// The state of a record, by its first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordMark {
    /// A value that the first key has sealed.
    Current,
    /// A value that another key of the config has sealed.
    OlderKey,
    Removed,
    Unreadable,
    /// A record of a newer version of dormouse.
    Newer,
}

/// The reason that bytes of the store are not a value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RecordProblem {
    #[error("a newer version of dormouse wrote this value (form {0}); upgrade this one")]
    Newer(u8),
    #[error("the value is damaged, or was sealed with a key that storeKeys does not have")]
    Sealed,
}

/// Returns a value as it is stored, with a new revision. `place`: the name of the value.
pub(super) fn encode(keys: &SealingKeys, place: &str, value: &[u8]) -> (Vec<u8>, StoredVersion) {
    let sealed = keys.seal(SealUse::StoredValue, place.as_bytes(), value);
    with_head(IS_VALUE, &sealed)
}

/// Returns the record that takes the place of a removed value.
pub(super) fn encode_removal() -> (Vec<u8>, StoredVersion) {
    with_head(IS_REMOVED, &[])
}

fn with_head(state: u8, body: &[u8]) -> (Vec<u8>, StoredVersion) {
    let mut revision = [0; REVISION_BYTES];
    getrandom::fill(&mut revision).expect("the system has random numbers");
    let record = [&[FORM, state], revision.as_slice(), body].concat();
    (record, StoredVersion::of_revision(revision))
}

/// Reads a record.
///
/// # Errors
/// If it is not a value that was sealed with one of these keys for this place.
pub(super) fn decode(
    keys: &SealingKeys,
    place: &str,
    record: &[u8],
) -> Result<StoredRecord, RecordProblem> {
    let (head, body) = record.split_at_checked(HEAD_BYTES).ok_or(RecordProblem::Sealed)?;
    match (head[0], head[1]) {
        (form, _) if form > FORM => Err(RecordProblem::Newer(form)),
        (FORM, IS_REMOVED) => Ok(StoredRecord::Removed),
        (FORM, IS_VALUE) => {
            let opened = keys.open(SealUse::StoredValue, place.as_bytes(), body);
            opened.map(StoredRecord::Value).ok_or(RecordProblem::Sealed)
        }
        _ => Err(RecordProblem::Sealed),
    }
}

/// Returns what the first [`MARK_BYTES`] of a record tell.
pub(super) fn mark_of(keys: &SealingKeys, mark: &[u8]) -> RecordMark {
    let Some((head, sealed)) = mark.split_at_checked(HEAD_BYTES) else {
        return RecordMark::Unreadable;
    };
    match (head[0], head[1]) {
        (form, _) if form > FORM => RecordMark::Newer,
        (FORM, IS_REMOVED) => RecordMark::Removed,
        (FORM, IS_VALUE) => match keys.mark(sealed) {
            SealMark::FirstKey => RecordMark::Current,
            SealMark::OtherKey => RecordMark::OlderKey,
            SealMark::Unknown => RecordMark::Unreadable,
        },
        _ => RecordMark::Unreadable,
    }
}

/// Returns the version of a record from its head; the default if there is none.
pub(super) fn version_of(head: &[u8]) -> StoredVersion {
    let revision = head.get(2..HEAD_BYTES).and_then(|bytes| bytes.try_into().ok());
    revision.map(StoredVersion::of_revision).unwrap_or_default()
}

/// Returns whether a head is that of a value, and not of a removal.
pub(super) fn is_value(head: &[u8]) -> bool {
    head.get(1) == Some(&IS_VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> SealingKeys {
        SealingKeys::new(["a key with at least thirty-two bytes"]).unwrap()
    }

    #[test]
    fn value_is_read_back_only_at_its_place() {
        let (record, version) = encode(&keys(), "logins/a", b"value");
        assert_eq!(decode(&keys(), "logins/a", &record), Ok(StoredRecord::Value(b"value".into())));
        assert_eq!(decode(&keys(), "logins/b", &record), Err(RecordProblem::Sealed));
        assert_eq!(version_of(&record[..HEAD_BYTES]), version);
        assert_ne!(version, encode(&keys(), "logins/a", b"value").1);
        assert_eq!(version_of(b""), StoredVersion::default());
    }

    #[test]
    fn removal_is_no_value_and_no_absence() {
        let (record, version) = encode_removal();
        assert_eq!(decode(&keys(), "a", &record), Ok(StoredRecord::Removed));
        assert!(!is_value(&record) && version != StoredVersion::default());
    }

    #[test]
    fn newer_or_damaged_records_are_refused() {
        let (mut record, _) = encode(&keys(), "a", b"value");
        record[0] = FORM + 1;
        assert_eq!(decode(&keys(), "a", &record), Err(RecordProblem::Newer(FORM + 1)));
        for damaged in [&b""[..], b"\x01", &[0; HEAD_BYTES], &[1; HEAD_BYTES - 1], b"{\"a\": 1}"] {
            let problem = decode(&keys(), "a", damaged).unwrap_err();
            let expected = match damaged.first() {
                Some(form) if *form > FORM && damaged.len() >= HEAD_BYTES => {
                    RecordProblem::Newer(*form)
                }
                _ => RecordProblem::Sealed,
            };
            assert_eq!(problem, expected);
        }
    }
}
