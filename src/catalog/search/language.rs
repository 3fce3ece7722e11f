//! The rules and tables for words, which all indexes share.

use std::sync::LazyLock;

use super::{
    meaning::{self, WordVectors},
    synonyms::Synonyms,
    words::WordRules,
};

/// The tables that all indexes share.
pub(super) struct Language {
    pub(super) words: WordRules,
    pub(super) synonyms: Synonyms,
    pub(super) vectors: WordVectors,
}

pub(super) static LANGUAGE: LazyLock<Language> = LazyLock::new(|| {
    let words = WordRules::new();
    let vectors =
        WordVectors::read(meaning::VECTOR_TABLE).expect("the table is as `tools/vectors` made it");
    Language { synonyms: Synonyms::new(&words), words, vectors }
});
