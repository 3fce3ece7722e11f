//! The part of the fleet that a host has connected to, and its form.

use crate::{
    catalog::{OfferId, ServerId},
    config::{ProfileName, Surface},
};

/// A host's own choice of the form and of the profile of its endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndpointChoice {
    pub surface: Option<Surface>,
    pub profile: Option<ProfileName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub surface: Surface,
    /// The only offer at the endpoint. Its names are bare, and unknown methods pass.
    pub only: Option<OfferId>,
    /// The profile that contains all that the endpoint shows; `None` if nothing is left out.
    pub profile: Option<ProfileName>,
}

impl Endpoint {
    /// Returns the server of the only offer at the endpoint.
    pub(crate) fn only_server(&self) -> Option<ServerId> {
        self.only.map(OfferId::server)
    }

    /// Returns the server that the host talks to directly, as if dormouse were not there.
    pub(crate) fn passes_through(&self) -> Option<ServerId> {
        let only = self.only.filter(|only| only.is_whole() && self.surface == Surface::Direct);
        only.map(OfferId::server)
    }

    /// Returns whether two endpoints have the same path, in whatever form and with whatever
    /// profile.
    pub(crate) fn has_same_path(&self, other: &Self) -> bool {
        self.only == other.only
    }
}
