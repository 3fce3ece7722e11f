//! The searchable text of a tool: the words of its fields, and the meaning of the whole text.

use serde_json::Value;

use super::{
    IndexedOffer,
    language::LANGUAGE,
    lexicon::Lexicon,
    meaning::TextMeaning,
    server_documents::{DocumentField, PerField, SearchDocument, ServerDocuments},
    words,
};
use crate::{catalog::Tool, wire::edit};

/// The weight of each field in a tool's meaning, in the order of `FIELDS`.
const MEANING_WEIGHTS: PerField<f32> = [1.0, 0.0, 1.0, 0.0, 0.5, 0.0, 0.3];

impl ServerDocuments {
    /// Reads the tools of a known server. `lexicon` may already contain the words of other servers.
    pub(super) fn of_tools(
        offer: &IndexedOffer<'_>,
        tools: &[Tool],
        lexicon: &mut Lexicon<'_>,
    ) -> Self {
        let mut words = 0;
        let documents = tools.iter().map(|tool| {
            let reader = FieldReader::new(lexicon);
            let document = if words < MAX_SERVER_WORDS {
                reader.tool(offer, tool)
            } else {
                reader.tool_by_name(tool)
            };
            words += document.stems.len();
            document
        });
        let documents = documents.collect();
        Self::numbered(documents, lexicon)
    }

    /// Reads the name and description of a server whose tools are not known.
    pub(super) fn of_offer(offer: &IndexedOffer<'_>, lexicon: &mut Lexicon<'_>) -> Self {
        Self::numbered(vec![FieldReader::new(lexicon).offer(offer)], lexicon)
    }

    /// Replaces the lexicon's numbers of stems with numbers of this server, since the lexicon is
    /// dropped after all servers are read.
    fn numbered(mut documents: Vec<SearchDocument>, lexicon: &Lexicon<'_>) -> Self {
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

/// Maximum length of a text that is read, in bytes.
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// Maximum number of parameters of one object that are read.
const MAX_PARAMETERS: usize = 200;
/// Maximum number of words of all tools of a server: twenty times the words of 200 tools. Only the
/// names of the tools beyond it are read.
const MAX_SERVER_WORDS: usize = 500_000;
/// Maximum number of words of one tool after which no more parameters are read.
const MAX_TOOL_WORDS: usize = 5000;

/// Reads the fields of one document.
struct FieldReader<'a, 'w> {
    lexicon: &'a mut Lexicon<'w>,
    read: Vec<(u32, DocumentField)>,
    /// For each field the sum of the vectors of its words.
    sums: PerField<Vec<f32>>,
}

impl<'a, 'w> FieldReader<'a, 'w> {
    fn new(lexicon: &'a mut Lexicon<'w>) -> Self {
        Self { lexicon, read: Vec::new(), sums: PerField::default() }
    }

    fn offer(mut self, offer: &IndexedOffer<'_>) -> SearchDocument {
        self.add(DocumentField::Name, offer.name);
        self.add(DocumentField::Description, offer.description);
        self.document()
    }

    fn tool(mut self, offer: &IndexedOffer<'_>, tool: &Tool) -> SearchDocument {
        let [title, hints, schema] =
            edit::get_each(&tool.raw, ["title", "annotations", "inputSchema"]);
        let title = title.and_then(|title| title.read::<String>().ok());
        let title = title.or_else(|| edit::get_str(&hints?, "title")).unwrap_or_default();
        self.add(DocumentField::Name, &tool.name);
        self.add(DocumentField::Title, &title);
        self.add(DocumentField::Description, &tool.description);
        if let Some(schema) = schema {
            self.add_parameters(&schema.to_value(), 0);
        }
        self.add(DocumentField::Server, offer.name);
        self.add(DocumentField::ServerDescription, offer.description);
        self.document()
    }

    fn tool_by_name(mut self, tool: &Tool) -> SearchDocument {
        self.add(DocumentField::Name, &tool.name);
        self.document()
    }

    fn add(&mut self, field: DocumentField, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        words::for_each_run(text, |run| {
            for word in run.words() {
                let word = self.lexicon.look_up(word);
                self.read.extend(word.stem.map(|stem| (stem, field)));
                if MEANING_WEIGHTS[field as usize] > 0.0 {
                    LANGUAGE.vectors.add(&word.tokens, &mut self.sums[field as usize]);
                }
            }
            if run.has_several_words() {
                let whole = self.lexicon.look_up(run.whole()).stem;
                self.read.extend(whole.map(|stem| (stem, field)));
            }
        });
    }

    /// Adds the names and descriptions of parameters, and of parameters nested in them.
    fn add_parameters(&mut self, schema: &Value, depth: usize) {
        const MAX_DEPTH: usize = 4;
        if depth > MAX_DEPTH {
            return;
        }
        let parameters = schema["properties"].as_object().into_iter().flatten();
        for (name, parameter) in parameters.take(MAX_PARAMETERS) {
            if self.read.len() > MAX_TOOL_WORDS {
                return;
            }
            self.add(DocumentField::Parameters, name);
            if let Some(description) = parameter["description"].as_str() {
                self.add(DocumentField::ParameterDescriptions, description);
            }
            self.add_parameters(parameter, depth + 1);
            self.add_parameters(&parameter["items"], depth + 1);
        }
    }

    fn document(mut self) -> SearchDocument {
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
            std::array::from_fn(|at| (MEANING_WEIGHTS[at], self.sums[at].as_slice()));
        SearchDocument { stems: stems.into(), lengths, meaning: TextMeaning::of(&sums) }
    }
}
