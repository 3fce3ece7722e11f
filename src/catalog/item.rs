//! Thin typed views of what a server lists; the definition itself stays the raw text it came as.

use crate::wire::{Raw, edit};

#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    pub raw: Raw,
}

/// The user interface of a tool (MCP Apps, SEP-1865, Resource Discovery).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The `ui://` resource that shows what the tool returns.
    pub resource: Option<String>,
    /// Whether an agent may call the tool, or only the interface itself.
    pub is_for_model: bool,
}

impl Tool {
    /// The tool's interface, where it is part of one.
    pub fn interface(&self) -> Option<Interface> {
        // Few tools have one, and lists are long.
        memchr::memmem::find(self.raw.as_bytes(), b"\"ui")?;
        let meta = edit::get(&self.raw, "_meta")?;
        let Some(ui) = edit::get(&meta, "ui").filter(Raw::is_object) else {
            // The older form, which some servers still write.
            let resource = edit::get_str(&meta, "ui/resourceUri")?;
            return Some(Interface { resource: Some(resource), is_for_model: true });
        };
        let visibility = edit::get(&ui, "visibility").and_then(|list| list.read().ok());
        let is_for_model =
            visibility.is_none_or(|list: Vec<String>| list.iter().any(|who| who == "model"));
        Some(Interface { resource: edit::get_str(&ui, "resourceUri"), is_for_model })
    }

    /// Whether an agent may be shown the tool.
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

/// Something that `…/list` returns; `None` from `read` means that the item is malformed.
pub trait Item: Sized {
    /// The member of the list result that holds the items.
    const MEMBER: &'static str;

    fn read(raw: &Raw) -> Option<Self>;

    /// What tells it from the others of its server.
    fn key(&self) -> &str;
}

impl Item for Tool {
    const MEMBER: &'static str = "tools";

    fn read(raw: &Raw) -> Option<Self> {
        // A host that finds a tool without a schema may refuse the whole list.
        edit::get(raw, "inputSchema").filter(Raw::is_object)?;
        Some(Self {
            name: name(raw, "name")?,
            description: edit::get_str(raw, "description").unwrap_or_default(),
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

/// The most bytes of a name or URI, which stands in many texts.
const MAX_NAME: usize = 8 * 1024;

fn name(raw: &Raw, member: &str) -> Option<String> {
    edit::get_str(raw, member).filter(|name| !name.is_empty() && name.len() <= MAX_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_says_in_its_metadata_what_shows_it_and_who_may_call_it() {
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
