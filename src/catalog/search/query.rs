//! The words of a query, and the words of an index that may stand for each of them.

use super::{
    language::{LANGUAGE, Language},
    meaning::TextMeaning,
    phrase::Phrase,
    postings::{Posting, Postings},
    words,
};

/// The weight of a synonym, relative to the word itself.
const SYNONYM_WEIGHT: f32 = 0.4;
/// The weight of a word that has the same beginning as a word of the query, or differs by a letter.
const NEAR_WORD_WEIGHT: f32 = 0.25;
/// Maximum length of a query that is read, in bytes.
const MAX_QUERY_BYTES: usize = 2000;
/// Maximum number of stems that are searched for.
const MAX_STEMS: usize = 64;
/// Maximum number of comparisons between unknown words of a query and the words of the index. The
/// limit takes some hundredths of a second.
const MAX_COMPARISONS: usize = 50_000;
/// Minimum length of a common beginning, in characters. Too many words share a shorter one.
const MIN_PREFIX_CHARS: usize = 4;

pub(super) struct SearchQuery<'a> {
    pub(super) phrase: Phrase,
    pub(super) terms: Vec<QueryTerm<'a>>,
    pub(super) meaning: Option<TextMeaning>,
}

/// A word of the query.
pub(super) struct QueryTerm<'a> {
    /// The weight of the word, which is higher if few tools contain it.
    pub(super) rarity: f32,
    pub(super) candidates: Vec<TermCandidate<'a>>,
}

/// A word of the index that equals the query's word, or may stand for it.
pub(super) struct TermCandidate<'a> {
    pub(super) stem: String,
    pub(super) worth: f32,
    pub(super) postings: &'a [Posting],
}

impl<'a> SearchQuery<'a> {
    pub(super) fn of(text: &str, index: &'a Postings) -> Self {
        let text = &text[..text.floor_char_boundary(MAX_QUERY_BYTES)];
        let stems = stems(text, index);
        let mut room = MAX_COMPARISONS;
        let terms =
            stems.iter().map(|stem| QueryTerm::of(stem, &stems, index, &mut room)).collect();
        Self { phrase: Phrase::of(text), terms, meaning: meaning(text) }
    }

    /// Returns the total weight of all words.
    pub(super) fn rarity(&self) -> f32 {
        self.terms.iter().map(|term| term.rarity).sum()
    }
}

impl<'a> QueryTerm<'a> {
    /// `room` is the number of comparisons with words of the index that may still be made.
    fn of(stem: &str, query: &[String], index: &'a Postings, room: &mut usize) -> Self {
        let synonyms = LANGUAGE.synonyms.of(stem).iter();
        // A synonym that the query itself contains counts as a word of its own.
        let synonyms = synonyms.filter(|synonym| !query.contains(synonym));
        let mut stems: Vec<(&str, f32)> = vec![(stem, 1.0)];
        stems.extend(synonyms.map(|synonym| (synonym.as_str(), SYNONYM_WEIGHT)));
        let count = index.postings(stem).len();
        if count == 0 {
            let like = index.stems_like(stem).take(*room).inspect(|_| *room -= 1);
            let near = like.filter(|word| is_near(word, stem));
            stems.extend(near.map(|near| (near, NEAR_WORD_WEIGHT)));
        }
        let candidates = stems.into_iter().filter_map(|(stem, worth)| {
            let postings = index.postings(stem);
            let worth = worth * index.rarity(postings.len());
            (!postings.is_empty()).then(|| TermCandidate { stem: stem.to_owned(), worth, postings })
        });
        Self { rarity: index.rarity(count), candidates: candidates.collect() }
    }
}

/// Returns the stems of a query, in order and without duplicates. A word in mixed case is kept
/// whole if the index contains it whole, or lacks any of its parts: `GitLab` is not `git`.
fn stems(text: &str, index: &Postings) -> Vec<String> {
    let language = &LANGUAGE.words;
    let mut stems: Vec<String> = Vec::new();
    let mut push = |word: &str| {
        let stem = language.stem(word);
        if language.is_significant(word) && !stems.contains(&stem) && stems.len() < MAX_STEMS {
            stems.push(stem);
        }
    };
    let is_known = |word: &str| !index.postings(&language.stem(word)).is_empty();
    words::for_each_run(text, |run| {
        let are_known = || run.words().all(|word| !language.is_significant(word) || is_known(word));
        if run.has_several_words() && (is_known(run.whole()) || !are_known()) {
            push(run.whole());
        } else {
            run.words().for_each(&mut push);
        }
    });
    stems
}

/// Returns the meaning of a query, if any of its words is known. Common words count too, but their
/// vectors are short.
fn meaning(text: &str) -> Option<TextMeaning> {
    let Language { vectors, .. } = &*LANGUAGE;
    let mut sum = Vec::new();
    words::for_each(text, |word| vectors.add(&vectors.tokens(word), &mut sum));
    TextMeaning::of(&[(1.0, &sum)])
}

/// Returns whether `word` of the index may stand for the unknown word `typed`: with another ending,
/// or misspelt.
fn is_near(word: &str, typed: &str) -> bool {
    let begins =
        |word: &str, with: &str| with.chars().count() >= MIN_PREFIX_CHARS && word.starts_with(with);
    begins(word, typed) || begins(typed, word) || words::is_misspelt(typed, word)
}
