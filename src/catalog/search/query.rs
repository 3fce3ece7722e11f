//! What is asked: the words of a query, and what may stand for each of them in an index.

use super::{
    LANGUAGE, Language,
    index::{Index, Posting},
    meaning::Direction,
    words,
};

/// What a synonym of a word counts, beside the word itself.
const SYNONYM: f32 = 0.4;
/// What a word counts that only begins like one of the query, or differs by a letter.
const NEAR: f32 = 0.25;
/// Too many words begin like a shorter one.
const SHORTEST_BEGINNING: usize = 4;

pub(super) struct Query<'a> {
    /// As somebody would say it: a name, perhaps.
    pub(super) said: String,
    pub(super) terms: Vec<Term<'a>>,
    pub(super) direction: Option<Direction>,
}

/// A word of the query.
pub(super) struct Term<'a> {
    /// How much it tells, more where few tools have it.
    pub(super) rarity: f32,
    pub(super) candidates: Vec<Candidate<'a>>,
}

/// A word of the index that is the query's, or may stand for it.
pub(super) struct Candidate<'a> {
    pub(super) stem: String,
    pub(super) worth: f32,
    pub(super) postings: &'a [Posting],
}

impl<'a> Query<'a> {
    pub(super) fn of(text: &str, index: &'a Index) -> Self {
        let stems = LANGUAGE.words.stems(text);
        let terms = stems.iter().map(|stem| Term::of(stem, &stems, index)).collect();
        Self { said: words::said(text), terms, direction: direction(text) }
    }

    /// Whether it names, among other things, a server that is said like this.
    pub(super) fn names(&self, server: &str) -> bool {
        !server.is_empty() && format!(" {} ", self.said).contains(&format!(" {server} "))
    }

    /// How much all its words tell.
    pub(super) fn rarity(&self) -> f32 {
        self.terms.iter().map(|term| term.rarity).sum()
    }
}

impl<'a> Term<'a> {
    fn of(stem: &str, query: &[String], index: &'a Index) -> Self {
        let synonyms = LANGUAGE.synonyms.of(stem).iter();
        // A synonym that is said itself counts as itself.
        let synonyms = synonyms.filter(|synonym| !query.contains(synonym));
        let mut stems: Vec<(&str, f32)> = vec![(stem, 1.0)];
        stems.extend(synonyms.map(|synonym| (synonym.as_str(), SYNONYM)));
        let count = index.postings(stem).len();
        if count == 0 {
            let near = index.stems_like(stem).filter(|word| is_near(word, stem));
            stems.extend(near.map(|near| (near, NEAR)));
        }
        let candidates = stems.into_iter().filter_map(|(stem, worth)| {
            let postings = index.postings(stem);
            let worth = worth * index.rarity(postings.len());
            (!postings.is_empty()).then(|| Candidate { stem: stem.to_owned(), worth, postings })
        });
        Self { rarity: index.rarity(count), candidates: candidates.collect() }
    }
}

/// Where a text points, if any of its words is known. Here words that every text has count too, as little as
/// their vectors are short.
fn direction(text: &str) -> Option<Direction> {
    let Language { meaning, .. } = &*LANGUAGE;
    let mut sum = Vec::new();
    words::for_each(text, |word| meaning.add(&meaning.tokens(word), &mut sum));
    Direction::of(&[(1.0, &sum)])
}

/// Whether a word may be meant by one that no tool has: with another ending, or misspelt.
fn is_near(word: &str, said: &str) -> bool {
    let begins = |word: &str, with: &str| {
        with.chars().count() >= SHORTEST_BEGINNING && word.starts_with(with)
    };
    begins(word, said) || begins(said, word) || words::is_misspelt(said, word)
}
