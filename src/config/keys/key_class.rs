//! The class of a key, which its field declares in an attribute:
//! `#[schemars(extend("x-class" = AT_ONCE))]`.

use serde::{Deserialize, Serialize};

/// The member of a key's schema that holds its class. It is not published.
pub(in crate::config) const CLASS: &str = "x-class";

/// The treatment of a key, of its value and of a change of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::config) struct KeyClass {
    pub(in crate::config) effect: ChangeEffect,
    /// True if any text below the key may be a secret.
    pub(in crate::config) is_secret: bool,
    /// True if references to variables are expanded. In a server's entry they always are.
    pub(in crate::config) is_expanded: bool,
}

/// The effect of a change on a running dormouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::config) enum ChangeEffect {
    AtOnce,
    /// The servers concerned are connected again.
    Reconnects,
    /// None before the next start.
    AtNextStart,
}

/// The class of a key whose change takes effect at once.
pub(super) const AT_ONCE: KeyClass = KeyClass::new(ChangeEffect::AtOnce);
/// The class of a key whose change makes servers connect again.
pub(super) const RECONNECTS: KeyClass = KeyClass::new(ChangeEffect::Reconnects);
/// The class of a key whose change takes effect at the next start.
pub(super) const AT_NEXT_START: KeyClass = KeyClass::new(ChangeEffect::AtNextStart);

impl KeyClass {
    const fn new(effect: ChangeEffect) -> Self {
        Self { effect, is_secret: false, is_expanded: false }
    }

    /// Returns the class of a key below which any text may be a secret.
    pub(super) const fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }

    /// Returns the class of a key in which variables are expanded.
    pub(super) const fn expanded(self) -> Self {
        Self { is_expanded: true, ..self }
    }
}
