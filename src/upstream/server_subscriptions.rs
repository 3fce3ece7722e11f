//! The resources and tasks that hosts have subscribed to at a server.

use std::collections::BTreeSet;

use tokio::sync::Notify;

use crate::{base::Lock, protocol::LogLevel};

/// The resources and tasks that hosts have subscribed to.
#[derive(Default)]
pub(super) struct ServerSubscriptions {
    wanted: Lock<SubscriptionSet>,
    changed: Notify,
    /// The level of the log messages that hosts want. Later connections are told as well.
    log_level: Lock<Option<LogLevel>>,
}

#[derive(Clone, Default)]
pub(super) struct SubscriptionSet {
    /// The URIs of resources. A server with any is not idle.
    pub(super) uris: BTreeSet<String>,
    /// The ids of tasks, which keep the server awake by themselves.
    pub(super) tasks: BTreeSet<String>,
}

impl ServerSubscriptions {
    pub(super) fn wanted(&self) -> SubscriptionSet {
        self.wanted.lock().clone()
    }

    pub(super) fn uris(&self) -> BTreeSet<String> {
        self.wanted.lock().uris.clone()
    }

    /// Returns whether any host is subscribed to a resource.
    pub(super) fn has_uris(&self) -> bool {
        !self.wanted.lock().uris.is_empty()
    }

    pub(super) fn log_level(&self) -> Option<LogLevel> {
        *self.log_level.lock()
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        *self.log_level.lock() = Some(level);
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn set(&self, uri: &str, wanted: bool) {
        self.change(|all| &mut all.uris, uri, wanted);
    }

    pub(super) fn set_task(&self, id: &str, wanted: bool) {
        self.change(|all| &mut all.tasks, id, wanted);
    }

    fn change(
        &self,
        part: impl FnOnce(&mut SubscriptionSet) -> &mut BTreeSet<String>,
        item: &str,
        wanted: bool,
    ) {
        let mut all = self.wanted.lock();
        let items = part(&mut all);
        let differs = if wanted { items.insert(item.to_owned()) } else { items.remove(item) };
        drop(all);
        if differs {
            self.changed.notify_one();
        }
    }
}
