//! The settings and services that every server of the process uses.

use std::time::Duration;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::Opener;
use crate::auth::Auth;

/// The context that all servers of the process share.
#[derive(Clone)]
pub(crate) struct Context {
    pub opener: Opener,
    pub auth: Auth,
    /// The lifetime of a hybrid server's catalog if the server states none; `None` for no expiry.
    pub catalog_ttl: Option<Duration>,
    /// True if dormouse reads the catalogs, false if it leaves the lists to the hosts.
    pub reads_lists: bool,
    pub tasks: TaskTracker,
    pub stop: CancellationToken,
}
