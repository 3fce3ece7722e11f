//! What part of the fleet a host has connected to, and the form in which it is shown.

use std::sync::Arc;

use crate::{
    catalog::{ServerId, Snapshot},
    config::Surface,
    surface::{Apps, View},
};

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

    /// What of a snapshot there is to see here.
    pub(super) fn narrow(&self, snapshot: Arc<Snapshot>) -> Arc<Snapshot> {
        match self.only {
            Some(server) if snapshot.sole.is_none() => Arc::new(snapshot.only(server)),
            _ => snapshot,
        }
    }

    /// `apps`: where the host can show the interfaces of tools.
    pub(super) fn view<'a>(&self, snapshot: &'a Snapshot, apps: Option<Apps>) -> View<'a> {
        View { snapshot, surface: self.surface, apps }
    }
}
