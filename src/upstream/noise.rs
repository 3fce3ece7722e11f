//! What a server writes where its messages belong, and is none.

use crate::{base::Lock, config::Mask};

/// Counted, and the first of it kept: it mostly tells what is wrong.
#[derive(Debug, Default)]
pub(super) struct Noise {
    heard: Lock<Heard>,
    /// Takes out what the server was given and repeats.
    mask: Mask,
}

#[derive(Debug, Default)]
struct Heard {
    count: usize,
    first: Option<String>,
}

impl Noise {
    pub(super) fn new(mask: Mask) -> Self {
        Self { heard: Lock::default(), mask }
    }

    /// Counts it; returns what may be logged of it, and whether it is the first.
    pub(super) fn hear(&self, what: &str) -> (String, bool) {
        let what = self.mask.masked(what);
        let mut heard = self.heard.lock();
        heard.count += 1;
        let is_first = heard.first.is_none();
        heard.first.get_or_insert_with(|| what.clone());
        (what, is_first)
    }

    /// What was heard, in a few words.
    pub(super) fn described(&self) -> Option<String> {
        let heard = self.heard.lock();
        let first = heard.first.as_ref()?;
        Some(match heard.count {
            1 => format!("it sent {first}"),
            count => format!("it sent {first}, and {} more of the like", count - 1),
        })
    }
}
