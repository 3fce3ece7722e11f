//! The calls in flight at servers, by which unsolicited messages of servers find their hosts.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::mpsc;

use crate::{
    base::Lock,
    peer::{Peer, PreparedCall, Pulse},
    proxy::{Caller, instance::Instance},
    upstream::Question,
};

/// A call in flight.
#[derive(Clone)]
pub(in crate::proxy) struct InFlightCall {
    /// The id towards the server; each connection counts its own.
    pub(in crate::proxy) call: u64,
    /// The connection of the call.
    pub(in crate::proxy) upstream: Peer,
    pub(in crate::proxy) caller: Caller,
    pub(in crate::proxy) pulse: Pulse,
    pub(in crate::proxy) questions: QuestionRoute,
}

/// The way of a server's questions to the host of a call.
#[derive(Clone)]
pub(in crate::proxy) enum QuestionRoute {
    /// The host is asked by requests.
    Requests,
    /// The call gathers its questions, and its host gets them as a result.
    Gathered(mpsc::UnboundedSender<Question>),
    /// The host has got such a result and has not retried. Further questions are gathered.
    Parked(mpsc::UnboundedSender<Question>),
}

impl QuestionRoute {
    fn parked(self) -> Self {
        match self {
            Self::Gathered(gathered) => Self::Parked(gathered),
            route => route,
        }
    }

    fn unparked(self) -> Self {
        match self {
            Self::Parked(gathered) => Self::Gathered(gathered),
            route => route,
        }
    }
}

impl InFlightCall {
    /// Describes a call that is about to be sent on a connection.
    pub(in crate::proxy) fn new(
        call: &PreparedCall,
        upstream: &Peer,
        caller: &Caller,
        questions: QuestionRoute,
    ) -> Self {
        let (upstream, caller) = (upstream.clone(), caller.clone());
        Self { call: call.id(), upstream, caller, pulse: call.pulse(), questions }
    }

    pub(in crate::proxy) fn is_parked(&self) -> bool {
        matches!(self.questions, QuestionRoute::Parked(_))
    }
}

/// All calls in flight, by instance and in the order in which they began.
#[derive(Clone, Default)]
pub(in crate::proxy) struct InFlight(Arc<InFlightInner>);

/// The calls of each instance by number, in the order in which they began.
type Entries = HashMap<Instance, BTreeMap<u64, InFlightCall>>;

#[derive(Default)]
struct InFlightInner {
    entries: Lock<Entries>,
    last: AtomicU64,
}

impl InFlight {
    /// Registers a call for as long as the returned guard lives.
    pub(in crate::proxy) fn enter(&self, instance: Instance, entry: InFlightCall) -> Entered {
        let number = self.0.last.fetch_add(1, Ordering::Relaxed);
        self.0.entries.lock().entry(instance).or_default().insert(number, entry);
        Entered { registry: self.clone(), instance, number }
    }

    /// Returns the calls to which a message may belong: the one that the transport names, or all of
    /// the instance.
    pub(in crate::proxy) fn candidates(
        &self,
        instance: Instance,
        cause: Option<u64>,
    ) -> Vec<InFlightCall> {
        let entries = self.0.entries.lock();
        let Some(all) = entries.get(&instance) else { return Vec::new() };
        let is_meant = |entry: &InFlightCall| match cause {
            // A closed connection sends nothing more.
            None => !entry.upstream.is_closed(),
            Some(call) => entry.call == call,
        };
        all.values().filter(|entry| is_meant(entry)).cloned().collect()
    }
}

/// Removes the call when dropped.
pub(in crate::proxy) struct Entered {
    registry: InFlight,
    instance: Instance,
    number: u64,
}

impl Entered {
    /// Marks the call as waiting for its host.
    pub(in crate::proxy) fn park(&self) {
        let mut entries = self.registry.0.entries.lock();
        let Some(all) = entries.get_mut(&self.instance) else { return };
        if let Some(entry) = all.remove(&self.number) {
            let questions = entry.questions.parked();
            all.insert(self.number, InFlightCall { questions, ..entry });
        }
    }

    /// Continues the call for another request, as the one that began last.
    pub(in crate::proxy) fn pass_to(&mut self, caller: &Caller) {
        let number = self.registry.0.last.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.registry.0.entries.lock();
        let Some(all) = entries.get_mut(&self.instance) else { return };
        if let Some(entry) = all.remove(&self.number) {
            let (caller, questions) = (caller.clone(), entry.questions.unparked());
            all.insert(number, InFlightCall { caller, questions, ..entry });
            self.number = number;
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut entries = self.registry.0.entries.lock();
        if let Some(all) = entries.get_mut(&self.instance) {
            all.remove(&self.number);
            if all.is_empty() && self.instance.owner.is_some() {
                entries.remove(&self.instance);
            }
        }
    }
}
