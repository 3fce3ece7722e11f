//! Leases: the right to change values, which one process or task has at a time.

/// A lease that ends when this is dropped, or with its process.
pub(crate) struct StoreLease {
    _held: Box<dyn Send + Sync>,
}

impl StoreLease {
    /// Makes a lease that lasts as long as `held`.
    pub(super) fn of(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}
