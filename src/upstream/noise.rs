//! Output of a server in its message stream that is not a message.

use crate::{base::Lock, config::Mask};

/// The count of such lines and the first one, which usually tells the cause.
#[derive(Debug, Default)]
pub(super) struct Noise {
    summary: Lock<NoiseSummary>,
    /// Removes secrets that the server repeats.
    mask: Mask,
}

#[derive(Debug, Default)]
struct NoiseSummary {
    count: usize,
    first: Option<String>,
}

impl Noise {
    pub(super) fn new(mask: Mask) -> Self {
        Self { summary: Lock::default(), mask }
    }

    /// Counts a line. Returns the text for the log, and whether the line is the first.
    pub(super) fn record(&self, what: &str) -> (String, bool) {
        let what = self.mask.masked(what);
        let mut summary = self.summary.lock();
        summary.count += 1;
        let is_first = summary.first.is_none();
        summary.first.get_or_insert_with(|| what.clone());
        (what, is_first)
    }

    /// Returns a short description of the output; `None` if there was none.
    pub(super) fn describe(&self) -> Option<String> {
        let summary = self.summary.lock();
        let first = summary.first.as_ref()?;
        Some(match summary.count {
            1 => format!("received {first}"),
            count => format!("received {first}, and {} similar ones", count - 1),
        })
    }
}
