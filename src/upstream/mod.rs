//! One MCP server: when it is connected, how, and what becomes of it.
//!
//! `state` is the life of a server as a pure function; `actor` is the one task that performs its
//! effects; everyone else holds an [`Upstream`] handle. This layer must not know who asks or how a
//! catalog is shown: it tells an [`Observer`].

mod activity;
mod actor;
mod attempt;
mod connect_error;
mod connection;
mod fetch;
mod freshness;
mod greet;
mod handle;
mod http;
mod inbound;
mod listen;
mod noise;
mod process;
mod retry_delay;
mod server_state;
mod server_status;
mod stderr;
mod strays;
pub mod watchdog;

pub use attempt::{ConnectTiming, declared_names};
pub use connect_error::{AttemptError, LoadError};
pub use fetch::{Kinds, offerable};
pub use handle::{Context, Lease, Upstream};
pub use http::HttpClient;
pub use inbound::Question;
pub use process::LINEAGE_VARIABLE;
pub use server_status::{Phase, Status, StaysAwake};
pub use watchdog::Watchdog;

use std::{pin::Pin, sync::Arc, time::Duration};

use crate::{
    catalog::{Origin, ServerCatalog},
    protocol::Era,
    wire::{Notification, Raw},
};

/// A catalog from another time.
pub struct Recalled {
    pub catalog: Arc<ServerCatalog>,
    /// How long ago the server had it.
    pub age: Duration,
    /// Whether the server had been declared then all that it would be declared now.
    pub is_sufficient: bool,
}

/// Which hosts are told that a catalog has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    All,
    /// The server has just said so itself: those that hear what it says know it already.
    Unaware,
    /// Hosts have just asked for the list: they get what is new with it, and are not to be told to ask again.
    NotListing,
}

/// Who is told what becomes of one server, and answers what it asks.
pub trait Observer: Send + Sync + 'static {
    /// The server's catalog is live, for the first time or with new content. `origin` says whose doing
    /// that was.
    fn live(&self, catalog: Arc<ServerCatalog>, origin: Origin, audience: Audience);

    /// The server has just shown this catalog.
    fn learned(&self, catalog: &Arc<ServerCatalog>);

    /// What it had when it was last connected, in whatever run that was.
    fn recall(&self) -> Option<Recalled>;

    /// What stands in the way of a server that may not be known yet, as a phrase; `None` when nothing does any more.
    fn troubled(&self, trouble: Option<String>);

    /// A load that somebody asked for failed.
    fn failed(&self, cause: String);

    /// Three loads in a row failed.
    fn evicted(&self);

    /// The server is in another phase of its life, or failed once more.
    fn moved(&self);

    /// The first attempt of an eager or hybrid server is over, however it ended.
    fn first_attempt_over(&self);

    /// The server notifies hosts of something. `cause`: the id of the request on whose stream it came,
    /// where the transport tells.
    fn notification(&self, notification: Notification, cause: Option<u64>);

    /// The server asks a host something; whoever takes the question answers it.
    fn question(&self, question: Question);

    /// The capabilities to declare in this era, from those of the attached hosts.
    fn capabilities(&self, era: Era) -> Raw;

    /// Whether the hosts that have the server for themselves declare more than `declared`, which a connection was made
    /// with for no host in particular.
    fn declares_more(&self, declared: &[String], era: Era) -> bool;

    /// What the host says of itself for which alone the server is connected; `None` where it is for several.
    fn client_info(&self) -> Option<Raw>;

    /// Whether some host does not keep up with what servers send.
    fn is_congested(&self) -> bool;

    /// Waits until hosts can take more, but not for ever.
    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
