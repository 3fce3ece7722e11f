//! An observer that records what the actor tells it.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::scenario::Seen;
use crate::{
    base::Lock,
    catalog::{LoadOrigin, ServerCatalog},
    protocol::Era,
    upstream::{ChangeAudience, Phase, Question, Recalled, ServerObserver, Upstream},
    wire::{Notification, Raw},
};

pub(super) struct Recorder {
    /// True if the catalog of another run can be recalled.
    is_recalled: bool,
    upstream: Lock<Option<Upstream>>,
    seen: Lock<Vec<(Instant, Seen)>>,
    retries: Lock<Vec<(Instant, Instant)>>,
    last_retry: Lock<Option<Instant>>,
}

impl Recorder {
    pub(super) fn new(is_recalled: bool) -> Arc<Self> {
        let (upstream, seen, retries, last_retry) = Default::default();
        Arc::new(Self { is_recalled, upstream, seen, retries, last_retry })
    }

    /// Records the phases of this server.
    pub(super) fn watch(&self, upstream: Upstream) {
        *self.upstream.lock() = Some(upstream);
    }

    /// Forgets the server, which holds this recorder.
    pub(super) fn unwatch(&self) {
        *self.upstream.lock() = None;
    }

    pub(super) fn see(&self, seen: Seen) {
        self.seen.lock().push((Instant::now(), seen));
    }

    pub(super) fn take_seen(&self) -> Vec<(Instant, Seen)> {
        std::mem::take(&mut self.seen.lock())
    }

    pub(super) fn take_retries(&self) -> Vec<(Instant, Instant)> {
        std::mem::take(&mut self.retries.lock())
    }
}

impl ServerObserver for Recorder {
    fn connected(&self, _: Duration) {}

    fn live(&self, catalog: Arc<ServerCatalog>, _: LoadOrigin, _: ChangeAudience) {
        let tool = catalog.tools.first().map_or("v0", |tool| tool.name.as_str());
        self.see(Seen::Live(tool[1..].parse().expect("a version")));
    }

    fn learned(&self, _: &Arc<ServerCatalog>) {}

    fn recall(&self) -> Pin<Box<dyn Future<Output = Option<Recalled>> + Send + '_>> {
        let catalog = Arc::new(ServerCatalog::unknown());
        let recalled = Recalled { catalog, age: Duration::ZERO, is_sufficient: true };
        Box::pin(std::future::ready(self.is_recalled.then_some(recalled)))
    }

    fn troubled(&self, trouble: Option<String>) {
        self.see(Seen::Troubled(trouble.is_some()));
    }

    fn failed(&self, _: String) {
        self.see(Seen::LoadFailed);
    }

    fn evicted(&self) {
        self.see(Seen::Evicted);
    }

    fn moved(&self) {
        let Some(status) = self.upstream.lock().as_ref().map(Upstream::status) else { return };
        self.see(Seen::Phase(status.phase));
        let retry = status.retry_at.map(Instant::from_std);
        let before = std::mem::replace(&mut *self.last_retry.lock(), retry);
        if let Some(due) = retry.filter(|_| status.phase == Phase::BackingOff && retry != before) {
            self.retries.lock().push((Instant::now(), due));
        }
    }

    fn first_attempt_over(&self) {
        self.see(Seen::FirstAttemptOver);
    }

    fn notification(&self, _: Notification, _: Option<u64>) {}

    fn question(&self, _: Question) {}

    fn capabilities(&self, _: Era) -> Raw {
        Raw::empty_object()
    }

    fn declares_more(&self, _: &[String], _: Era) -> bool {
        false
    }

    fn client_info(&self) -> Option<Raw> {
        None
    }

    fn is_congested(&self) -> bool {
        false
    }

    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}
