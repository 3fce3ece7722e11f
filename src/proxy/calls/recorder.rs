//! The stage *record*: the end of a request becomes an event, once.

use std::sync::Arc;

use tokio::time::Instant;

use super::{call::Call, forward_error::ForwardError};
use crate::{
    base::Lock,
    proxy::{CallEnding, EndedCall, Event, Fleet, HostId, events::Events},
    wire::{Outcome, Raw, edit},
};

/// Sends the event that a request has ended, once for all clones: when it is finished, or when the
/// last clone is dropped, because the host has cancelled the request or never came back with
/// answers.
#[derive(Clone)]
pub(in crate::proxy) struct Recorder(Option<Arc<OpenRecord>>);

struct OpenRecord {
    events: Events,
    /// `None` once the event is sent or discarded.
    open: Lock<Option<OpenCall>>,
}

/// A request that has not ended.
struct OpenCall {
    began: Instant,
    host: HostId,
    server: String,
    method: String,
    params: Option<Raw>,
}

impl Recorder {
    /// Begins the record of a call. Without a listener nothing is recorded.
    pub(super) fn begin(fleet: &Fleet, call: &Call<'_>) -> Self {
        if !fleet.events.has_listeners() {
            return Self(None);
        }
        let open = OpenCall {
            began: Instant::now(),
            host: call.caller.host.id(),
            server: fleet.servers.config(call.server).name.clone(),
            method: call.method.to_owned(),
            params: call.params.clone(),
        };
        let events = fleet.events.clone();
        Self(Some(Arc::new(OpenRecord { events, open: Lock::new(Some(open)) })))
    }

    /// Sends the event. The first of several ends counts.
    pub(super) fn finish(&self, answered: &Result<Outcome, ForwardError>) {
        let Some(record) = &self.0 else { return };
        let is_error = |result: &Raw| {
            edit::get(result, "isError").is_some_and(|is_error| is_error.as_bytes() == b"true")
        };
        record.end(match answered {
            Ok(Ok(result)) if is_error(result) => CallEnding::Failed,
            Ok(Ok(_)) => CallEnding::Succeeded,
            Ok(Err(_)) => CallEnding::Refused,
            // The same request is made again.
            Err(ForwardError::Superseded | ForwardError::Asks(_)) => {
                *record.open.lock() = None;
                return;
            }
            Err(_) => CallEnding::Unanswered,
        });
    }
}

impl OpenRecord {
    fn end(&self, ending: CallEnding) {
        let Some(call) = self.open.lock().take() else { return };
        let subject = call.params.as_ref().and_then(|params| {
            edit::get_str(params, "name").or_else(|| edit::get_str(params, "uri"))
        });
        self.events.send(Event::CallEnded(EndedCall {
            host: call.host,
            server: call.server,
            method: call.method,
            subject,
            took: call.began.elapsed(),
            ending,
        }));
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        self.end(CallEnding::Unanswered);
    }
}
