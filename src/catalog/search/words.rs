//! From text to the words that are compared: split, in lower case, without what every text has, and stemmed.

use std::collections::HashSet;

use snowball_stemmers_rs::{Algorithm, Stemmer};

/// Words that say nothing of what a tool does, and those of every request.
const COMMON: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at",
    "be", "because", "been", "before", "being", "but", "by", "can", "could", "did", "do", "does",
    "doing", "don", "each", "every", "for", "from", "had", "has", "have", "he", "help", "her",
    "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "like",
    "me", "more", "most", "my", "need", "no", "not", "now", "of", "off", "on", "one", "only", "or",
    "other", "our", "out", "over", "own", "please", "re", "s", "same", "she", "should", "so",
    "some", "such", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "to", "too", "tool", "up", "us", "use", "used", "using", "ve", "very", "want",
    "was", "we", "were", "what", "when", "where", "which", "while", "who", "why", "will", "with",
    "would", "you", "your",
];

/// Splits, filters and stems.
pub(super) struct Words {
    common: HashSet<&'static str>,
    stemmer: Stemmer,
}

impl Words {
    pub(super) fn new() -> Self {
        Self {
            common: COMMON.iter().copied().collect(),
            stemmer: Stemmer::create(Algorithm::English),
        }
    }

    /// The stems of a text, in order.
    pub(super) fn stems(&self, text: &str) -> Vec<String> {
        let words = split(text).into_iter();
        words
            .filter(|word| !self.common.contains(word.as_str()))
            .map(|word| self.stem(&word))
            .collect()
    }

    pub(super) fn stem(&self, word: &str) -> String {
        self.stemmer.stem(word).into_owned()
    }
}

/// Words in lower case: split at what is neither letter nor digit, and inside `camelCase` and `HTTPServer`.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
        let starts_word = c.is_uppercase()
            && (before.is_lowercase()
                || before.is_numeric()
                || before.is_uppercase() && next_is_lower);
        if (!c.is_alphanumeric() && c != '\'') || starts_word {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().expect("never empty").extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sentences_become_stems() {
        let words = Words::new();
        for (text, expected) in [
            ("readFile list_dir HTTPServer", vec!["read", "file", "list", "dir", "http", "server"]),
            ("Reading the files' contents", vec!["read", "file", "content"]),
            ("I want to use it", vec![]),
            ("naïve 日本", vec!["naïv", "日本"]),
        ] {
            assert_eq!(words.stems(text), expected, "{text}");
        }
    }
}
