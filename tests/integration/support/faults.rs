//! Faults of the machine, injected by means of Linux. Most of them need root.

mod clock;
mod control_group;
mod descriptors;
mod isolation;
mod keychain;
mod mounts;
mod network;

pub use clock::FakeClock;
pub use control_group::ControlGroup;
pub use descriptors::DescriptorShortage;
pub use isolation::{Namespace, isolated};
pub use keychain::{BusFault, FaultyBus, RealKeychain};
pub use mounts::{ReadOnly, SmallDisk};
pub use network::{PacketLoss, SlowLink};
