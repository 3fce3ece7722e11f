//! The hash of a token, by which its sender is recognized.

use sha2::{Digest as _, Sha256};

use crate::{identity::Person, proxy::User};

/// The hash of the token that a request was admitted with; `None` if none was needed. Sessions are
/// bound to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TokenHash(Option<[u8; 32]>);

impl TokenHash {
    /// Returns the value that all tokens of a person have in common.
    pub(super) fn of_person(person: &Person) -> Self {
        Self(Some(person.fingerprint()))
    }

    pub(super) fn user(self) -> User {
        User(self.0)
    }

    pub(super) fn of(token: &str) -> Self {
        Self(Some(Sha256::digest(token).into()))
    }
}
