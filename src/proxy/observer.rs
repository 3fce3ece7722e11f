//! The reports of instances to the fleet.

use std::{
    pin::Pin,
    sync::{Arc, Weak},
    time::Duration,
};

use super::{
    Event, Fleet, catalog_writer, catalogs, declared, instance::Instance, notifications,
    personal_resources, publishing, questions,
};
use crate::{
    base::{Lock, run_blocking},
    catalog::{LoadOrigin, Presence, ServerCatalog, ServerId},
    protocol::Era,
    upstream::{ChangeAudience, Question, Recalled, ServerObserver},
    wire::{Notification, Raw},
};

/// Reports the life of an instance to the fleet.
pub(super) struct InstanceObserver {
    fleet: Weak<Fleet>,
    instance: Instance,
    /// The last catalog of the instance, if its resources are not for all hosts.
    last: Lock<Option<Arc<ServerCatalog>>>,
}

impl InstanceObserver {
    pub(super) fn new(fleet: Weak<Fleet>, instance: Instance) -> Self {
        Self { fleet, instance, last: Lock::default() }
    }

    /// Returns whether the resources of a catalog are not for all hosts, and differ from the last
    /// ones.
    fn has_other_resources(&self, fleet: &Fleet, catalog: &Arc<ServerCatalog>) -> bool {
        if !personal_resources::has_any(fleet, self.instance.server) {
            return false;
        }
        let last = self.last.lock().replace(catalog.clone());
        last.map_or(!catalog.resources.is_empty(), |last| last.resources != catalog.resources)
    }

    /// Returns whether only one person uses the instance. What goes wrong with it is not told to
    /// others, since it may be due to the person's account.
    fn is_of_person(&self) -> bool {
        self.instance.login_owner().is_some()
    }

    fn tell(&self, tell: impl FnOnce(&Fleet, ServerId)) {
        // The fleet is gone only when dormouse ends.
        if let Some(fleet) = self.fleet.upgrade() {
            tell(&fleet, self.instance.server);
        }
    }
}

impl ServerObserver for InstanceObserver {
    fn connected(&self, took: Duration) {
        self.tell(|fleet, server| {
            if let Some(sink) = fleet.events.sink() {
                sink.server_woke(&fleet.servers.config(server).name, took);
            }
        });
    }

    fn live(&self, catalog: Arc<ServerCatalog>, origin: LoadOrigin, audience: ChangeAudience) {
        self.tell(|fleet, _| {
            fleet.events.send(Event::CatalogLearned);
            let has_other_resources = self.has_other_resources(fleet, &catalog);
            let catalog = personal_resources::without_personal(fleet, self.instance, &catalog);
            publishing::publish_connection(fleet, self.instance, audience, &catalog);
            publishing::publish(fleet, self.instance, audience, |offer| {
                // The origin of a live catalog does not change while it is live.
                let origin = offer.presence.origin().unwrap_or(origin);
                let is_live = offer.presence.origin().is_some()
                    || origin == LoadOrigin::OwnAccord
                    || fleet.board.is_requested(offer);
                if !is_live {
                    let had_trouble =
                        matches!(offer.presence, Presence::Offered { trouble: Some(_) });
                    return had_trouble.then_some(Presence::Offered { trouble: None });
                }
                let exposed = fleet.memory.catalogs.expose(offer, &catalog);
                Some(Presence::Live { exposed, origin })
            });
            if has_other_resources {
                personal_resources::announce(fleet, self.instance);
            }
        });
    }

    fn learned(&self, catalog: &Arc<ServerCatalog>) {
        self.tell(|fleet, _| {
            let catalog = personal_resources::without_personal(fleet, self.instance, catalog);
            catalog_writer::keep(fleet, self.instance, &catalog);
        });
    }

    fn recall(&self) -> Pin<Box<dyn Future<Output = Option<Recalled>> + Send + '_>> {
        let (fleet, instance) = (self.fleet.clone(), self.instance);
        let recalling = run_blocking(move || catalogs::recall(&*fleet.upgrade()?, instance));
        Box::pin(async { recalling.await.flatten() })
    }

    fn troubled(&self, trouble: Option<String>) {
        if self.is_of_person() {
            return;
        }
        self.tell(|fleet, _| {
            publishing::publish(fleet, self.instance, ChangeAudience::All, |offer| {
                match offer.presence {
                    // The catalog stays: the next call tries to reach the server again.
                    Presence::Live { .. } | Presence::Evicted | Presence::Disabled => None,
                    Presence::Offered { .. } => {
                        Some(Presence::Offered { trouble: trouble.clone() })
                    }
                }
            });
        });
    }

    fn failed(&self, cause: String) {
        if self.is_of_person() {
            return;
        }
        self.tell(|fleet, _| publishing::note_failure(fleet, self.instance, &cause));
    }

    fn evicted(&self) {
        if self.is_of_person() {
            return;
        }
        self.tell(|fleet, _| {
            publishing::publish(fleet, self.instance, ChangeAudience::All, |offer| {
                match offer.presence {
                    // An instance of another host has shown that the server can be connected.
                    Presence::Live { .. } => None,
                    _ => Some(Presence::Evicted),
                }
            });
        });
    }

    fn moved(&self) {
        self.tell(|fleet, _| fleet.events.send(Event::ServerMoved));
    }

    fn first_attempt_over(&self) {
        self.tell(|fleet, server| fleet.servers.first_attempt_over(server));
    }

    fn notification(&self, notification: Notification, cause: Option<u64>) {
        self.tell(|fleet, _| notifications::relay(fleet, self.instance, &notification, cause));
    }

    fn question(&self, question: Question) {
        self.tell(|fleet, _| questions::ask(fleet, self.instance, question));
    }

    fn capabilities(&self, era: Era) -> Raw {
        let Some(fleet) = self.fleet.upgrade() else { return Raw::empty_object() };
        declared::capabilities_for(&fleet, self.instance, era)
    }

    fn declares_more(&self, declared: &[String], era: Era) -> bool {
        let Some(fleet) = self.fleet.upgrade() else { return false };
        declared::declares_more(&fleet, self.instance, declared, era)
    }

    fn client_info(&self) -> Option<Raw> {
        declared::client_info_for(&*self.fleet.upgrade()?, self.instance)
    }

    fn is_congested(&self) -> bool {
        self.fleet.upgrade().is_some_and(|fleet| fleet.audience.is_congested())
    }

    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            if let Some(fleet) = self.fleet.upgrade() {
                fleet.audience.ready().await;
            }
        })
    }
}
