//! The process or the HTTP exchanges behind a connection, as the connection's owner sees them.

use std::{pin::Pin, time::Duration};

use crate::peer::Peer;

pub(super) type CarrierFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The process behind a connection, or its HTTP exchanges. Dropping it ends it at once.
pub(super) trait Carrier: Send + Sync {
    /// Closes the connection, which fails the requests in flight, and ends everything behind it.
    fn end(self: Box<Self>, peer: Peer, policy: ShutdownPolicy) -> CarrierFuture<'static, ()>;

    /// Returns ` with exit status …`, or an empty text if there is none.
    fn describe_exit(&self) -> CarrierFuture<'_, String> {
        Box::pin(std::future::ready(String::new()))
    }

    /// Returns the end of standard error, as the end of a sentence; empty if there is none.
    fn stderr_quote(&self) -> String {
        String::new()
    }

    /// Returns whether only the session has expired, so that a new connection follows at once.
    fn is_expired(&self) -> bool {
        false
    }

    /// Returns whether the next connection has to wait for the end of this one: two processes may
    /// use the same lock or port.
    fn must_end_before_next(&self) -> bool {
        false
    }

    /// Returns the process group behind the connection; `None` if there is none on this machine, or
    /// if it is another's.
    fn process_group(&self) -> Option<u32> {
        None
    }

    /// Returns whether the connection is to the pool of the process, which speaks every era and
    /// says itself why a server cannot be connected.
    fn is_pooled(&self) -> bool {
        false
    }
}

/// Maximum time for each step of ending a process before the next, more forceful one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShutdownPolicy {
    /// After its input was closed.
    pub(super) end_of_input: Duration,
    /// After SIGTERM.
    pub(super) terminate: Duration,
    /// True if processes that have left the group end too. A server that goes to sleep may have
    /// opened the user's browser, or started a daemon that it finds again.
    pub(super) ends_strays: bool,
}

impl ShutdownPolicy {
    /// For a server that goes to sleep, which no caller waits for.
    pub(super) const SLEEP: Self = Self {
        end_of_input: Duration::from_secs(3),
        terminate: Duration::from_secs(3),
        ends_strays: false,
    };
    /// For a failed attempt, or when dormouse itself ends: a caller waits, or will kill dormouse
    /// soon.
    pub(super) const QUICK: Self = Self {
        end_of_input: Duration::from_millis(400),
        terminate: Duration::from_millis(400),
        ends_strays: true,
    };
}
