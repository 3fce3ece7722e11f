//! Who a session is with.

use std::sync::Arc;

use tokio::sync::watch;

use crate::proxy::{Endpoint, Principal, User};

/// Who a session is with, and what of the fleet it is for.
#[derive(Clone)]
pub struct HostIdentity {
    pub principal: Principal,
    pub user: User,
    pub endpoint: Endpoint,
    /// Whether its user sits at this machine: a browser there comes back to us.
    pub is_on_this_machine: bool,
    /// Whether the same host has further sessions, now or later.
    pub has_further_sessions: bool,
    /// What is known of the tool lists that the host has been given: in all its sessions together.
    pub tool_list_sync: Arc<ToolListSync>,
}

impl HostIdentity {
    /// A host that has this one session.
    pub fn of_single_session(endpoint: Endpoint, is_on_this_machine: bool) -> Self {
        Self {
            principal: Principal::new(),
            user: User::default(),
            endpoint,
            is_on_this_machine,
            has_further_sessions: false,
            tool_list_sync: Arc::default(),
        }
    }

    #[must_use]
    pub fn with_user(self, user: User) -> Self {
        Self { user, ..self }
    }
}

/// Whether a host has the tool list that it was told of.
pub struct ToolListSync {
    /// How often it was told that the list has changed.
    announced: watch::Sender<u64>,
    /// The last announcement after which it has been given a list.
    listed: watch::Sender<u64>,
}

impl Default for ToolListSync {
    fn default() -> Self {
        Self { announced: watch::Sender::new(0), listed: watch::Sender::new(0) }
    }
}

impl ToolListSync {
    /// The host is being told that the list has changed.
    pub(super) fn record_announcement(&self) {
        self.announced.send_modify(|number| *number += 1);
    }

    pub(super) fn announced(&self) -> u64 {
        *self.announced.borrow()
    }

    /// The host is being given a list that it asked for after announcement `number`.
    pub(super) fn record_listing(&self, number: u64) {
        self.listed.send_modify(|last| *last = number.max(*last));
    }

    /// Resolves once it has been given a list that it asked for after announcement `number`.
    pub(super) async fn wait_for_listing(&self, number: u64) {
        // The sender lives as long as `self`.
        let _ = self.listed.subscribe().wait_for(|relisted| *relisted >= number).await;
    }
}
