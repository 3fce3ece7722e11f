//! Finds tools by what somebody wants, and servers that may have them: over everything that is known, loaded
//! or not (DESIGN.md section 3, `query`).
//!
//! Words are weighed with BM25F (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section
//! 3.6); names that are said exactly, or nearly, come first. The same snapshot and query give the same answer.

mod document;
mod index;
mod synonyms;
mod words;

pub use document::Documents;
pub use index::Index;

use std::sync::{Arc, LazyLock};

use super::{Snapshot, ToolRef};
use synonyms::Synonyms;
use words::Words;

/// What all indexes are made with.
struct Language {
    words: Words,
    synonyms: Synonyms,
}

static LANGUAGE: LazyLock<Language> = LazyLock::new(|| {
    let words = Words::new();
    Language { synonyms: Synonyms::new(&words), words }
});

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Tool(ToolRef),
    /// A server whose tools are not known; loading it would tell.
    Server(usize),
}

/// One answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub what: Match,
    pub score: f32,
    /// What speaks for it, the strongest first: `name: screenshot`.
    pub reasons: Vec<String>,
}

impl Snapshot {
    /// The best answers to `query`, best first; of equal ones the first in config order.
    pub fn search(&self, query: &str, within: Option<usize>, limit: usize) -> Vec<Found> {
        self.index().search(query, within, limit)
    }

    fn index(&self) -> &Arc<Index> {
        self.search_index.get_or_init(|| Arc::new(Index::of(self)))
    }
}
