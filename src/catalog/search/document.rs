//! What a tool is found by: the words of its fields, and what it is about.

use std::sync::Arc;

use serde_json::Value;

use super::{LANGUAGE, lexicon::Lexicon, meaning::Direction, words};
use crate::{
    catalog::{Exposed, ServerView, Tool},
    wire::edit,
};

/// The fields of a document.
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

/// One number for each field.
pub(super) type PerField<T> = [T; FIELDS.len()];

/// How much a field counts in what a document is about, in the order of `FIELDS`.
const MEANING: PerField<f32> = [1.0, 0.0, 1.0, 0.0, 0.5, 0.0, 0.3];

/// A tool, or a server whose tools are not known.
#[derive(Debug)]
pub(super) struct Document {
    /// Its stems and how often each stands in each field.
    pub(super) stems: Box<[(u32, PerField<u8>)]>,
    /// Stems of each field.
    pub(super) lengths: PerField<u16>,
    /// Where what it says of itself points.
    pub(super) direction: Option<Direction>,
}

/// The documents of one server's tools, in the order of its catalog. They are made once for each catalog.
#[derive(Debug, Default)]
pub struct Documents {
    /// By the numbers that the documents use.
    pub(super) stems: Vec<Arc<str>>,
    pub(super) documents: Vec<Document>,
}

impl Documents {
    /// Of the tools of a server that is known. `lexicon` may have read other servers before.
    pub(super) fn of_tools(
        view: &ServerView,
        exposed: &Exposed,
        lexicon: &mut Lexicon<'_>,
    ) -> Self {
        let mut words = 0;
        let tools = exposed.catalog.tools.iter();
        let documents = tools.map(|tool| {
            let reader = Reader::new(lexicon);
            let document = if words < MAX_SERVER_WORDS {
                reader.tool(view, tool)
            } else {
                reader.tool_by_name(tool)
            };
            words += document.stems.len();
            document
        });
        let documents = documents.collect();
        Self::numbered(documents, lexicon)
    }

    /// Of a server that can be loaded.
    pub(super) fn of_server(view: &ServerView, lexicon: &mut Lexicon<'_>) -> Self {
        Self::numbered(vec![Reader::new(lexicon).server(view)], lexicon)
    }

    /// Gives the stems numbers of their own in place of the lexicon's, which does not outlive the reading.
    fn numbered(mut documents: Vec<Document>, lexicon: &Lexicon<'_>) -> Self {
        let mut stems = Vec::new();
        let mut numbers = vec![None; lexicon.stems().len()];
        for (stem, _) in documents.iter_mut().flat_map(|document| &mut document.stems) {
            let known = *stem as usize;
            *stem = *numbers[known].get_or_insert_with(|| {
                stems.push(lexicon.stems()[known].clone());
                u32::try_from(stems.len() - 1).expect("no more than the lexicon has")
            });
        }
        Self { stems, documents }
    }
}

/// The most bytes of a text that are read.
const MAX_TEXT: usize = 8 * 1024;
/// The most parameters of one object that are read.
const MAX_PARAMETERS: usize = 200;
/// Words of all tools of a server; of tools beyond them only the name is read. Twenty times what 200 tools have.
const MAX_SERVER_WORDS: usize = 500_000;
/// With more words than this no more parameters are read.
const MAX_WORDS: usize = 5000;

/// Reads the fields of one document.
struct Reader<'a, 'w> {
    lexicon: &'a mut Lexicon<'w>,
    read: Vec<(u32, Field)>,
    /// Of the vectors of the words.
    sums: PerField<Vec<f32>>,
}

impl<'a, 'w> Reader<'a, 'w> {
    fn new(lexicon: &'a mut Lexicon<'w>) -> Self {
        Self { lexicon, read: Vec::new(), sums: PerField::default() }
    }

    fn server(mut self, view: &ServerView) -> Document {
        let about = view.description.as_deref().unwrap_or_default();
        self.add(Field::Name, &view.name);
        self.add(Field::Description, about);
        self.document()
    }

    fn tool(mut self, view: &ServerView, tool: &Tool) -> Document {
        let [title, hints, schema] =
            edit::get_each(&tool.raw, ["title", "annotations", "inputSchema"]);
        let title = title.and_then(|title| title.read::<String>().ok());
        let title = title.or_else(|| edit::get_str(&hints?, "title")).unwrap_or_default();
        self.add(Field::Name, &tool.name);
        self.add(Field::Title, &title);
        self.add(Field::Description, &tool.description);
        if let Some(schema) = schema {
            self.add_parameters(&schema.to_value(), 0);
        }
        self.add(Field::Server, &view.name);
        self.add(Field::ServerDescription, view.description.as_deref().unwrap_or_default());
        self.document()
    }

    fn tool_by_name(mut self, tool: &Tool) -> Document {
        self.add(Field::Name, &tool.name);
        self.document()
    }

    fn add(&mut self, field: Field, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        words::for_each_run(text, |run| {
            for word in run.words() {
                let word = self.lexicon.look_up(word);
                self.read.extend(word.stem.map(|stem| (stem, field)));
                if MEANING[field as usize] > 0.0 {
                    LANGUAGE.meaning.add(&word.tokens, &mut self.sums[field as usize]);
                }
            }
            if run.has_several_words() {
                let whole = self.lexicon.look_up(run.whole()).stem;
                self.read.extend(whole.map(|stem| (stem, field)));
            }
        });
    }

    /// Names and descriptions of parameters, also of those within parameters.
    fn add_parameters(&mut self, schema: &Value, depth: usize) {
        const MAX_DEPTH: usize = 4;
        if depth > MAX_DEPTH {
            return;
        }
        let parameters = schema["properties"].as_object().into_iter().flatten();
        for (name, parameter) in parameters.take(MAX_PARAMETERS) {
            if self.read.len() > MAX_WORDS {
                return;
            }
            self.add(Field::Parameters, name);
            if let Some(description) = parameter["description"].as_str() {
                self.add(Field::ParameterDescriptions, description);
            }
            self.add_parameters(parameter, depth + 1);
            self.add_parameters(&parameter["items"], depth + 1);
        }
    }

    fn document(mut self) -> Document {
        let mut lengths = PerField::default();
        let mut stems: Vec<(u32, PerField<u8>)> = Vec::new();
        self.read.sort_unstable_by_key(|(stem, _)| *stem);
        for (stem, field) in &self.read {
            let at = *field as usize;
            lengths[at] = u16::saturating_add(lengths[at], 1);
            if stems.last().is_none_or(|(last, _)| last != stem) {
                stems.push((*stem, PerField::default()));
            }
            let (_, counts) = stems.last_mut().expect("it was just pushed");
            counts[at] = counts[at].saturating_add(1);
        }
        let sums: PerField<(f32, &[f32])> =
            std::array::from_fn(|at| (MEANING[at], self.sums[at].as_slice()));
        Document { stems: stems.into(), lengths, direction: Direction::of(&sums) }
    }
}
