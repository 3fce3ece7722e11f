//! Searches all known tools, loaded or not, and the servers that may have a matching tool (see
//! `docs/design/surfaces.md`).
//!
//! Words are weighted with BM25F (Robertson and Zaragoza, The Probabilistic Relevance Framework,
//! 2009, section 3.6). Where meanings are known, tools of similar meaning count too (see
//! `meaning`). Tools whose names are given exactly, or nearly, come first. The same snapshot and
//! query yield the same results. `docs/reference/search.md` describes the quality of the results,
//! and `just eval-search` measures it.

mod index;
mod indexed_offer;
mod language;
mod lexicon;
mod meaning;
mod phrase;
mod postings;
mod query;
mod search_document;
mod search_hit;
mod search_name;
mod server_documents;
mod synonyms;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use index::SearchIndex;
pub(crate) use indexed_offer::{IndexedOffer, IndexedTools};
pub use search_hit::{SearchHit, SearchTarget};
pub(crate) use server_documents::ServerDocuments;
