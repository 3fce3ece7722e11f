//! The key of one running instance of a server.

use super::Principal;
use crate::catalog::ServerId;

/// An instance: the one that all hosts share, or one principal's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Instance {
    pub(super) server: ServerId,
    /// The version of the server's config with which it was started.
    pub(super) version: u32,
    /// The principal that it belongs to; `None` where hosts share it.
    pub(super) owner: Option<Principal>,
}

impl Instance {
    /// Returns the instance that hosts share.
    pub(super) fn shared(server: ServerId, version: u32) -> Self {
        Self { server, version, owner: None }
    }
}
