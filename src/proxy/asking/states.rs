//! The `requestState`s that modern hosts have been given, and what waits for their return
//! (2026-07-28, basic/patterns/mrtr).

use std::collections::{HashMap, VecDeque};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::{
    base::{Lock, SealUse, SealingKeys, now_seconds, random_token},
    protocol::{Era, error},
    proxy::{Caller, Principal},
    wire::{Raw, edit},
};

/// Maximum number of states; the oldest is dropped for a new one.
const MAX_STATES: usize = 1000;

/// Whether a server may have executed a part of a request about which a host is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum RequestProgress {
    /// No server has got it: another replica may handle the retry as a new request.
    Unsent,
    Sent,
}

/// The values that wait for hosts, by state. A host can neither guess nor forge a state: it is
/// random, or sealed with what another replica has to know when this one is gone.
pub(super) struct States<T> {
    /// Those of all replicas; `None` for a process alone.
    keys: Option<SealingKeys>,
    /// The prefix of this process's states. It tells them from those of a server, which may be
    /// another dormouse.
    prefix: String,
    waiting: Lock<HashMap<String, Waiting<T>>>,
}

/// The prefix of the states of every dormouse.
const STATE_PREFIX: &str = "dormouse-";

/// The states of servers that are themselves a dormouse, as passed on to hosts. Any other state
/// with the prefix of a dormouse comes from a process that has ended, or is forged, and must be
/// refused (2026-07-28, basic/patterns/mrtr, Security).
#[derive(Default)]
pub(super) struct ServerStates {
    /// States, oldest first.
    states: Lock<VecDeque<String>>,
}

impl ServerStates {
    /// Remembers the state in a server's result, if it has the prefix of a dormouse.
    pub(super) fn note(&self, result: &Raw) {
        let state = edit::get_str(result, "requestState");
        let Some(state) = state.filter(|state| state.starts_with(STATE_PREFIX)) else { return };
        if state.len() > MAX_STATE {
            return;
        }
        let mut states = self.states.lock();
        if states.len() >= MAX_STATES {
            states.pop_front();
        }
        states.push_back(state);
    }

    /// Checks the state in the params for a server. States of this process must have been removed.
    ///
    /// # Errors
    /// The error object to answer with.
    pub(super) fn check(&self, server: Era, params: Option<&Raw>) -> Result<(), Raw> {
        let state = params.and_then(|params| edit::get(params, "requestState"));
        let Some(state) = state else { return Ok(()) };
        let state = state.read::<String>().unwrap_or_default();
        let is_of_server = match server {
            // A legacy server gives no states.
            Era::Legacy => false,
            Era::Modern => !state.starts_with(STATE_PREFIX) || self.states.lock().contains(&state),
        };
        if is_of_server { Ok(()) } else { Err(error::invalid_params(STATE_GONE)) }
    }
}

const STATE_GONE: &str =
    "\"requestState\" has expired, was used before, or belongs to another request";
/// Maximum length of a remembered state, in bytes.
const MAX_STATE: usize = 512;

struct Waiting<T> {
    what: T,
    binding: Binding,
    until: Instant,
}

/// The principal and the request to which a state belongs.
#[derive(Clone, PartialEq, Eq)]
struct Binding {
    principal: Principal,
    request: [u8; 32],
}

impl<T> States<T> {
    /// `mark`: a text that no other process has. `keys`: those of all replicas.
    pub(super) fn new(mark: &str, keys: Option<SealingKeys>) -> Self {
        let prefix = format!("{STATE_PREFIX}{mark}.");
        Self { keys, prefix, waiting: Lock::default() }
    }

    /// Keeps a value for the caller's host. Returns the state to give to the host.
    pub(super) fn keep(
        &self,
        caller: &Caller,
        until: Instant,
        progress: RequestProgress,
        what: T,
    ) -> String {
        let sealed = self.keys.as_ref().filter(|_| progress == RequestProgress::Unsent);
        let token = match sealed {
            Some(keys) => {
                let rest = until.saturating_duration_since(Instant::now());
                let until = (now_seconds() + rest.as_secs()).to_be_bytes();
                let context = seal_context(caller);
                BASE64_URL_SAFE_NO_PAD.encode(keys.seal(SealUse::RequestState, &context, &until))
            }
            None => random_token::<32>(),
        };
        let state = format!("{}{token}", self.prefix);
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        let mut ended: Vec<Waiting<T>> =
            waiting.extract_if(|_, waiting| waiting.until <= now).map(|(_, ended)| ended).collect();
        if waiting.len() >= MAX_STATES {
            let oldest = waiting.iter().min_by_key(|(_, waiting)| waiting.until);
            let oldest = oldest.map(|(state, _)| state.clone());
            ended.extend(oldest.and_then(|state| waiting.remove(&state)));
        }
        waiting.insert(state.clone(), Waiting { what, binding: Binding::of(caller), until });
        drop(waiting);
        // Dropping a value may cancel a call, which must not happen under the lock.
        drop(ended);
        state
    }

