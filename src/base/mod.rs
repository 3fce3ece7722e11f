//! What every layer may use: the ground floor.

mod blocking;
mod resources;

pub use blocking::run_blocking;
pub use resources::is_exhaustion;
