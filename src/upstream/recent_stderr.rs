//! The last lines of a server's standard error, over all of its processes.

use std::collections::VecDeque;

use crate::base::Lock;

/// Maximum number of lines that are kept.
const MAX_LINES: usize = 200;
/// Maximum size of all lines that are kept, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// The last lines, oldest first.
#[derive(Default)]
pub(super) struct RecentStderr(Lock<KeptLines>);

#[derive(Default)]
struct KeptLines {
    lines: VecDeque<String>,
    bytes: usize,
}

impl RecentStderr {
    pub(super) fn push(&self, line: String) {
        let mut kept = self.0.lock();
        kept.bytes += line.len();
        kept.lines.push_back(line);
        while kept.lines.len() > MAX_LINES || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.lines.pop_front() else { break };
            kept.bytes -= oldest.len();
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().lines.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_in_number_and_size() {
        let recent = RecentStderr::default();
        (0..500).for_each(|number| recent.push(number.to_string()));
        assert_eq!((recent.lines().len(), recent.lines()[0].as_str()), (MAX_LINES, "300"));
        recent.push("x".repeat(MAX_BYTES));
        assert_eq!(recent.lines().len(), 1);
        recent.push("y".repeat(MAX_BYTES + 1));
        assert!(recent.lines().is_empty());
    }
}
