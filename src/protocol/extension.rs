//! The extensions of MCP (SEP-2133), as hosts and servers declare them in
//! `capabilities.extensions`.

use crate::wire::{Raw, edit};

/// Tasks of 2026-07-28 (SEP-2663).
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";
/// MCP Apps (SEP-1865).
pub(crate) const UI: &str = "io.modelcontextprotocol/ui";
/// Skills (SEP-2640).
pub(crate) const SKILLS: &str = "io.modelcontextprotocol/skills";

/// Returns the names of the extensions that `capabilities` declare.
pub(crate) fn declared(capabilities: &Raw) -> Vec<String> {
    let extensions = edit::get(capabilities, "extensions").unwrap_or_else(Raw::empty_object);
    edit::entries(&extensions).into_iter().map(|(name, _)| name).collect()
}

/// Returns whether `capabilities` declare the extension `name`.
pub(crate) fn declares(capabilities: &Raw, name: &str) -> bool {
    edit::get(capabilities, "extensions").is_some_and(|all| edit::get(&all, name).is_some())
}

/// Returns `capabilities` without the extension `name`.
pub(crate) fn without(capabilities: &Raw, name: &str) -> Raw {
    match edit::get(capabilities, "extensions") {
        Some(all) if edit::get(&all, name).is_some() => {
            edit::set(capabilities, "extensions", &edit::without(&all, &[name]))
        }
        _ => capabilities.clone(),
    }
}

/// Returns whether a method belongs to the extension `name`: `skills/get` belongs to
/// `io.modelcontextprotocol/skills`.
pub(crate) fn has_method(name: &str, method: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    method.split_once('/').is_some_and(|(first, _)| first == last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_read_from_capabilities_and_removed() {
        let text =
            r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{},"com.x/y":{"n":1e2}}}"#;
        let capabilities = Raw::parse(text).unwrap();
        assert_eq!(declared(&capabilities), [TASKS, "com.x/y"]);
        assert!(declares(&capabilities, TASKS) && !declares(&capabilities, UI));
        let left = r#"{"tools":{},"extensions":{"com.x/y":{"n":1e2}}}"#;
        assert_eq!(without(&capabilities, TASKS).to_string(), left);
        assert!(declared(&Raw::empty_object()).is_empty());
    }

    #[test]
    fn a_method_belongs_to_the_extension_that_its_first_part_names() {
        assert!(has_method(SKILLS, "skills/list"));
        assert!(has_method("skills", "skills/list"));
        assert!(!has_method(SKILLS, "skills"));
        assert!(!has_method(SKILLS, "resources/directory/read"));
    }
}
