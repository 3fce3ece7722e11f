//! From text to the words that are compared: split, in lower case, without what every text has, and stemmed.

use std::collections::HashSet;

use snowball_stemmers_rs::{Algorithm, Stemmer};

/// Words that say nothing of what a tool does, and those of every request.
const COMMON: &[&str] = &[
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

    /// Whether a word, in lower case, is worth comparing.
    pub(super) fn tells(&self, word: &str) -> bool {
        !self.common.contains(word)
    }

    pub(super) fn stem(&self, word: &str) -> String {
        self.stemmer.stem(word).into_owned()
    }
}

/// The words of a text as somebody would say them, in lower case.
pub(super) fn said(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    for_each(text, |word| {
        if !said.is_empty() {
            said.push(' ');
        }
        said.push_str(word);
    });
    said
}

/// Calls `act` with each run of letters and digits in lower case and the words that it is made of: `gitlab` with
/// `git` and `lab` for `GitLab`. Random characters that are too long to be a word are passed over.
pub(super) fn for_each_run(text: &str, mut act: impl FnMut(&str, &[String])) {
    for run in text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        // Scripts without spaces have a whole clause in one run.
        if run.len() > LONGEST_RUN && run.is_ascii() {
            continue;
        }
        let mut parts = Vec::new();
        for_each(run, |word| parts.push(word.to_owned()));
        act(&parts.concat(), &parts);
    }
}

/// The text with each run of letters and digits as one word, in lower case.
pub(super) fn joined(text: &str) -> String {
    let mut joined = String::new();
    for_each_run(text, |whole, _| {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(whole);
    });
    joined
}

/// In bytes.
const LONGEST_RUN: usize = 64;

/// Calls `act` with each word in lower case. A text is split at what is neither letter nor digit, and inside
/// `camelCase` and `HTTPServer`.
pub(super) fn for_each(text: &str, mut act: impl FnMut(&str)) {
    let mut word = String::new();
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
        let starts_word = c.is_uppercase()
            && (before.is_lowercase()
                || before.is_numeric()
                || before.is_uppercase() && next_is_lower);
        if (starts_word || !c.is_alphanumeric()) && !word.is_empty() {
            act(&word);
            word.clear();
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    if !word.is_empty() {
        act(&word);
    }
}

/// Whether one letter too many, too few, wrong or swapped with the next makes `said` of `word`.
pub(super) fn is_misspelt(said: &str, word: &str) -> bool {
    /// Shorter words are like too many others.
    const SHORTEST: usize = 5;
    let (said, word) = (said.as_bytes(), word.as_bytes());
    if said.len().min(word.len()) < SHORTEST || said.len().abs_diff(word.len()) > 1 {
        return false;
    }
    let begin = said.iter().zip(word).take_while(|(a, b)| a == b).count();
    let (said, word) = (&said[begin..], &word[begin..]);
    let end = said.iter().rev().zip(word.iter().rev()).take_while(|(a, b)| a == b).count();
    match (&said[..said.len() - end], &word[..word.len() - end]) {
        ([], []) => false,
        ([a, b], [c, d]) => (a, b) == (d, c),
        (said, word) => said.len().max(word.len()) == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sentences_become_stems() {
        let words = Words::new();
        for (text, expected) in [
            ("readFile list_dir HTTPServer", vec!["read", "file", "list", "dir", "http", "server"]),
            ("Reading the files' contents, again reading", vec!["read", "file", "content"]),
            ("I don't want to use it; what's it", vec![]),
            ("naïve 日本", vec!["naïv", "日本"]),
        ] {
            let mut stems: Vec<String> = Vec::new();
            for_each(text, |word| {
                let stem = words.stem(word);
                if words.tells(word) && !stems.contains(&stem) {
                    stems.push(stem);
                }
            });
            assert_eq!(stems, expected, "{text}");
        }
    }

    #[test]
    fn a_name_in_two_cases_is_one_word_as_well() {
        let mut runs = Vec::new();
        for_each_run("GitLab readFile x", |whole, parts| {
            runs.push(format!("{whole}={}", parts.join("+")));
        });
        assert_eq!(runs, ["gitlab=git+lab", "readfile=read+file", "x=x"]);
        assert_eq!(joined("MongoDB, my-Server"), "mongodb my server");
    }

    #[test]
    fn a_misspelling_is_one_letter() {
        for said in ["screnshot", "screeenshot", "screansot", "screenshto", "screenshots"] {
            assert_eq!(is_misspelt(said, "screenshot"), said != "screansot", "{said}");
        }
        assert!(!is_misspelt("screenshot", "screenshot"));
        assert!(!is_misspelt("film", "file"));
    }
}
