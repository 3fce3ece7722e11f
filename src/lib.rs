pub mod catalog;
pub mod config;
pub mod peer;
pub mod protocol;
pub mod upstream;
pub mod wire;
