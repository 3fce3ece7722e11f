//! A modern host's request to a legacy server that asks something meanwhile: the call is parked, the host
//! gets the question as a result, and its retry goes on with the parked call (2026-07-28,
//! basic/patterns/mrtr).

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::{sync::mpsc, time::Instant};

use super::{
    Caller, Fleet, Principal,
    forward::{ForwardError, Forwarded},
    in_flight::{Entered, Entry},
    questions,
};
use crate::{
    catalog::ServerId,
    peer::{CallError, CallOptions, Pulse},
    protocol::{Era, adapt, error, random_token},
    upstream::{Lease, Question},
    wire::{Outcome, Raw, edit},
};

/// How long a host may take to come back with the answers (DESIGN.md section 4).
const LONGEST_PARK: Duration = Duration::from_mins(10);
/// Parked calls at once; the oldest gives way.
const MOST_PARKED: usize = 1000;
/// How long more questions are waited for once there is one: a server may ask several at once.
const GATHERING: Duration = Duration::from_millis(5);

/// How the states begin that this process gives out. By it they are told from a server's own, which may be
/// another dormouse.
fn prefix() -> &'static str {
    static PREFIX: OnceLock<String> = OnceLock::new();
    PREFIX.get_or_init(|| format!("dormouse-{}.", random_token::<6>()))
}

/// A call to a legacy server, with the questions that it has asked.
struct Conversation {
    call: Pin<Box<dyn Future<Output = Result<Outcome, CallError>> + Send>>,
    questions: mpsc::UnboundedReceiver<Question>,
    /// Asked and not answered yet, by the key under which the host knows them.
    open: Vec<(String, Question)>,
    asked: usize,
    pulse: Pulse,
    /// Who is to hear of progress.
    audience: Arc<Mutex<Caller>>,
    entered: Entered,
    server: ServerId,
    method: String,
    /// The server is in use as long as the call is.
    _lease: Lease,
}

/// Sends the request. The answer may be a question of the server.
pub(super) async fn begin(
    request: Forwarded<'_>,
    params: Option<Raw>,
) -> Result<Outcome, CallError> {
    if let Some(level) = request.caller.log_level {
        request.fleet.upstream(request.instance).raise_log_level(level).await;
    }
    let audience = Arc::new(Mutex::new(request.caller.clone()));
    let options = CallOptions {
        silence: request.silence(),
        progress: request.caller.progress_token.is_some().then(|| progress_to(audience.clone())),
    };
    let call = request.lease.peer().prepare(options);
    let (gathered, questions) = mpsc::unbounded_channel();
    let pulse = call.pulse();
    let entry = Entry {
        call: call.id(),
        upstream: request.lease.peer().clone(),
        caller: request.caller.clone(),
        pulse: pulse.clone(),
        questions: Some(gathered),
        is_parked: false,
    };
    let entered = request.fleet.in_flight.enter(request.instance, entry);
    let (method, params) = (request.method.to_owned(), request.adapted(params));
    let conversation = Conversation {
        call: Box::pin(async move { call.send(&method, params).await }),
        questions,
        open: Vec::new(),
        asked: 0,
        pulse,
        audience,
        entered,
        server: request.instance.server,
        method: request.method.to_owned(),
        _lease: request.lease,
    };
    go_on(request.fleet, conversation, request.caller).await
}

/// Progress goes to whoever waits for the call at the time.
fn progress_to(audience: Arc<Mutex<Caller>>) -> crate::peer::ProgressSink {
    Box::new(move |params| {
        let caller = lock(&audience).clone();
        if let Some(sink) = caller.progress_sink() {
            sink(params);
        }
    })
}

/// Waits for the answer, or for questions, which are given to the host in its place.
async fn go_on(
    fleet: &Fleet,
    mut conversation: Conversation,
    caller: &Caller,
) -> Result<Outcome, CallError> {
    loop {
        tokio::select! {
            biased;
            outcome = &mut conversation.call => {
                let (from, to) = (Era::Legacy, caller.client.era);
                return Ok(adapt::outcome(&conversation.method, from, to, outcome?));
            }
            Some(question) = conversation.questions.recv() => {
                conversation.take(question, caller);
                let more = async {
                    while let Some(question) = conversation.questions.recv().await {
                        conversation.take(question, caller);
                    }
                };
                let _ = tokio::time::timeout(GATHERING, more).await;
            }
        }
        conversation.open.retain(|(_, question)| !question.cancelled.is_cancelled());
        if !conversation.open.is_empty() {
            return Ok(Ok(fleet.park(conversation, Binding::of(caller))));
        }
    }
}

impl Conversation {
    fn take(&mut self, question: Question, caller: &Caller) {
        if questions::declares(&caller.client, &question.request.method) != Some(true) {
            let refusal = error::method_not_found(&question.request.method);
            return question.answer(Err(refusal));
        }
        self.asked += 1;
        self.open.push((format!("q{}", self.asked), question));
    }

