//! Thin typed views of what a server lists; the definition itself stays the raw text it came as.

use crate::wire::{Raw, edit};

#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    pub raw: Raw,
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
