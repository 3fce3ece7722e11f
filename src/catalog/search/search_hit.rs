//! The results of a search.

use crate::catalog::ToolRef;

/// The object that a search has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchTarget {
    Tool(ToolRef),
    /// An offer, by position, whose tools are not known until it is loaded.
    Offer(usize),
}

impl SearchTarget {
    /// Returns the position of the offer.
    pub(super) fn offer(self) -> usize {
        match self {
            Self::Tool(at) => at.offer,
            Self::Offer(offer) => offer,
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
