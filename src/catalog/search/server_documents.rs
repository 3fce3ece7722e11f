//! The searchable texts of a server's tools.

use std::sync::Arc;

use super::meaning::TextMeaning;

/// The fields of a tool that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentField {
    Name,
    Title,
    Description,
    Parameters,
    ParameterDescriptions,
    Server,
    ServerDescription,
}

pub(super) const FIELDS: [DocumentField; 7] = [
    DocumentField::Name,
    DocumentField::Title,
    DocumentField::Description,
    DocumentField::Parameters,
    DocumentField::ParameterDescriptions,
    DocumentField::Server,
    DocumentField::ServerDescription,
];

impl DocumentField {
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

/// A value for each field.
pub(super) type PerField<T> = [T; FIELDS.len()];

/// A tool, or a server whose tools are not known.
#[derive(Debug)]
pub(super) struct SearchDocument {
    /// The stems of the text, with the number of occurrences in each field.
    pub(super) stems: Box<[(u32, PerField<u8>)]>,
    /// The number of stems in each field.
    pub(super) lengths: PerField<u16>,
    /// The meaning of the text, if any of its words is known.
    pub(super) meaning: Option<TextMeaning>,
}

/// The searchable texts of one server's tools, in the order of its catalog. Created once for each
/// catalog.
#[derive(Debug, Default)]
pub(crate) struct ServerDocuments {
    /// The stems, indexed by the numbers that the documents use.
    pub(super) stems: Vec<Arc<str>>,
    pub(super) documents: Vec<SearchDocument>,
}
