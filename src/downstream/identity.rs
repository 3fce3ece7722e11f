//! The identity of the host of a session.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{
    identity::Person,
    proxy::{Endpoint, Principal, Usage, User},
};

/// The host of a session, and the servers that the session is for.
#[derive(Clone)]
pub(crate) struct HostIdentity {
    pub principal: Principal,
    pub user: User,
    /// The person behind the host, if a token has told.
    pub person: Option<Arc<Person>>,
    /// The use by the person.
    pub usage: Option<Usage>,
    pub endpoint: Endpoint,
    /// True if the host's user is at this machine, so that a browser there can return to dormouse
    /// after a login.
    pub is_on_this_machine: bool,
    /// True if the same host has further sessions, now or later.
    pub has_further_sessions: bool,
    /// The tool lists that the host was given, in all its sessions together.
    pub tool_list_sync: Arc<ToolListSync>,
}

impl HostIdentity {
    /// Returns the identity of a host that has only this session.
    pub(crate) fn of_single_session(endpoint: Endpoint, is_on_this_machine: bool) -> Self {
        Self {
            principal: Principal::new(),
            user: User::default(),
            person: None,
            usage: None,
            endpoint,
            is_on_this_machine,
            has_further_sessions: false,
            tool_list_sync: Arc::default(),
        }
    }

    #[must_use]
    pub(crate) fn with_sender(
        self,
        user: User,
        person: Option<Arc<Person>>,
        usage: Option<Usage>,
    ) -> Self {
        Self { user, person, usage, ..self }
    }
}

/// Tracks whether a host has fetched the tool list since the last announcement of a change.
pub(crate) struct ToolListSync {
    /// Number of announcements to the host that the list has changed.
    announced: watch::Sender<u64>,
    /// Number of the last announcement after which the host requested a list that it was given.
    listed: watch::Sender<u64>,
}

impl Default for ToolListSync {
    fn default() -> Self {
        Self { announced: watch::Sender::new(0), listed: watch::Sender::new(0) }
    }
}

impl ToolListSync {
    /// Records that the host is being told of a change.
    pub(super) fn record_announcement(&self) {
        self.announced.send_modify(|number| *number += 1);
    }

    pub(super) fn announced(&self) -> u64 {
        *self.announced.borrow()
    }

    /// Records that the host is being given a list that it requested after announcement `number`.
    pub(super) fn record_listing(&self, number: u64) {
        self.listed.send_modify(|last| *last = number.max(*last));
    }

    /// Waits until the host was given a list that it requested after announcement `number`.
    pub(super) async fn wait_for_listing(&self, number: u64) {
        // The sender lives as long as `self`.
        let _ = self
            .listed
            .subscribe()
            .wait_for(|tool_list_fetched| *tool_list_fetched >= number)
            .await;
    }
}
