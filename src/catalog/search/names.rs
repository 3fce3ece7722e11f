//! Names that are said exactly, or nearly: they come before whatever has the same words.

use super::{phrase::Phrase, words};

/// The name of a tool with its server's before it, as somebody would say them.
#[derive(Debug)]
pub(super) struct Name {
    whole: Box<str>,
    /// Where the tool's own begins.
    own: usize,
}

impl Name {
    pub(super) fn of_tool(server: &str, tool: &str) -> Self {
        let (server, tool) = (Phrase::of(server), Phrase::of(tool));
        let whole = format!("{} {}", server.split(), tool.split()).into();
        Self { whole, own: server.split().len() + 1 }
    }

    pub(super) fn of_server(server: &str) -> Self {
        Self { whole: Phrase::of(server).split().into(), own: 0 }
    }

    /// How a request names it, if it does.
    pub(super) fn named(&self, query: &Phrase) -> Option<Named> {
        let (split, joined) = (query.split(), query.joined());
        self.said(split).or_else(|| self.said(joined).filter(|_| joined != split))
    }

    fn said(&self, said: &str) -> Option<Named> {
        let names = [&self.whole, &self.whole[self.own..]];
        if said.is_empty() {
            None
        } else if names.contains(&said) {
            Some(Named::Exactly)
        } else if names.iter().any(|name| words::is_misspelt(said, name)) {
            Some(Named::Nearly)
        } else {
            None
        }
    }
}

/// That a request is a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Exactly,
    Nearly,
}

impl Named {
    /// Above all that words can come to.
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
    fn a_name_may_be_said_with_its_server_or_without_and_misspelt() {
        let name = Name::of_tool("chrome-devtools", "take_screenshot");
        for (said, named) in [
            ("take screenshot", Some(Named::Exactly)),
            ("chrome devtools take screenshot", Some(Named::Exactly)),
            ("take screnshot", Some(Named::Nearly)),
            ("take snapshot", None),
            ("chrome devtools", None),
            ("", None),
        ] {
            assert_eq!(name.said(said), named, "{said:?}");
        }
        assert_eq!(Name::of_tool("a", "__").said(""), None);
        assert_eq!(Name::of_server("git").said("git"), Some(Named::Exactly));
    }
}
