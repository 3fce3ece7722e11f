//! Limits that are written as a number, of which 0 stands for no limit.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[expect(clippy::ref_option, reason = "the signature is that of serde")]
pub(super) fn serialize<S: Serializer>(
    limit: &Option<usize>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    limit.unwrap_or_default().serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<usize>, D::Error> {
    usize::deserialize(deserializer).map(|limit| Some(limit).filter(|limit| *limit > 0))
}
