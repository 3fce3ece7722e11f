//! The record of one request of a host, from its arrival to its answer.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::{
    CallFault, Caller, EndedRequest, EventSink, TimeSpan,
    calls::{fault_of, subject_of},
};
use crate::wire::{Outcome, Raw};

/// A request of a host that has not been answered. If it is dropped before that, its host has
/// cancelled it or left.
pub(super) struct RequestRecord<'a> {
    sink: &'a dyn EventSink,
    began: Instant,
    /// The request, as far as it is known; `None` once it is reported.
    request: Option<EndedRequest>,
}

impl<'a> RequestRecord<'a> {
    pub(super) fn begin(
        sink: &'a dyn EventSink,
        caller: &Caller,
        method: &str,
        params: Option<&Raw>,
    ) -> Self {
        let request = EndedRequest {
            id: caller.id.to_string(),
            client: caller.client.clone(),
            method: method.to_owned(),
            subject: params.and_then(subject_of),
            time: TimeSpan { began: SystemTime::now(), took: Duration::ZERO },
            fault: None,
            span: caller.span.clone(),
        };
        Self { sink, began: Instant::now(), request: Some(request) }
    }

    pub(super) fn end(mut self, outcome: &Outcome) {
        self.report(fault_of(outcome), outcome.as_ref().ok());
    }

    fn report(&mut self, fault: Option<CallFault>, result: Option<&Raw>) {
        let Some(mut request) = self.request.take() else { return };
        request.time.took = self.began.elapsed();
        request.fault = fault;
        self.sink.request_ended(request, result);
    }
}

impl Drop for RequestRecord<'_> {
    fn drop(&mut self) {
        self.report(Some(CallFault::Cancelled), None);
    }
}
