//! What is asked: the words of a query, and what may stand for each of them in an index.

use super::{
    LANGUAGE, Language,
    index::{Index, Posting},
    meaning::Direction,
    phrase::Phrase,
    words,
};

/// What a synonym of a word counts, beside the word itself.
const SYNONYM: f32 = 0.4;
/// What a word counts that only begins like one of the query, or differs by a letter.
const NEAR: f32 = 0.25;
/// The most bytes of a query that are read, and stems that are looked for.
const MAX_QUERY: usize = 2000;
const MAX_STEMS: usize = 64;
/// Comparisons of words that no tool has with those that tools have, in one query: some hundredths of a second.
const MAX_COMPARISONS: usize = 50_000;
/// Too many words begin like a shorter one.
const MIN_PREFIX_CHARS: usize = 4;

pub(super) struct Query<'a> {
    pub(super) phrase: Phrase,
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
        let text = &text[..text.floor_char_boundary(MAX_QUERY)];
        let stems = stems(text, index);
        let mut room = MAX_COMPARISONS;
        let terms = stems.iter().map(|stem| Term::of(stem, &stems, index, &mut room)).collect();
        Self { phrase: Phrase::of(text), terms, direction: direction(text) }
    }

    /// How much all its words tell.
    pub(super) fn rarity(&self) -> f32 {
        self.terms.iter().map(|term| term.rarity).sum()
    }
}

impl<'a> Term<'a> {
    /// `room`: how many words may still be compared with words that no tool has.
    fn of(stem: &str, query: &[String], index: &'a Index, room: &mut usize) -> Self {
        let synonyms = LANGUAGE.synonyms.of(stem).iter();
        // A synonym that is said itself counts as itself.
        let synonyms = synonyms.filter(|synonym| !query.contains(synonym));
        let mut stems: Vec<(&str, f32)> = vec![(stem, 1.0)];
        stems.extend(synonyms.map(|synonym| (synonym.as_str(), SYNONYM)));
        let count = index.postings(stem).len();
        if count == 0 {
            let like = index.stems_like(stem).take(*room).inspect(|_| *room -= 1);
            let near = like.filter(|word| is_near(word, stem));
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

/// The stems of a query, in order, each once. A word in two cases counts as a whole where the index has it so, or
/// does not have all of its parts: `GitLab` is not `git`.
fn stems(text: &str, index: &Index) -> Vec<String> {
    let language = &LANGUAGE.words;
    let mut stems: Vec<String> = Vec::new();
    let mut push = |word: &str| {
        let stem = language.stem(word);
        if language.tells(word) && !stems.contains(&stem) && stems.len() < MAX_STEMS {
            stems.push(stem);
        }
    };
    let is_known = |word: &str| !index.postings(&language.stem(word)).is_empty();
    words::for_each_run(text, |run| {
        let are_known = || run.words().all(|word| !language.tells(word) || is_known(word));
        if run.has_several_words() && (is_known(run.whole()) || !are_known()) {
            push(run.whole());
        } else {
            run.words().for_each(&mut push);
        }
    });
    stems
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
    let begins =
        |word: &str, with: &str| with.chars().count() >= MIN_PREFIX_CHARS && word.starts_with(with);
    begins(word, said) || begins(said, word) || words::is_misspelt(said, word)
}
