//! The part of the fleet that a host has connected to, and its form.

use crate::{catalog::ServerId, config::Surface};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub surface: Surface,
    /// The only server at the endpoint. Its names are bare, and unknown methods pass.
    pub only: Option<ServerId>,
}

impl Endpoint {
    pub(super) fn shows(&self, server: ServerId) -> bool {
        self.only.is_none_or(|only| only == server)
    }

    /// Returns the server that the host talks to directly, as if dormouse were not there.
    pub(crate) fn passes_through(&self) -> Option<ServerId> {
        self.only.filter(|_| self.surface == Surface::Direct)
    }
}
