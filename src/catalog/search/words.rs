//! Converts text to comparable words: split, in lower case, without common words, and stemmed.

use std::collections::HashSet;

use snowball_stemmers_rs::{Algorithm, Stemmer};

/// Words that carry no information about a tool, or that most requests contain.
const COMMON_WORDS: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "aren", "as",
    "at", "be", "because", "been", "before", "being", "but", "by", "can", "could", "couldn", "d",
    "did", "didn", "do", "does", "doesn", "doing", "don", "each", "every", "for", "from", "had",
    "has", "hasn", "have", "haven", "he", "help", "her", "here", "him", "his", "how", "i", "if",
    "in", "into", "is", "isn", "it", "its", "just", "let", "like", "ll", "m", "me", "more", "most",
    "my", "need", "no", "not", "now", "of", "off", "on", "one", "only", "or", "other", "our",
    "out", "over", "own", "please", "re", "s", "same", "she", "should", "shouldn", "so", "some",
    "such", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "those", "to", "too", "tool", "up", "us", "use", "used", "using", "ve", "very", "want", "was",
    "wasn", "we", "were", "what", "when", "where", "which", "while", "who", "why", "will", "with",
    "won", "would", "wouldn", "you", "your",
];

/// The rules for words: which ones are common, and how they are stemmed.
pub(super) struct WordRules {
    common: HashSet<&'static str>,
    stemmer: Stemmer,
}

impl WordRules {
    pub(super) fn new() -> Self {
        Self {
            common: COMMON_WORDS.iter().copied().collect(),
            stemmer: Stemmer::create(Algorithm::English),
        }
    }

    /// Returns whether a word, in lower case, is worth comparing.
    pub(super) fn is_significant(&self, word: &str) -> bool {
        !self.common.contains(word)
    }

    pub(super) fn stem(&self, word: &str) -> String {
        self.stemmer.stem(word).into_owned()
    }
}

/// A run of letters and digits in lower case, and its words: `git` and `lab` in `GitLab`.
#[derive(Debug, Default)]
pub(super) struct WordRun {
    whole: String,
    /// The byte offset at which each word ends.
    ends: Vec<usize>,
}

impl WordRun {
    pub(super) fn whole(&self) -> &str {
        &self.whole
    }

    pub(super) fn has_several_words(&self) -> bool {
        self.ends.len() > 1
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.whole[begin..*end])
    }

    /// Reads a run, and splits it inside `camelCase` and `HTTPServer`.
    fn read(&mut self, text: &str) {
        self.whole.clear();
        self.ends.clear();
        let mut before = ' ';
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
            let starts_word = c.is_uppercase()
                && (before.is_lowercase()
                    || before.is_numeric()
                    || before.is_uppercase() && next_is_lower);
            if starts_word {
                self.ends.push(self.whole.len());
            }
            if c.is_ascii() {
                self.whole.push(c.to_ascii_lowercase());
            } else {
                self.whole.extend(c.to_lowercase());
            }
            before = c;
        }
        self.ends.push(self.whole.len());
    }
}

/// Maximum length of a run of ASCII characters, in bytes. Longer runs are random characters.
/// Scripts without spaces are exempt, since a whole clause is one run.
const MAX_RUN_BYTES: usize = 64;

/// Calls `act` with each run of letters and digits, except for ASCII runs above [`MAX_RUN_BYTES`].
pub(super) fn for_each_run(text: &str, mut act: impl FnMut(&WordRun)) {
    let mut run = WordRun::default();
    for text in runs(text).filter(|run| run.len() <= MAX_RUN_BYTES || !run.is_ascii()) {
        run.read(text);
        act(&run);
    }
}

/// Calls `act` with each word in lower case.
pub(super) fn for_each(text: &str, mut act: impl FnMut(&str)) {
    let mut run = WordRun::default();
    for text in runs(text) {
        run.read(text);
        run.words().for_each(&mut act);
    }
}

fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty())
}

/// Returns whether `typed` differs from `word` by one letter that is added, missing, wrong or
/// swapped with the next.
pub(super) fn is_misspelt(typed: &str, word: &str) -> bool {
    /// Minimum length of a word, in bytes. Shorter words resemble too many others.
    const MIN_WORD_BYTES: usize = 5;
    let (typed, word) = (typed.as_bytes(), word.as_bytes());
    if typed.len().min(word.len()) < MIN_WORD_BYTES || typed.len().abs_diff(word.len()) > 1 {
        return false;
    }
    let begin = typed.iter().zip(word).take_while(|(a, b)| a == b).count();
    let (typed, word) = (&typed[begin..], &word[begin..]);
    let end = typed.iter().rev().zip(word.iter().rev()).take_while(|(a, b)| a == b).count();
    match (&typed[..typed.len() - end], &word[..word.len() - end]) {
        ([], []) => false,
        ([a, b], [c, d]) => (a, b) == (d, c),
        (typed, word) => typed.len().max(word.len()) == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sentences_become_stems() {
        let words = WordRules::new();
        for (text, expected) in [
            ("readFile list_dir HTTPServer", vec!["read", "file", "list", "dir", "http", "server"]),
            ("Reading the files' contents, again reading", vec!["read", "file", "content"]),
            ("I don't want to use it; what's it", vec![]),
            ("naïve 日本", vec!["naïv", "日本"]),
        ] {
            let mut stems: Vec<String> = Vec::new();
            for_each(text, |word| {
                let stem = words.stem(word);
                if words.is_significant(word) && !stems.contains(&stem) {
                    stems.push(stem);
                }
            });
            assert_eq!(stems, expected, "{text}");
        }
    }

    #[test]
    fn a_name_in_mixed_case_is_also_one_word() {
        let mut runs = Vec::new();
        for_each_run("GitLab readFile x", |run| {
            let words: Vec<&str> = run.words().collect();
            runs.push(format!("{}={}", run.whole(), words.join("+")));
        });
        assert_eq!(runs, ["gitlab=git+lab", "readfile=read+file", "x=x"]);
    }

    #[test]
    fn a_misspelling_differs_by_one_letter() {
        for typed in ["screnshot", "screeenshot", "screansot", "screenshto", "screenshots"] {
            assert_eq!(is_misspelt(typed, "screenshot"), typed != "screansot", "{typed}");
        }
        assert!(!is_misspelt("screenshot", "screenshot"));
        assert!(!is_misspelt("film", "file"));
    }
}
