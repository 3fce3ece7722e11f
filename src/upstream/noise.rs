//! What a server writes where its messages belong, and is none.

use std::sync::{Mutex, MutexGuard};

/// Counted, and the first of it kept: it mostly tells what is wrong.
#[derive(Debug, Default)]
pub(super) struct Noise(Mutex<Heard>);

#[derive(Debug, Default)]
struct Heard {
    count: usize,
    first: Option<String>,
}

impl Noise {
    /// Whether this is the first of it.
    pub(super) fn hear(&self, what: &str) -> bool {
        let mut heard = self.lock();
        heard.count += 1;
        if heard.first.is_some() {
            return false;
        }
        heard.first = Some(what.to_owned());
        true
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
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
