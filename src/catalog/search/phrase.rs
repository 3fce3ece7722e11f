//! A query or a name as a sequence of words.

use super::words;

/// The words of a text in lower case, in two forms: `GitLab` is `git lab` and `gitlab`.
///
/// Both forms have a space at each end, so that one phrase contains another only at whole words.
#[derive(Debug)]
pub(super) struct Phrase {
    split: String,
    joined: String,
}

impl Phrase {
    pub(super) fn of(text: &str) -> Self {
        let (mut split, mut joined) = (" ".to_owned(), " ".to_owned());
        words::for_each(text, |word| push(&mut split, word));
        words::for_each_run(text, |run| push(&mut joined, run.whole()));
        Self { split, joined }
    }

    /// The form in which `GitLab` is two words.
    pub(super) fn split(&self) -> &str {
        self.split.trim()
    }

    /// The form in which `GitLab` is one word.
    pub(super) fn joined(&self) -> &str {
        self.joined.trim()
    }

    /// Returns whether this text mentions a name. A part of a word, such as `git` in `GitLab`, is
    /// not a mention.
    pub(super) fn mentions(&self, name: &Self) -> bool {
        let holds = |text: &str, name: &str| !name.trim().is_empty() && text.contains(name);
        let has_several_words = name.split().contains(' ');
        holds(&self.joined, &name.split)
            || holds(&self.joined, &name.joined)
            || has_several_words && holds(&self.split, &name.split)
    }
}

fn push(phrase: &mut String, word: &str) {
    phrase.push_str(word);
    phrase.push(' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_word_is_not_a_mention() {
        let mentions = |text, name| Phrase::of(text).mentions(&Phrase::of(name));
        for (text, name) in [
            ("close the GitLab issue", "gitlab"),
            ("close the gitlab issue", "GitLab"),
            ("close the git lab issue", "GitLab"),
            ("use git", "git"),
            ("x-a-a-a", "a a"),
        ] {
            assert!(mentions(text, name), "{text:?} mentions {name:?}");
        }
        for (text, name) in [("close the GitLab issue", "git"), ("digit", "git"), ("any", "--")] {
            assert!(!mentions(text, name), "{text:?} does not mention {name:?}");
        }
    }

    #[test]
    fn both_forms_are_in_lower_case_and_without_punctuation() {
        let phrase = Phrase::of("MongoDB, my-Server");
        assert_eq!((phrase.split(), phrase.joined()), ("mongo db my server", "mongodb my server"));
    }
}
