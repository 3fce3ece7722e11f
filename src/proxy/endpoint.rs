//! The part of the fleet that a host has connected to, and its form.

use crate::{
    catalog::{OfferId, ServerId},
    config::Surface,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub surface: Surface,
    /// The only offer at the endpoint. Its names are bare, and unknown methods pass.
    pub only: Option<OfferId>,
}

impl Endpoint {
    pub(super) fn shows(&self, server: ServerId) -> bool {
        self.only.is_none_or(|only| only.server() == server)
    }

    pub(super) fn shows_offer(&self, offer: OfferId) -> bool {
        self.only.is_none_or(|only| only == offer)
    }

    /// Returns the server of the only offer at the endpoint.
    pub(crate) fn only_server(&self) -> Option<ServerId> {
        self.only.map(OfferId::server)
    }

    /// Returns the server that the host talks to directly, as if dormouse were not there.
    pub(crate) fn passes_through(&self) -> Option<ServerId> {
        let only = self.only.filter(|only| only.is_whole() && self.surface == Surface::Direct);
        only.map(OfferId::server)
    }
}
