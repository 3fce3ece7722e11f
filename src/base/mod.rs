//! Utilities that every layer may use.

mod blocking;
mod exhaustion;
mod lock;

pub use blocking::run_blocking;
pub use exhaustion::is_exhaustion;
pub use lock::Lock;
