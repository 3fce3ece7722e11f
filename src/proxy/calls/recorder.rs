//! The stage *record*: the end of a request becomes an event, once.

use std::{sync::Arc, time::SystemTime};

use tokio::time::Instant;

use super::{call::Call, forward_error::ForwardError};
use crate::{
    base::{Lock, shortened},
    config::{ServerConfig, Transport},
    peer::CallError,
    protocol::{error, is_error_result},
    proxy::{
        CallFault, CallSize, EndedCall, Fleet, SentCall, Span, TimeSpan,
        events::{Bodies, CallOrigin, Events, PolicyEffect},
    },
    upstream::Lease,
    wire::{Outcome, Raw, edit},
};

/// Maximum length of what a request names, in characters.
const MAX_SUBJECT_CHARS: usize = 1024;

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
    /// The time of the last sending.
    sent: Option<Instant>,
    config: Arc<ServerConfig>,
    /// The span of the host's request.
    parent: Option<Arc<Span>>,
    params: Option<Raw>,
    /// The call, as far as it is known.
    call: EndedCall,
}

impl Recorder {
    /// Begins the record of a call. Without a listener nothing is recorded.
    pub(super) fn begin(fleet: &Fleet, call: &Call<'_>) -> Self {
        if !fleet.events.has_listeners() {
            return Self(None);
        }
        let config = fleet.servers.config(call.server);
        let params = call.params.as_ref();
        let open = OpenCall {
            began: Instant::now(),
            sent: None,
            parent: call.caller.span.clone(),
            params: call.params.clone(),
            call: EndedCall {
                origin: CallOrigin {
                    host: call.caller.host.id(),
                    client: call.caller.client.clone(),
                    person: call.caller.host.person().cloned(),
                    script: call.caller.script.clone(),
                },
                server: config.name.clone(),
                method: call.method.to_owned(),
                subject: params.and_then(subject_of),
                time: TimeSpan { began: SystemTime::now(), took: std::time::Duration::ZERO },
                sent: None,
                size: CallSize {
                    params: params.map_or(0, Raw::len),
                    meta: params.map_or(0, size_of_meta),
                    answer: 0,
                },
                fault: None,
                policy: None,
            },
            config,
        };
        let events = fleet.events.clone();
        Self(Some(Arc::new(OpenRecord { events, open: Lock::new(Some(open)) })))
    }

    /// Notes that the request is sent now, under this id. Returns the parameters, which name the
    /// span of the sending if it is a part of a trace.
    pub(super) fn send(&self, lease: &Lease, id: u64, params: Option<Raw>) -> Option<Raw> {
        let Some(record) = &self.0 else { return params };
        let mut open = record.open.lock();
        let Some(open) = open.as_mut() else { return params };
        let span = open.parent.as_ref().map(|parent| Arc::new(parent.child()));
        open.sent = Some(Instant::now());
        open.call.sent = Some(SentCall {
            time: TimeSpan { began: SystemTime::now(), ..open.call.time },
            is_remote: matches!(open.config.transport, Ok(Transport::Http(_))),
            id,
            protocol: lease.greeting().version.clone(),
            span: span.clone(),
        });
        match span {
            Some(span) => Some(span.context.in_params(params)),
            None => params,
        }
    }

    /// Notes the effect of the policy on the call.
    pub(super) fn note_policy(&self, effect: PolicyEffect) {
        if let Some(record) = &self.0
            && let Some(open) = record.open.lock().as_mut()
        {
            open.call.policy = Some(effect);
        }
    }

    /// Moves the record to another recorder, for a request that its host makes again.
    pub(super) fn hand_over(&self) -> Self {
        let moved = self.0.as_ref().map(|record| {
            let (events, open) = (record.events.clone(), record.open.lock().take());
            Arc::new(OpenRecord { events, open: Lock::new(open) })
        });
        Self(moved)
    }

    /// Discards the record, since the same request is made again.
    pub(super) fn discard(&self) {
        if let Some(record) = &self.0 {
            *record.open.lock() = None;
        }
    }

    /// Sends the event. The first of several ends counts.
    pub(super) fn finish(&self, answered: &Result<Outcome, ForwardError>) {
        let Some(record) = &self.0 else { return };
        let answer = match answered {
            Ok(Ok(answer) | Err(answer)) => Some(answer),
            Err(ForwardError::Superseded | ForwardError::Asks(_)) => return self.discard(),
            Err(_) => None,
        };
        if let Err(ForwardError::Denied(denial)) = answered {
            self.note_policy(denial.effect());
        }
        let fault = match answered {
            Ok(outcome) => fault_of(outcome),
            Err(error) => Some(fault_without_answer(error)),
        };
        record.end(answer, fault);
    }
}

/// Returns the reason that an answered request has not succeeded.
pub(in crate::proxy) fn fault_of(outcome: &Outcome) -> Option<CallFault> {
    match outcome {
        Ok(result) => is_error_result(result).then_some(CallFault::Tool),
        Err(answer) => Some(CallFault::Refused(error::code(answer))),
    }
}

fn size_of_meta(params: &Raw) -> usize {
    edit::get(params, "_meta").map_or(0, |meta| meta.len())
}

/// Returns the tool, prompt or URI that the parameters of a request name.
pub(in crate::proxy) fn subject_of(params: &Raw) -> Option<String> {
    let named = edit::get_each(params, ["name", "uri"]);
    let subject: String = named.into_iter().flatten().find_map(|named| named.read().ok())?;
    Some(shortened(&subject, MAX_SUBJECT_CHARS))
}

fn fault_without_answer(error: &ForwardError) -> CallFault {
    match error {
        ForwardError::Load(_) => CallFault::NotLoaded,
        ForwardError::NotLoggedIn { .. }
        | ForwardError::Call { cause: CallError::Unauthorized(_), .. } => CallFault::NotLoggedIn,
        ForwardError::SwitchedOff { .. } | ForwardError::Denied(_) => CallFault::Forbidden,
        ForwardError::Call { cause: CallError::TimedOut(_), .. } => CallFault::TimedOut,
        ForwardError::Died { .. }
        | ForwardError::Call { .. }
        | ForwardError::Superseded
        | ForwardError::Asks(_) => CallFault::Unreachable,
    }
}

impl OpenRecord {
    fn end(&self, answer: Option<&Raw>, fault: Option<CallFault>) {
        let Some(open) = self.open.lock().take() else { return };
        let OpenCall { began, sent, config, params, mut call, .. } = open;
        call.time.took = began.elapsed();
        if let (Some(at), Some(sent)) = (sent, &mut call.sent) {
            sent.time.took = at.elapsed();
        }
        call.size.answer = answer.map_or(0, Raw::len);
        call.fault = fault;
        self.events.end_call(call, Bodies { params, answer: answer.cloned(), config });
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        self.end(None, Some(CallFault::Cancelled));
    }
}
