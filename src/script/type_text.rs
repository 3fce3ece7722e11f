//! Types of TypeScript as text.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use crate::{
    base::is_hidden,
    wire::{Raw, edit},
};

/// Maximum length of a type, in bytes; a longer one is `unknown`.
const MAX_TYPE_BYTES: usize = 4000;

/// A type on one line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TypeText {
    text: String,
    /// True if it has to be in brackets before `[]`.
    is_union: bool,
}

impl TypeText {
    pub(super) fn word(word: &str) -> Self {
        Self { text: word.to_owned(), is_union: false }
    }

    pub(super) fn unknown() -> Self {
        Self::word("unknown")
    }

    pub(super) fn array(self) -> Self {
        let text = if self.is_union { format!("({})[]", self.text) } else { self.text + "[]" };
        Self { text, is_union: false }
    }

    /// Returns the type of an object with any names.
    pub(super) fn record(self) -> Self {
        Self { text: format!("Record<string, {}>", self.text), is_union: false }
    }

    /// Returns the type of an object. Members: the name, whether it may be missing, the type, and a
    /// comment.
    pub(super) fn object(
        members: impl Iterator<Item = (String, bool, Self, Option<String>)>,
    ) -> Self {
        let members = members.map(|(name, is_optional, member, comment)| {
            let comment = comment.map_or(String::new(), |comment| format!("/** {comment} */ "));
            let mark = if is_optional { "?" } else { "" };
            format!("{comment}{}{mark}: {member}", property(&name))
        });
        let text = format!("{{ {} }}", members.collect::<Vec<_>>().join("; "));
        if text.len() > MAX_TYPE_BYTES { Self::unknown() } else { Self { text, is_union: false } }
    }
}

impl fmt::Display for TypeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the union of types, each once.
pub(super) fn union(types: impl Iterator<Item = TypeText>) -> TypeText {
    let mut seen = BTreeSet::new();
    let types: Vec<TypeText> = types.filter(|it| seen.insert(it.text.clone())).collect();
    match types.as_slice() {
        [] => TypeText::unknown(),
        [only] => only.clone(),
        _ if types.contains(&TypeText::unknown()) => TypeText::unknown(),
        _ => {
            let texts: Vec<String> = types.iter().map(ToString::to_string).collect();
            let text = texts.join(" | ");
            let is_long = text.len() > MAX_TYPE_BYTES;
            if is_long { TypeText::unknown() } else { TypeText { text, is_union: true } }
        }
    }
}

/// Returns the type of one value.
pub(super) fn literal(value: &Value) -> TypeText {
    match value {
        Value::Array(_) => TypeText::unknown().array(),
        Value::Object(_) => TypeText::unknown().record(),
        Value::String(text) => TypeText::word(&quoted(text)),
        _ => TypeText::word(&value.to_string()),
    }
}

/// Returns the name of a member, in quotes if it needs them.
pub(crate) fn property(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { quoted(name) }
}

/// Returns text as a literal, with escapes in place of characters that nobody sees.
pub(super) fn quoted(text: &str) -> String {
    edit::escaped(&Raw::encode(text), is_hidden).to_string()
}

/// Returns whether a name can be written after a dot.
pub(super) fn is_identifier(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    name.chars().all(is_part) && name.starts_with(|c: char| !c.is_ascii_digit())
}
