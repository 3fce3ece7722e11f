//! The interface by which a server's life is told to the layer above.

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

/// Is told of the events of one server, and answers its questions.
pub(crate) trait ServerObserver: Send + Sync + 'static {
    /// The server's catalog is live, for the first time or with new content. `origin` tells who
    /// caused that.
    fn live(&self, catalog: Arc<ServerCatalog>, origin: LoadOrigin, audience: ChangeAudience);

    /// The server has just listed this catalog.
    fn learned(&self, catalog: &Arc<ServerCatalog>);

    /// Returns the catalog of the server's last connection, in any run.
    fn recall(&self) -> Option<Recalled>;

    /// The server, whose catalog may be unknown, cannot be connected for the reason `trouble`, a
    /// phrase; `None` if it can be again.
    fn troubled(&self, trouble: Option<String>);

    /// A load that a caller requested failed.
    fn failed(&self, cause: String);

    /// Three consecutive loads failed.
    fn evicted(&self);

    /// The server is in another phase of its life, or failed again.
    fn moved(&self);

    /// The first attempt of an eager or hybrid server is over, with or without success.
    fn first_attempt_over(&self);

    /// The server sends a notification. `cause` is the id of the request on whose stream it
    /// arrived, if the transport tells.
    fn notification(&self, notification: Notification, cause: Option<u64>);

    /// The server asks a host. The observer answers the question.
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
