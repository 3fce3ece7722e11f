//! What a tool is found by: the words of its fields.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::words::Words;
use crate::{
    catalog::{Exposed, ServerView, Tool},
    wire::edit,
};

/// The fields of a document, from the most to the least telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    Title,
    Description,
    Parameters,
    ParameterDescriptions,
    Server,
    ServerDescription,
}

pub(super) const FIELDS: [Field; 7] = [
    Field::Name,
    Field::Title,
    Field::Description,
    Field::Parameters,
    Field::ParameterDescriptions,
    Field::Server,
    Field::ServerDescription,
];

impl Field {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Title => "title",
            Self::Description => "description",
            Self::Parameters => "parameter",
            Self::ParameterDescriptions => "parameter's description",
            Self::Server => "server",
            Self::ServerDescription => "server's description",
        }
    }
}

/// A tool, or a server whose tools are not known, as words.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// How often each stem stands in each field.
    pub(super) counts: HashMap<Arc<str>, [u16; FIELDS.len()]>,
    /// Stems of each field.
    pub(super) lengths: [u16; FIELDS.len()],
    /// What it says of itself, for whatever compares more than words.
    pub(super) text: String,
}

impl Document {
    fn add(&mut self, field: Field, text: &str, words: &Words) {
        let at = field as usize;
        for stem in words.stems(text) {
            let counts = self.counts.entry(stem.into()).or_default();
            counts[at] = counts[at].saturating_add(1);
            self.lengths[at] = self.lengths[at].saturating_add(1);
        }
    }

    /// A server that can be loaded.
    pub(super) fn of_server(view: &ServerView, words: &Words) -> Self {
        let mut document = Self::default();
        let about = view.description.as_deref().unwrap_or_default();
        document.add(Field::Name, &view.name, words);
        document.add(Field::Description, about, words);
        document.text = format!("{}. {about}", view.name);
        document
    }

    fn of_tool(view: &ServerView, tool: &Tool, words: &Words) -> Self {
        let mut document = Self::default();
        let title = edit::get_str(&tool.raw, "title").or_else(|| {
            edit::get(&tool.raw, "annotations").and_then(|hints| edit::get_str(&hints, "title"))
        });
        document.add(Field::Name, &tool.name, words);
        document.add(Field::Title, title.as_deref().unwrap_or_default(), words);
        document.add(Field::Description, &tool.description, words);
        if let Some(schema) = edit::get(&tool.raw, "inputSchema") {
            document.add_parameters(&schema.to_value(), words, 0);
        }
        document.add(Field::Server, &view.name, words);
        document.add(
            Field::ServerDescription,
            view.description.as_deref().unwrap_or_default(),
            words,
        );
        document.text =
            format!("{}. {}. {}", tool.name, title.unwrap_or_default(), tool.description);
        document
    }

    /// Names and descriptions of parameters, also of those within parameters.
    fn add_parameters(&mut self, schema: &Value, words: &Words, depth: usize) {
        const DEEPEST: usize = 4;
        if depth > DEEPEST {
            return;
        }
        for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
            self.add(Field::Parameters, name, words);
            if let Some(description) = parameter["description"].as_str() {
                self.add(Field::ParameterDescriptions, description, words);
            }
            self.add_parameters(parameter, words, depth + 1);
            self.add_parameters(&parameter["items"], words, depth + 1);
        }
    }
}

/// The documents of one server's tools, in the order of its catalog. They are made once for each catalog.
#[derive(Debug)]
pub struct Documents(pub(super) Vec<Document>);

impl Documents {
    pub(super) fn of(view: &ServerView, exposed: &Exposed, words: &Words) -> Self {
        let tools = exposed.catalog.tools.iter();
        Self(tools.map(|tool| Document::of_tool(view, tool, words)).collect())
    }
}
