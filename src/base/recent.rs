//! The last items of a sequence that has no end.

use std::collections::VecDeque;

use super::Lock;

/// The last items, oldest first, bounded in number and in size.
pub(crate) struct Recent<T> {
    max_count: usize,
    max_bytes: usize,
    kept: Lock<Kept<T>>,
}

struct Kept<T> {
    /// Each with its size in bytes.
    items: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T: Clone> Recent<T> {
    pub(crate) const fn new(max_count: usize, max_bytes: usize) -> Self {
        let kept = Lock::new(Kept { items: VecDeque::new(), bytes: 0 });
        Self { max_count, max_bytes, kept }
    }

    /// Adds an item of this size, and forgets the oldest ones above the bounds.
    pub(crate) fn push(&self, item: T, bytes: usize) {
        let mut kept = self.kept.lock();
        kept.bytes += bytes;
        kept.items.push_back((item, bytes));
        while kept.items.len() > self.max_count || kept.bytes > self.max_bytes {
            let Some((_, bytes)) = kept.items.pop_front() else { break };
            kept.bytes -= bytes;
        }
    }

    /// Returns the items, oldest first.
    pub(crate) fn items(&self) -> Vec<T> {
        self.kept.lock().items.iter().map(|(item, _)| item.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_bounded_in_number_and_size() {
        let recent = Recent::new(200, 64 * 1024);
        let push = |line: String| {
            let bytes = line.len();
            recent.push(line, bytes);
        };
        (0..500).for_each(|number| push(number.to_string()));
        assert_eq!((recent.items().len(), recent.items()[0].as_str()), (200, "300"));
        push("x".repeat(64 * 1024));
        assert_eq!(recent.items().len(), 1);
        push("y".repeat(64 * 1024 + 1));
        assert!(recent.items().is_empty());
    }
}
