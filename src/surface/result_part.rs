//! The parts of a result that was cut.

/// The part of a kept result that a host reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResultPart {
    /// A page, counted from 1.
    Page(usize),
    /// The lines that match a regular expression.
    Grep { pattern: String, limit: usize },
    /// The values to which a path leads.
    JsonPath { path: String, limit: usize },
}
