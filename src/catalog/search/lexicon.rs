//! Words that were looked up, for as long as many texts are read: one that comes again is not stemmed again.

use std::{collections::HashMap, sync::Arc};

use super::Language;

pub(super) struct Lexicon<'a> {
    language: &'a Language,
    /// Where in `known` a word is; `None` for those that tell nothing.
    words: HashMap<String, Option<usize>>,
    known: Vec<Word>,
    numbers: HashMap<Arc<str>, u32>,
    stems: Vec<Arc<str>>,
}

/// What is to be known of a word.
pub(super) struct Word {
    /// The number of its stem.
    pub(super) stem: u32,
    /// What its meaning is made of.
    pub(super) tokens: Box<[u32]>,
}

impl<'a> Lexicon<'a> {
    pub(super) fn new(language: &'a Language) -> Self {
        let (words, known, numbers, stems) = Default::default();
        Self { language, words, known, numbers, stems }
    }

    /// A word in lower case, if it is worth comparing.
    pub(super) fn look_up(&mut self, word: &str) -> Option<&Word> {
        let place = match self.words.get(word) {
            Some(place) => *place,
            None => self.learn(word),
        };
        place.map(|place| &self.known[place])
    }

    fn learn(&mut self, word: &str) -> Option<usize> {
        let Language { words, meaning, .. } = self.language;
        let place = words.tells(word).then(|| {
            let stem = self.number(words.stem(word).into());
            self.known.push(Word { stem, tokens: meaning.tokens(word) });
            self.known.len() - 1
        });
        self.words.insert(word.to_owned(), place);
        place
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
        let mut stem = |word| lexicon.look_up(word).map(|word| word.stem);
        let files = stem("files");
        assert!(files.is_some());
        assert_eq!(stem("file"), files);
        assert_eq!(stem("files"), files);
        assert_ne!(stem("directory"), files);
        assert_eq!(stem("the"), None);
    }
}
