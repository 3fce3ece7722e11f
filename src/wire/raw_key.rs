//! The key of a member of a JSON object.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, Visitor};

/// A key, borrowed if it has no escapes. Kept as bytes, because an escaped lone surrogate is not
/// UTF-8.
pub(super) struct RawKey<'a>(Cow<'a, [u8]>);

impl RawKey<'_> {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the key as text. A lone surrogate becomes U+FFFD.
    pub(super) fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl<'de> Deserialize<'de> for RawKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = RawKey<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_bytes<E>(self, text: &'de [u8]) -> Result<Self::Value, E> {
                Ok(RawKey(Cow::Borrowed(text)))
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(RawKey(Cow::Borrowed(text.as_bytes())))
            }
            fn visit_bytes<E>(self, text: &[u8]) -> Result<Self::Value, E> {
                Ok(RawKey(Cow::Owned(text.to_owned())))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(RawKey(Cow::Owned(text.as_bytes().to_owned())))
            }
        }
        deserializer.deserialize_bytes(KeyVisitor)
    }
}
