//! The table of the embedded servers, `servers.json`.

use indexmap::IndexMap;
use serde::Deserialize;

/// Parameters by name. A name that ends with `!` is required. The first word of the value is the
/// type, the rest is the description.
pub(super) type Parameters = IndexMap<String, String>;

/// One embedded server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmbeddedServer {
    pub(super) name: String,
    /// The description in the config.
    pub(super) description: String,
    pub(super) instructions: String,
    /// Parameters of every tool that lists or searches.
    #[serde(default)]
    pub(super) paging: Parameters,
    /// Parameters of every tool, except those of standalone objects.
    #[serde(default)]
    pub(super) common: Parameters,
    /// The kinds of objects that the server manages, with one tool for each action.
    #[serde(default)]
    pub(super) objects: Vec<ManagedObject>,
    /// The tools that do not follow from an object.
    #[serde(default)]
    pub(super) tools: Vec<SingleTool>,
    #[serde(default)]
    pub(super) resources: Vec<TextResource>,
    #[serde(default)]
    pub(super) prompts: Vec<SimplePrompt>,
}

/// A kind of object, such as an issue or a customer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ManagedObject {
    pub(super) name: String,
    pub(super) plural: String,
    pub(super) actions: Vec<ToolAction>,
    /// `true` for an object whose tools lack the parameters that are common to the server.
    #[serde(default)]
    pub(super) standalone: bool,
    /// The parameters that name one object.
    #[serde(default)]
    pub(super) key: Parameters,
    /// The contents of an object.
    #[serde(default)]
    pub(super) fields: Parameters,
    /// The parameters that restrict a list.
    #[serde(default)]
    pub(super) filters: Parameters,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ToolAction {
    List,
    Search,
    Get,
    Create,
    Update,
    Delete,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SingleTool {
    pub(super) name: String,
    #[serde(default)]
    pub(super) kind: ToolKind,
    pub(super) description: String,
    pub(super) input: Parameters,
}

/// The claim of a tool's annotations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ToolKind {
    Read,
    #[default]
    Write,
    Destroy,
    /// A tool without annotations, as older servers have them.
    Plain,
}

#[derive(Debug, Deserialize)]
pub(super) struct TextResource {
    pub(super) uri: String,
    pub(super) name: String,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct SimplePrompt {
    pub(super) name: String,
    pub(super) description: String,
}

/// Returns all embedded servers.
pub(super) fn embedded_servers() -> Vec<EmbeddedServer> {
    serde_json::from_str(include_str!("servers.json")).expect("a test parses the embedded table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_twelve_servers() {
        assert_eq!(embedded_servers().len(), 12);
    }
}
