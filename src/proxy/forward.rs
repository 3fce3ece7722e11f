//! One request to one server: wake it, carry the request over in its era, and the answer back.

use std::time::Duration;

use serde_json::json;

use super::{Caller, Fleet};
use crate::{
    peer::{CallError, CallOptions},
    protocol::adapt,
    upstream::{Lease, LoadError},
    wire::{Outcome, Raw, edit},
};

/// Why a request has no answer from its server.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ForwardError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("server {server:?} ended before it answered; the request may have been executed")]
    Died { server: String },
    #[error("server {server:?}: {cause}")]
    Call { server: String, cause: CallError },
}

/// How often a host that waits for a load is shown that it goes on.
const HEARTBEAT: Duration = Duration::from_secs(5);

impl Fleet {
    /// Sends a request to a server, which is woken or loaded for it, and returns its answer.
    pub(super) async fn forward(
        &self,
        server: usize,
        caller: &Caller,
        method: &str,
        params: Option<Raw>,
    ) -> Result<Outcome, ForwardError> {
        let name = || self.upstream(server).name().to_owned();
        for _ in 0..2 {
            let lease = self.lease(server, caller).await?;
            match self.request(&lease, server, caller, method, params.clone()).await {
                Ok(outcome) => return Ok(outcome),
                // It ended before the request was sent, so trying again repeats nothing.
                Err(CallError::NotSent) => {}
                Err(CallError::Closed) => return Err(ForwardError::Died { server: name() }),
                Err(cause) => return Err(ForwardError::Call { server: name(), cause }),
            }
        }
        Err(ForwardError::Call { server: name(), cause: CallError::NotSent })
    }

    /// Sends a request to a server that is awake.
    pub(super) async fn request(
        &self,
        lease: &Lease,
        server: usize,
        caller: &Caller,
        method: &str,
        params: Option<Raw>,
    ) -> Result<Outcome, CallError> {
        let timeouts = self.upstream(server).config().timeouts;
        let silence = if method == "tools/call" { timeouts.call } else { timeouts.request };
        let era = lease.greeting().era;
        let params = adapt::params(&caller.client, era, params);
        let options = CallOptions { silence, progress: caller.progress_sink() };
        let outcome = lease.peer().request(method, params, options).await?;
        Ok(adapt::outcome(method, era, caller.client.era, outcome))
    }

    /// The server, awake. A host that asked for progress is told that it takes a while.
    pub(super) async fn lease(&self, server: usize, caller: &Caller) -> Result<Lease, LoadError> {
        let upstream = self.upstream(server);
        if let Some(lease) = upstream.awake() {
            return Ok(lease);
        }
        let era = caller.client.era;
        let mut leasing = std::pin::pin!(upstream.lease(era));
        let mut beats = 0_u32;
        loop {
            if let Ok(lease) = tokio::time::timeout(HEARTBEAT, &mut leasing).await {
                return lease;
            }
            beats += 1;
            beat(caller, upstream.name(), beats);
        }
    }
}

/// The values rise from -1 towards 0, so that those of the server itself still rise after them.
fn beat(caller: &Caller, server: &str, beats: u32) {
    let Some(token) = &caller.progress_token else { return };
    let params = Raw::encode(&json!({
        "progress": -1.0 / f64::from(beats),
        "message": format!("starting server {server}"),
    }));
    let params = edit::set(&params, "progressToken", token);
    caller.host.peer().notify("notifications/progress", Some(params));
}