    /// Takes the value for which a host has come back; `None` if its request has no state of ours.
    ///
    /// # Errors
    /// The error object to answer with, if the value is gone or belongs to another principal.
    pub(super) fn take(&self, caller: &Caller) -> Option<Result<T, Raw>> {
        let params = caller.request.as_ref()?.params.as_ref()?;
        let state = edit::get_str(params, "requestState").filter(|state| self.is_ours(state))?;
        let binding = Binding::of(caller);
        let mut waiting = self.waiting.lock();
        // The value of another principal stays.
        let is_theirs = waiting.get(&state).is_some_and(|waiting| waiting.binding == binding);
        let taken = if is_theirs { waiting.remove(&state) } else { None };
        drop(waiting);
        let taken = taken.filter(|taken| taken.until > Instant::now());
        Some(taken.map(|taken| taken.what).ok_or_else(|| error::invalid_params(STATE_GONE)))
    }

    /// Removes the host's answers to dormouse from the params of a request. `context`: that in
    /// which its state was sealed, if it was.
    pub(super) fn taken_out_of(&self, context: impl FnOnce() -> Vec<u8>, params: Raw) -> Raw {
        match edit::get_str(&params, "requestState") {
            Some(state) if self.is_ours(&state) || self.is_unsent_elsewhere(context, &state) => {
                edit::without(&params, &["inputResponses", "requestState"])
            }
            _ => params,
        }
    }

    /// Drops the value of this state, if there is one.
    pub(super) fn end(&self, state: &str) {
        let ended = self.waiting.lock().remove(state);
        drop(ended);
    }

    /// Drops all values.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.waiting.lock());
        drop(all);
    }

    fn is_ours(&self, state: &str) -> bool {
        state.starts_with(&self.prefix)
    }

    /// Returns whether another replica has asked the host, before any server has got this request.
    fn is_unsent_elsewhere(&self, context: impl FnOnce() -> Vec<u8>, state: &str) -> bool {
        let Some(keys) = &self.keys else { return false };
        let opened = || {
            let (_, token) = state.strip_prefix(STATE_PREFIX)?.split_once('.')?;
            let sealed = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
            let until = keys.open(SealUse::RequestState, &context(), &sealed)?;
            Some(u64::from_be_bytes(until.try_into().ok()?))
        };
        state.len() <= MAX_STATE && opened().is_some_and(|until| until >= now_seconds())
    }
}

impl Binding {
    fn of(caller: &Caller) -> Self {
        let mut digest = Sha256::new();
        if let Some(request) = &caller.request {
            let params = request
                .params
                .as_ref()
                .map(|params| edit::without(params, &["_meta", "inputResponses", "requestState"]));
            digest.update(&request.method);
            digest.update([0]);
            digest.update(params.as_ref().map(Raw::as_bytes).unwrap_or_default());
        }
        Self { principal: caller.host.principal(), request: digest.finalize().into() }
    }
}

/// Returns what all replicas know of a request and its host.
pub(super) fn seal_context(caller: &Caller) -> Vec<u8> {
    [caller.host.user().0.unwrap_or_default(), Binding::of(caller).request].concat()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_state_is_refused_for_servers_of_both_eras() {
        let passed = ServerStates::default();
        let with = |state: &str| Raw::encode(&json!({"requestState": state}));
        let check = |era, state: &str| passed.check(era, Some(&with(state))).is_ok();
        assert!(passed.check(Era::Legacy, Some(&Raw::empty_object())).is_ok());
        assert!(!check(Era::Legacy, "anything") && !check(Era::Legacy, "dormouse-old.x"));
        assert!(check(Era::Modern, "the server's own"));
        assert!(!check(Era::Modern, "dormouse-old.x"));
        passed.note(&with("dormouse-old.x"));
        assert!(check(Era::Modern, "dormouse-old.x"), "it came from the server");
    }

    #[test]
    fn states_of_another_dormouse_are_passed_on() {
        let states = |mark| States::<()>::new(mark, None);
        let (ours, theirs) = (states("ours"), states("theirs"));
        let state = format!("{}x", theirs.prefix);
        let params = Raw::encode(&json!({"a": 1, "inputResponses": {}, "requestState": state}));
        assert_eq!(ours.taken_out_of(Vec::new, params.clone()), params);
        assert_eq!(theirs.taken_out_of(Vec::new, params), Raw::encode(&json!({"a": 1})));
    }
}
