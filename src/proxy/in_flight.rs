//! The calls that servers work on, by which what servers say of their own accord finds its host.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::mpsc;

use super::{Caller, instance::Instance};
use crate::{peer::Pulse, upstream::Question};

/// A call in flight.
#[derive(Clone)]
pub(super) struct Entry {
    /// Its id towards the server.
    pub(super) call: u64,
    pub(super) caller: Caller,
    pub(super) pulse: Pulse,
    /// Where its questions are gathered, when its host cannot be asked directly.
    pub(super) questions: Option<mpsc::UnboundedSender<Question>>,
}

/// All of them, per instance in the order in which they began.
#[derive(Clone, Default)]
// A std mutex: held to add, remove or copy entries.
pub(super) struct InFlight(Arc<Mutex<HashMap<Instance, Vec<Entry>>>>);

impl InFlight {
    /// Enters a call for as long as what is returned lives.
    pub(super) fn enter(&self, instance: Instance, entry: Entry) -> Entered {
        let call = entry.call;
        self.lock().entry(instance).or_default().push(entry);
        Entered { registry: self.clone(), instance, call }
    }

    /// The calls that something may belong to: the one that the transport names, else all of the instance.
    pub(super) fn candidates(&self, instance: Instance, cause: Option<u64>) -> Vec<Entry> {
        let entries = self.lock();
        let all = entries.get(&instance).map(Vec::as_slice).unwrap_or_default();
        match cause {
            None => all.to_vec(),
            Some(call) => all.iter().filter(|entry| entry.call == call).cloned().collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Instance, Vec<Entry>>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Takes the call out when it is dropped.
pub(super) struct Entered {
    registry: InFlight,
    instance: Instance,
    call: u64,
}

impl Entered {
    /// The call is another request's from now on.
    pub(super) fn pass_to(&self, caller: &Caller) {
        let mut entries = self.registry.lock();
        let all = entries.get_mut(&self.instance).map(Vec::as_mut_slice).unwrap_or_default();
        if let Some(entry) = all.iter_mut().find(|entry| entry.call == self.call) {
            entry.caller = caller.clone();
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut entries = self.registry.lock();
        if let Some(all) = entries.get_mut(&self.instance) {
            // Most calls end in about the order in which they began.
            all.retain(|entry| entry.call != self.call);
            if all.is_empty() && self.instance.owner.is_some() {
                entries.remove(&self.instance);
            }
        }
    }
}
