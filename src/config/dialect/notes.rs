//! The messages of a translation.

/// The messages of a translation, each at a byte of the text.
#[derive(Debug, Default)]
pub(in crate::config) struct Notes {
    /// The reasons that the file cannot be used.
    pub(in crate::config) problems: Vec<(usize, String)>,
    /// The parts that dormouse ignores or treats differently, with the effect.
    pub(in crate::config) warnings: Vec<(usize, String)>,
}

impl Notes {
    pub(super) fn problem(&mut self, at: usize, message: impl Into<String>) {
        self.problems.push((at, message.into()));
    }

    pub(super) fn warn(&mut self, at: usize, message: impl Into<String>) {
        self.warnings.push((at, message.into()));
    }
}
