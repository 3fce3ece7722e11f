//! What a server writes where its messages belong, and is none.

use crate::{base::Lock, config::Mask};

/// Counted, and the first of it kept: it mostly tells what is wrong.
#[derive(Debug, Default)]
pub(super) struct Noise {
    summary: Lock<NoiseSummary>,
    /// Takes out what the server was given and repeats.
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

    /// Counts it; returns what may be logged of it, and whether it is the first.
    pub(super) fn record(&self, what: &str) -> (String, bool) {
        let what = self.mask.masked(what);
        let mut summary = self.summary.lock();
        summary.count += 1;
        let is_first = summary.first.is_none();
        summary.first.get_or_insert_with(|| what.clone());
        (what, is_first)
    }

    /// What was summary, in a few words.
    pub(super) fn describe(&self) -> Option<String> {
        let summary = self.summary.lock();
        let first = summary.first.as_ref()?;
        Some(match summary.count {
            1 => format!("it sent {first}"),
            count => format!("it sent {first}, and {} more of the like", count - 1),
        })
    }
}
