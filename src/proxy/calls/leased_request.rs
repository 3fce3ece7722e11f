//! A request of a host on its way to a server that is awake.

use std::time::Duration;

use super::recorder::Recorder;
use crate::{
    peer::{CallError, CallOptions},
    protocol::{Era, adapt, method},
    proxy::{
        Caller, Fleet,
        in_flight::{InFlightCall, QuestionRoute},
        instance::Instance,
        known_tasks,
    },
    upstream::Lease,
    wire::{Outcome, Raw},
};

/// A request of a host on its way to a server that is awake.
pub(super) struct LeasedRequest<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) lease: Lease,
    pub(super) instance: Instance,
    pub(super) caller: &'a Caller,
    pub(super) method: &'a str,
    /// The method of the host's request; another one if dormouse has made a task of a call.
    pub(super) answered_as: &'a str,
    pub(super) recorder: Recorder,
}

/// The outcome of a request that was sent.
pub(super) enum Sent {
    Answered(Outcome),
    /// The server has asked something, and the call waits for the host: it gets this result, and
    /// its retry gets the answer.
    Parked(Raw),
}

impl LeasedRequest<'_> {
    /// Returns how long the server may be silent.
    pub(super) fn silence(&self) -> Duration {
        let timeouts = self.fleet.servers.config(self.instance.server).settings.timeouts;
        // `tasks/result` is answered when the work is done.
        let is_work = matches!(self.method, method::TOOLS_CALL | method::TASKS_RESULT);
        if is_work { timeouts.call } else { timeouts.request }
    }

    /// Returns the `params` in the server's era.
    pub(super) fn adapted(&self, params: Option<Raw>) -> Option<Raw> {
        let era = self.lease.greeting().era;
        let client = &self.caller.client;
        // A modern server is told with each request what a legacy host has set once.
        let crosses = (client.era, era) == (Era::Legacy, Era::Modern);
        let level =
            crosses.then(|| self.fleet.audience.levels().of(self.caller.host.id())).flatten();
        adapt::params(client, era, level, params)
    }

    /// Returns the result for the host if it creates a task.
    pub(super) fn with_task(&self, result: Raw) -> Raw {
        match self.method {
            method::TOOLS_CALL => {
                known_tasks::with_task(self.fleet, &self.lease, self.instance, self.caller, result)
            }
            _ => result,
        }
    }

    /// Returns the answer in the host's era.
    pub(super) fn answered(&self, outcome: Outcome) -> Outcome {
        let era = self.lease.greeting().era;
        adapt::outcome(self.method, era, self.caller.client.era, outcome)
    }

    /// Sends the request once, and waits for the answer.
    pub(super) async fn send(&self, params: Option<Raw>) -> Result<Outcome, CallError> {
        let options =
            CallOptions { silence: self.silence(), progress: self.caller.progress_sink() };
        let call = self.lease.peer().prepare(options);
        let route = QuestionRoute::Requests;
        let entry = InFlightCall::new(&call, self.lease.peer(), self.caller, route);
        let _entered = self.fleet.calls.in_flight.enter(self.instance, entry);
        let params = self.recorder.send(&self.lease, call.id(), self.adapted(params));
        let outcome = call.send(self.method, params).await?;
        Ok(self.answered(outcome))
    }
}
