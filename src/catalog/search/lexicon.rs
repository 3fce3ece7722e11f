//! Words that were looked up, for as long as many texts are read: one that comes again is not stemmed again.

use std::{collections::HashMap, sync::Arc};

use super::Language;

pub(super) struct Lexicon<'a> {
    language: &'a Language,
    /// Where in `known` a word is.
    words: HashMap<String, usize>,
    known: Vec<Word>,
    numbers: HashMap<Arc<str>, u32>,
    stems: Vec<Arc<str>>,
}

/// What is to be known of a word.
pub(super) struct Word {
    /// The number of its stem; `None` where it is not worth comparing.
    pub(super) stem: Option<u32>,
    /// What its meaning is made of.
    pub(super) tokens: Box<[u32]>,
}

impl<'a> Lexicon<'a> {
    pub(super) fn new(language: &'a Language) -> Self {
        let (words, known, numbers, stems) = Default::default();
        Self { language, words, known, numbers, stems }
    }

    /// A word in lower case.
    pub(super) fn look_up(&mut self, word: &str) -> &Word {
        let place = match self.words.get(word) {
            Some(place) => *place,
            None => self.learn(word),
        };
        &self.known[place]
    }

    fn learn(&mut self, word: &str) -> usize {
        let Language { words, meaning, .. } = self.language;
        let stem = words.tells(word).then(|| self.number(words.stem(word).into()));
        self.known.push(Word { stem, tokens: meaning.tokens(word) });
        self.words.insert(word.to_owned(), self.known.len() - 1);
        self.known.len() - 1
    }

    /// By number.
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
    use crate::catalog::search::LANGUAGE;

    #[test]
    fn forms_of_a_word_have_one_stem() {
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
