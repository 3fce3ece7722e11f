//! The logging of failures that repeat.

/// The failure of a server that was logged last, so that retries that fail for the same reason are
/// not logged as loudly.
#[derive(Default)]
pub(super) struct FailureLog(Option<String>);

impl FailureLog {
    /// Logs the reason that the server is unreachable, as a warning only once.
    pub(super) fn log_unreachable(&mut self, server: &str, cause: &str) {
        if self.is_last(cause) {
            tracing::debug!(server, cause, "server still unreachable");
        } else {
            tracing::warn!(server, cause, "server unreachable");
            self.0 = Some(cause.to_owned());
        }
    }

    /// Returns whether a failure for this reason was logged last.
    pub(super) fn is_last(&self, cause: &str) -> bool {
        self.0.as_deref() == Some(cause)
    }

    /// Forgets the last failure, because the server has been reached.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}
