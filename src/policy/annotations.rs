//! The properties that servers declare of their tools (MCP, server/tools, `ToolAnnotations`).

use crate::{
    config::ToolHints,
    wire::{Raw, edit},
};

/// The annotations of a tool, with the defaults of MCP for those that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "MCP declares four independent hints")]
pub(crate) struct Annotations {
    pub(crate) read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
}

impl Annotations {
    /// Returns the annotations of a tool's definition.
    pub(crate) fn of(definition: &Raw) -> Self {
        let written = edit::get(definition, "annotations").unwrap_or_else(Raw::empty_object);
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

    /// Returns whether the tool has all wanted properties.
    pub(super) fn have(self, wanted: ToolHints) -> bool {
        let pairs = [
            (wanted.read_only, self.read_only),
            (wanted.destructive, self.destructive),
            (wanted.idempotent, self.idempotent),
            (wanted.open_world, self.open_world),
        ];
        pairs.into_iter().all(|(wanted, has)| wanted.is_none_or(|wanted| wanted == has))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_annotations_have_the_defaults_of_mcp() {
        let of = |text: &str| Annotations::of(&Raw::parse(text.to_owned()).unwrap());
        let wants = |hints: &str| serde_json::from_str::<ToolHints>(hints).unwrap();
        let bare = of(r#"{"name": "t"}"#);
        assert!(bare.have(wants(r#"{"destructive": true, "openWorld": true}"#)));
        assert!(!bare.have(wants(r#"{"readOnly": true}"#)));
        // A server may contradict itself.
        let odd = of(r#"{"annotations": {"readOnlyHint": true, "destructiveHint": true}}"#);
        assert!(odd.have(wants(r#"{"readOnly": true, "destructive": false}"#)));
        let wrong = of(r#"{"annotations": {"readOnlyHint": "yes", "idempotentHint": true}}"#);
        assert!(wrong.have(wants(r#"{"readOnly": false, "idempotent": true}"#)));
    }
}
