//! What every layer may use: the ground floor.

mod blocking;
mod lock;
mod resources;

pub use blocking::run_blocking;
pub use lock::Lock;
pub use resources::is_exhaustion;
