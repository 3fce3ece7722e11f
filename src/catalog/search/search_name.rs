//! Queries that are the name of a tool, exactly or nearly. Such a tool comes before all other
//! results.

use super::{phrase::Phrase, words};

/// The name of a tool with the name of its server before it, as words.
#[derive(Debug)]
pub(super) struct SearchName {
    whole: Box<str>,
    /// The offset of the tool's own name.
    own: usize,
}

impl SearchName {
    pub(super) fn of_tool(server: &str, tool: &str) -> Self {
        let (server, tool) = (Phrase::of(server), Phrase::of(tool));
        let whole = format!("{} {}", server.split(), tool.split()).into();
        Self { whole, own: server.split().len() + 1 }
    }

    pub(super) fn of_server(server: &str) -> Self {
        Self { whole: Phrase::of(server).split().into(), own: 0 }
    }

    /// Returns how closely a query equals the name, if it does.
    pub(super) fn matched_by(&self, query: &Phrase) -> Option<NameMatch> {
        let (split, joined) = (query.split(), query.joined());
        self.compare(split).or_else(|| self.compare(joined).filter(|_| joined != split))
    }

    fn compare(&self, typed: &str) -> Option<NameMatch> {
        let names = [&self.whole, &self.whole[self.own..]];
        if typed.is_empty() {
            None
        } else if names.contains(&typed) {
            Some(NameMatch::Exactly)
        } else if names.iter().any(|name| words::is_misspelt(typed, name)) {
            Some(NameMatch::Nearly)
        } else {
            None
        }
    }
}

/// The similarity of a query and a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameMatch {
    Exactly,
    Nearly,
}

impl NameMatch {
    /// Returns a score that is higher than any score of words.
    pub(super) fn score(self) -> f32 {
        match self {
            Self::Exactly => 20.0,
            Self::Nearly => 10.0,
        }
    }

    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Exactly => "its name",
            Self::Nearly => "nearly its name",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_with_or_without_its_server_and_misspelt() {
        let name = SearchName::of_tool("chrome-devtools", "take_screenshot");
        for (typed, expected) in [
            ("take screenshot", Some(NameMatch::Exactly)),
            ("chrome devtools take screenshot", Some(NameMatch::Exactly)),
            ("take screnshot", Some(NameMatch::Nearly)),
            ("take snapshot", None),
            ("chrome devtools", None),
            ("", None),
        ] {
            assert_eq!(name.compare(typed), expected, "{typed:?}");
        }
        assert_eq!(SearchName::of_tool("a", "__").compare(""), None);
        assert_eq!(SearchName::of_server("git").compare("git"), Some(NameMatch::Exactly));
    }
}
