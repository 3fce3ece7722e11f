//! A cache of the words that were looked up while many texts are read, so that no word is stemmed
//! twice.

use std::{collections::HashMap, sync::Arc};

use super::language::Language;

pub(super) struct Lexicon<'a> {
    language: &'a Language,
    /// The position of each word in `known`.
    words: HashMap<String, usize>,
    known: Vec<LexiconEntry>,
    numbers: HashMap<Arc<str>, u32>,
    stems: Vec<Arc<str>>,
}

/// The result of looking a word up.
pub(super) struct LexiconEntry {
    /// The number of the word's stem; `None` if the word is not worth comparing.
    pub(super) stem: Option<u32>,
    /// The tokens that make up the word's meaning.
    pub(super) tokens: Box<[u32]>,
}

impl<'a> Lexicon<'a> {
    pub(super) fn new(language: &'a Language) -> Self {
        let (words, known, numbers, stems) = Default::default();
        Self { language, words, known, numbers, stems }
    }

    /// Looks up a word, which must be in lower case.
    pub(super) fn look_up(&mut self, word: &str) -> &LexiconEntry {
        let position = match self.words.get(word) {
            Some(position) => *position,
            None => self.learn(word),
        };
        &self.known[position]
    }

    fn learn(&mut self, word: &str) -> usize {
        let Language { words, vectors, .. } = self.language;
        let stem = words.is_significant(word).then(|| self.number(words.stem(word).into()));
        self.known.push(LexiconEntry { stem, tokens: vectors.tokens(word) });
        self.words.insert(word.to_owned(), self.known.len() - 1);
        self.known.len() - 1
    }

    /// Returns the stems, indexed by their numbers.
    pub(super) fn stems(&self) -> &[Arc<str>] {
        &self.stems
    }

    fn number(&mut self, stem: Arc<str>) -> u32 {
        *self.numbers.entry(stem).or_insert_with_key(|stem| {
            self.stems.push(stem.clone());
            u32::try_from(self.stems.len() - 1).expect("fewer stems than fit into memory")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::search::language::LANGUAGE;

    #[test]
    fn forms_of_a_word_share_one_stem() {
        let mut lexicon = Lexicon::new(&LANGUAGE);
        let mut stem = |word| lexicon.look_up(word).stem;
        let files = stem("files");
        assert!(files.is_some());
        assert_eq!(stem("file"), files);
        assert_eq!(stem("files"), files);
        assert_ne!(stem("directory"), files);
        assert_eq!(stem("the"), None);
    }
}
