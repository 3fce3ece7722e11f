//! The position of a tool in a snapshot.

/// A tool of an offer whose catalog is known, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolRef {
    /// The position of the offer.
    pub offer: usize,
    pub tool: usize,
}
