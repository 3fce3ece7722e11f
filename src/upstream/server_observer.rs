//! The interface through which an instance reports to the layer above, and asks it about hosts.

use std::{pin::Pin, sync::Arc, time::Duration};

use super::Question;
use crate::{
    catalog::{LoadOrigin, ServerCatalog},
    protocol::Era,
    wire::{Notification, Raw},
};

/// A catalog of another run.
pub(crate) struct Recalled {
    pub catalog: Arc<ServerCatalog>,
    /// The time since the server listed it.
    pub age: Duration,
    /// True if the server was then declared all capabilities that it would be declared now.
    pub is_sufficient: bool,
}

/// The hosts that are told of a changed catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeAudience {
    All,
    /// The server has just announced the change itself: hosts that get its notifications know it
    /// already.
    Unaware,
    /// Hosts have just requested the list. They get the change with it, and must not be told to
    /// request it again.
    NotListing,
}

/// The receiver of what one instance reports, which also answers its questions about the hosts.
pub(crate) trait ServerObserver: Send + Sync + 'static {
    /// Reports that the server has been connected, which took so long.
    fn connected(&self, took: Duration);

    /// Publishes the server's catalog, which is live for the first time or has changed. `origin` is
    /// the cause of the load.
    fn live(&self, catalog: Arc<ServerCatalog>, origin: LoadOrigin, audience: ChangeAudience);

    /// Stores a catalog that the server has just listed.
    fn learned(&self, catalog: &Arc<ServerCatalog>);

    /// Reads the catalog of the server's last connection, in any run.
    fn recall(&self) -> Pin<Box<dyn Future<Output = Option<Recalled>> + Send + '_>>;

    /// Reports why the server cannot be connected, as a phrase; `None` if it can be again. Its
    /// catalog may be unknown.
    fn troubled(&self, trouble: Option<String>);

    /// Reports the cause of a failed load.
    fn failed(&self, cause: String);

    /// Reports that three consecutive loads have failed.
    fn evicted(&self);

    /// Reports that the state machine has handled an event.
    fn moved(&self);

    /// Reports that the first attempt of an eager or hybrid server has succeeded or failed.
    fn first_attempt_over(&self);

    /// Relays a notification of the server. `cause` is the id of the request on whose stream it
    /// arrived, if the transport tells.
    fn notification(&self, notification: Notification, cause: Option<u64>);

    /// Answers a question of the server, after asking a host.
    fn question(&self, question: Question);

    /// Returns the capabilities to declare in this era, from those of the attached hosts.
    fn capabilities(&self, era: Era) -> Raw;

    /// Returns whether the hosts that have the server for themselves declare more than `declared`,
    /// the capabilities of a connection that was made for no particular host.
    fn declares_more(&self, declared: &[String], era: Era) -> bool;

    /// Returns the client information of the only host for which the server is connected; `None` if
    /// there are several.
    fn client_info(&self) -> Option<Raw>;

    /// Returns whether some host reads slower than servers send.
    fn is_congested(&self) -> bool;

    /// Waits until hosts can take more, with a time limit.
    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
