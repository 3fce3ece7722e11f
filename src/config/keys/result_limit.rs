//! The limit of a tool's result.

use std::num::NonZeroUsize;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The size above which a result is cut. In JSON: `null` for the default, 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultLimit {
    /// The limit of the surface, if it has one.
    #[default]
    Default,
    /// None: results are passed on as their server wrote them.
    Off,
    /// This number of bytes, on every surface and endpoint.
    Bytes(NonZeroUsize),
}

impl Serialize for ResultLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = match self {
            Self::Default => None,
            Self::Off => Some(0),
            Self::Bytes(bytes) => Some(bytes.get()),
        };
        bytes.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ResultLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Option::<usize>::deserialize(deserializer)?;
        Ok(bytes
            .map_or(Self::Default, |bytes| NonZeroUsize::new(bytes).map_or(Self::Off, Self::Bytes)))
    }
}
