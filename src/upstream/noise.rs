//! What a server writes where its messages belong, and is none.

use std::sync::{Mutex, MutexGuard};

use crate::config::Mask;

/// Counted, and the first of it kept: it mostly tells what is wrong.
#[derive(Debug, Default)]
pub(super) struct Noise {
    heard: Mutex<Heard>,
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
        Self { heard: Mutex::default(), mask }
    }

    /// Counts it; returns what may be logged of it, and whether it is the first.
    pub(super) fn hear(&self, what: &str) -> (String, bool) {
        let what = self.mask.masked(what);
        let mut heard = self.lock();
        heard.count += 1;
        let is_first = heard.first.is_none();
        heard.first.get_or_insert_with(|| what.clone());
        (what, is_first)
    }

    /// What was heard, in a few words.
    pub(super) fn described(&self) -> Option<String> {
        let heard = self.lock();
        let first = heard.first.as_ref()?;
        Some(match heard.count {
            1 => format!("it sent {first}"),
            count => format!("it sent {first}, and {} more of the like", count - 1),
        })
    }

    // A std mutex: held for one look or change.
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