    /// Gives the server the answers that there are; what is missing stays open.
    fn answer(&mut self, responses: &Raw) {
        for (key, question) in std::mem::take(&mut self.open) {
            match edit::get(responses, &key).filter(Raw::is_object) {
                Some(answer) => question.answer(Ok(adapt::input_response(&answer))),
                None => self.open.push((key, question)),
            }
        }
    }

    fn input_required(&self, state: &str) -> Raw {
        let mut wanted = Raw::empty_object();
        for (key, question) in &self.open {
            let mut request = Raw::encode(&json!({"method": question.request.method}));
            if let Some(params) = &question.request.params {
                request = edit::set(&request, "params", &adapt::input_request(params));
            }
            wanted = edit::set(&wanted, key, &request);
        }
        let result = json!({"resultType": "input_required", "requestState": state});
        edit::set(&Raw::encode(&result), "inputRequests", &wanted)
    }
}

/// Whose retry of which request a state is for.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Binding {
    principal: Principal,
    request: [u8; 32],
}

impl Binding {
    pub(super) fn of(caller: &Caller) -> Self {
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

/// The calls that wait for their hosts to come back, by the state that was given out. It cannot be guessed,
/// and says nothing, so that there is nothing in it to be forged.
#[derive(Default)]
// A std mutex: held to put or take one.
pub(super) struct Parked(Mutex<HashMap<String, Waiting>>);

struct Waiting {
    conversation: Conversation,
    binding: Binding,
    until: Instant,
}

impl Parked {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        lock(&self.0)
    }

    /// Ends all of them.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    fn put(&self, state: String, waiting: Waiting) {
        let mut parked = self.lock();
        let mut ended = Vec::new();
        if parked.len() >= MOST_PARKED {
            let oldest = parked.iter().min_by_key(|(_, waiting)| waiting.until);
            let oldest = oldest.map(|(state, _)| state.clone());
            ended.extend(oldest.and_then(|state| parked.remove(&state)));
        }
        parked.insert(state, waiting);
        drop(parked);
        // A call tells its server that it is over, which is nothing to do under a lock.
        drop(ended);
    }

    /// Takes a call that is this request's.
    fn take(&self, state: &str, binding: &Binding) -> Option<Conversation> {
        let mut parked = self.lock();
        // Somebody else's is left to whom it belongs to.
        let is_theirs = parked.get(state).is_some_and(|waiting| waiting.binding == *binding);
        let waiting = if is_theirs { parked.remove(state) } else { None };
        drop(parked);
        Some(waiting.filter(|waiting| waiting.until > Instant::now())?.conversation)
    }

    fn end(&self, state: &str) {
        let ended = self.lock().remove(state);
        drop(ended);
    }
}

impl Fleet {
    /// Keeps the call until the host comes back with the answers, and returns what to tell it.
    fn park(&self, conversation: Conversation, binding: Binding) -> Raw {
        let state = new_state();
        conversation.entered.park();
        let result = conversation.input_required(&state);
        let until = Instant::now() + LONGEST_PARK;
        self.parked.put(state.clone(), Waiting { conversation, binding, until });
        let (fleet, stop) = (self.this.clone(), self.context.stop.clone());
        self.context.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = stop.cancelled() => {}
            }
            if let Some(fleet) = fleet.upgrade() {
                fleet.parked.end(&state);
            }
        });
        result
    }

    /// Goes on with a parked call, where the request is the retry of one; `None` where it is none.
    pub(super) async fn resume(&self, caller: &Caller) -> Option<Outcome> {
        let params = caller.request.as_ref()?.params.as_ref()?;
        let state = edit::get_str(params, "requestState")?;
        if !state.starts_with(prefix()) {
            return None;
        }
        let binding = Binding::of(caller);
        let Some(mut conversation) = self.parked.take(&state, &binding) else {
            let message = "\"requestState\" has expired, was used before, or is another request's";
            return Some(Err(error::invalid_params(message)));
        };
        conversation.pulse.beat();
        conversation.entered.pass_to(caller);
        *lock(&conversation.audience) = caller.clone();
        let responses = edit::get(params, "inputResponses").unwrap_or_else(Raw::empty_object);
        conversation.answer(&responses);
        if !conversation.open.is_empty() {
            return Some(Ok(self.park(conversation, binding)));
        }
        let (server, method) = (conversation.server, conversation.method.clone());
        let answered = go_on(self, conversation, caller).await;
        let name = || self.config_of(server).name.clone();
        let answered = answered.map_err(|cause| ForwardError::new(name(), cause));
        Some(self.answered(caller, server, &method, answered))
    }
}

fn new_state() -> String {
    format!("{}{}", prefix(), random_token::<32>())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
