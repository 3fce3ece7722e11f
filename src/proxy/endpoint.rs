//! What part of the fleet a host has connected to, and the form in which it is shown.

use crate::{catalog::ServerId, config::Surface};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub surface: Surface,
    /// The one server that there is to see; its names are bare, and what is unknown passes.
    pub only: Option<ServerId>,
}

impl Endpoint {
    pub(super) fn shows(&self, server: ServerId) -> bool {
        self.only.is_none_or(|only| only == server)
    }

    /// The one server that the host talks to as if dormouse were not there.
    pub fn passes_through(&self) -> Option<ServerId> {
        self.only.filter(|_| self.surface == Surface::Direct)
    }
}
