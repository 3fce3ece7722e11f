//! The number of a server.

use crate::config::ServerConfig;

/// The number of a server, which stays the same for as long as the process lives. A server is the
/// unit of connection; what is listed and loaded are its offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub usize);

impl ServerId {
    /// Numbers the servers of the first config in their order.
    pub fn number(servers: &[ServerConfig]) -> Vec<(Self, &ServerConfig)> {
        servers.iter().enumerate().map(|(number, server)| (Self(number), server)).collect()
    }
}
