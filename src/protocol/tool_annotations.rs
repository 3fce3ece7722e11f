//! The properties that servers declare of their tools (MCP, server/tools, `ToolAnnotations`).

use crate::wire::{Raw, edit};

/// The annotations of a tool. Missing ones have the defaults of MCP, which [`Default`] returns too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "MCP declares four independent hints")]
pub struct ToolAnnotations {
    pub read_only: bool,
    /// False for a tool that is read-only.
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

impl ToolAnnotations {
    /// Returns the annotations in the definition of a tool.
    pub(crate) fn of(definition: &Raw) -> Self {
        let Some(written) = edit::get(definition, "annotations") else { return Self::default() };
        let hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
        let [read_only, destructive, idempotent, open_world] =
            edit::get_each(&written, hints).map(|hint| hint.and_then(|it| it.read::<bool>().ok()));
        let read_only = read_only.unwrap_or(false);
        Self {
            read_only,
            destructive: !read_only && destructive.unwrap_or(true),
            idempotent: idempotent.unwrap_or(false),
            open_world: open_world.unwrap_or(true),
        }
    }
}

impl Default for ToolAnnotations {
    fn default() -> Self {
        Self { read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(definition: &str) -> ToolAnnotations {
        ToolAnnotations::of(&Raw::parse(definition.to_owned()).unwrap())
    }

    #[test]
    fn missing_annotations_have_the_defaults_of_mcp() {
        let defaults = ToolAnnotations::default();
        assert_eq!(of(r#"{"name": "t"}"#), defaults);
        assert_eq!(of(r#"{"annotations": {}}"#), defaults);
        assert!(defaults.destructive && defaults.open_world);
        assert!(!defaults.read_only && !defaults.idempotent);
        let wrong = of(r#"{"annotations": {"readOnlyHint": "yes", "idempotentHint": true}}"#);
        assert_eq!(wrong, ToolAnnotations { idempotent: true, ..defaults });
    }

    #[test]
    fn tool_that_is_read_only_is_not_destructive() {
        let odd = of(r#"{"annotations": {"readOnlyHint": true, "destructiveHint": true}}"#);
        assert!(odd.read_only && !odd.destructive);
    }
}
