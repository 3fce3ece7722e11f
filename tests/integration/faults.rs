//! Faults of the machine: dormouse says what it could not do, loses nothing, and works again when
//! the fault is gone.
//!
//! A test whose fault this machine cannot have says so and ends; `scripts/faults` prints all of
//! these reasons.

mod clock;
mod disk;
mod exhaustion;
mod keychain;
mod network;
mod stopped;
