//! Thin typed views of the items that a server lists; each keeps its definition as raw text.

use crate::{
    protocol::{ToolAnnotations, task},
    wire::{Raw, edit},
};

#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    pub annotations: ToolAnnotations,
    /// `true` if the server accepts calls of the tool only as tasks.
    pub requires_task: bool,
    pub raw: Raw,
}

/// The user interface of a tool (MCP Apps, SEP-1865, Resource Discovery).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolInterface {
    /// The `ui://` resource that shows the results of the tool.
    pub resource: Option<String>,
    /// `true` if an agent may call the tool, `false` if only the interface may.
    pub is_for_model: bool,
}

impl Tool {
    /// Returns the tool's interface, if it has one.
    pub fn interface(&self) -> Option<ToolInterface> {
        // Few tools have an interface, and lists are long.
        memchr::memmem::find(self.raw.as_bytes(), b"\"ui")?;
        let meta = edit::get(&self.raw, "_meta")?;
        let Some(ui) = edit::get(&meta, "ui").filter(Raw::is_object) else {
            // An older form that some servers still write.
            let resource = edit::get_str(&meta, "ui/resourceUri")?;
            return Some(ToolInterface { resource: Some(resource), is_for_model: true });
        };
        let visibility = edit::get(&ui, "visibility").and_then(|list| list.read().ok());
        let is_for_model =
            visibility.is_none_or(|list: Vec<String>| list.iter().any(|who| who == "model"));
        Some(ToolInterface { resource: edit::get_str(&ui, "resourceUri"), is_for_model })
    }

    /// Returns whether an agent may see the tool.
    pub fn is_for_model(&self) -> bool {
        self.interface().is_none_or(|interface| interface.is_for_model)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    pub uri: String,
    pub raw: Raw,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    pub uri_template: String,
    pub raw: Raw,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    pub name: String,
    pub raw: Raw,
}

/// An item of a `…/list` result. `read` returns `None` for a malformed item.
pub trait Item: Sized {
    /// The member of the list result that holds the items.
    const MEMBER: &'static str;

    fn read(raw: &Raw) -> Option<Self>;

    /// Returns the name or URI that identifies the item within its server.
    fn key(&self) -> &str;
}

impl Item for Tool {
    const MEMBER: &'static str = "tools";

    fn read(raw: &Raw) -> Option<Self> {
        // A host may reject the whole list if one tool has no schema.
        edit::get(raw, "inputSchema").filter(Raw::is_object)?;
        Some(Self {
            name: name(raw, "name")?,
            description: edit::get_str(raw, "description").unwrap_or_default(),
            annotations: ToolAnnotations::of(raw),
            requires_task: task::is_required(raw),
            raw: raw.detached(),
        })
    }

    fn key(&self) -> &str {
        &self.name
    }
}

impl Item for Resource {
    const MEMBER: &'static str = "resources";

    fn read(raw: &Raw) -> Option<Self> {
        edit::get_str(raw, "name")?;
        Some(Self { uri: name(raw, "uri")?, raw: raw.detached() })
    }

    fn key(&self) -> &str {
        &self.uri
    }
}

impl Item for Template {
    const MEMBER: &'static str = "resourceTemplates";

    fn read(raw: &Raw) -> Option<Self> {
        edit::get_str(raw, "name")?;
        Some(Self { uri_template: name(raw, "uriTemplate")?, raw: raw.detached() })
    }

    fn key(&self) -> &str {
        &self.uri_template
    }
}

impl Item for Prompt {
    const MEMBER: &'static str = "prompts";

    fn read(raw: &Raw) -> Option<Self> {
        Some(Self { name: name(raw, "name")?, raw: raw.detached() })
    }

    fn key(&self) -> &str {
        &self.name
    }
}

/// Maximum length of a name or URI, in bytes. Names are repeated in many texts.
const MAX_NAME_BYTES: usize = 8 * 1024;

fn name(raw: &Raw, member: &str) -> Option<String> {
    edit::get_str(raw, member).filter(|name| !name.is_empty() && name.len() <= MAX_NAME_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_is_read_from_the_metadata_of_a_tool() {
        for (meta, expected) in [
            (r#"{"ui":{"resourceUri":"ui://a"}}"#, Some((Some("ui://a"), true))),
            (r#"{"ui":{"visibility":["app"]}}"#, Some((None, false))),
            (r#"{"ui":{"visibility":["app","model"]}}"#, Some((None, true))),
            (r#"{"ui":{"visibility":"odd"}}"#, Some((None, true))),
            (r#"{"ui/resourceUri":"ui://a"}"#, Some((Some("ui://a"), true))),
            (r#"{"ui":null}"#, None),
            (r#"{"uid":1}"#, None),
        ] {
            let text = format!(r#"{{"name":"t","inputSchema":{{}},"_meta":{meta}}}"#);
            let tool = Tool::read(&Raw::parse(text).unwrap()).unwrap();
            let interface = tool.interface();
            let found = interface.as_ref().map(|ui| (ui.resource.as_deref(), ui.is_for_model));
            assert_eq!(found, expected, "{meta}");
        }
    }
}
