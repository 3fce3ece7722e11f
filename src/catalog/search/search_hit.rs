//! The results of a search.

use crate::catalog::ToolRef;

/// The object that a search has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchTarget {
    Tool(ToolRef),
    /// A server whose tools are not known until it is loaded.
    Server(usize),
}

impl SearchTarget {
    /// Returns the position of the server.
    pub(super) fn server(self) -> usize {
        match self {
            Self::Tool(at) => at.server,
            Self::Server(server) => server,
        }
    }
}

/// One result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    pub target: SearchTarget,
    pub score: f32,
    /// The reasons for the score, the strongest first: `name: screenshot`.
    pub reasons: Vec<String>,
}
