//! The position of a tool in a snapshot.

/// A tool of a server whose catalog is known, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolRef {
    pub server: usize,
    pub tool: usize,
}
