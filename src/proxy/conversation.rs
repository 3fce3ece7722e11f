//! A modern host's request to a legacy server that asks something meanwhile: the call is parked, the host
//! gets the question as a result, and its retry goes on with the parked call (2026-07-28,
//! basic/patterns/mrtr).

use std::{
    pin::Pin,
    sync::{Arc, MutexGuard},
    time::Duration,
};

use serde_json::json;
use tokio::{sync::mpsc, time::Instant};

use super::{
    Caller, Fleet,
    forward::{ForwardError, Forwarded},
    in_flight::{Entered, Entry},
    questions,
    states::States,
    tasks::Cancellation,
};
use crate::{
    base::Lock,
    catalog::ServerId,
    peer::{CallError, CallOptions, Pulse},
    protocol::{Era, adapt, error},
    upstream::{Lease, Question},
    wire::{Outcome, Raw, edit},
};

/// How long a host may take to come back with the answers (DESIGN.md section 4).
const PARK_TIMEOUT: Duration = Duration::from_mins(10);
/// How long more questions are waited for once there is one: a server may ask several at once.
const GATHERING: Duration = Duration::from_millis(5);

/// The calls that wait for their hosts to come back.
pub(super) type Parked = States<Conversation>;

/// What becomes of a call that is parked, and that belongs to another request of the host than it is itself.
#[derive(Default)]
pub(super) struct Ending {
    /// The method of the host's request; `None` for that of the call.
    pub(super) answered_as: Option<&'static str>,
    /// What is cancelled when the host does not come back.
    pub(super) cancellation: Option<Cancellation>,
}

/// A call to a legacy server, with the questions that it has asked.
pub(super) struct Conversation {
    call: Pin<Box<dyn Future<Output = Result<Outcome, CallError>> + Send>>,
    questions: mpsc::UnboundedReceiver<Question>,
    /// Asked and not answered yet, by the key under which the host knows them.
    open: Vec<(String, Question)>,
    asked: usize,
    pulse: Pulse,
    /// Who is to hear of progress.
    audience: Arc<Lock<Caller>>,
    entered: Entered,
    server: ServerId,
    method: String,
    ending: Ending,
    /// The server is in use as long as the call is.
    _lease: Lease,
}

/// Sends the request. The answer may be a question of the server.
pub(super) async fn begin(
    request: Forwarded<'_>,
    params: Option<Raw>,
    ending: Ending,
) -> Result<Outcome, CallError> {
    if let Some(level) = request.caller.log_level {
        request.fleet.upstream(request.instance).raise_log_level(level).await;
    }
    let audience = Arc::new(Lock::new(request.caller.clone()));
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
        ending,
        _lease: request.lease,
    };
    go_on(request.fleet, conversation, request.caller).await
}

/// Progress goes to whoever waits for the call at the time.
fn progress_to(audience: Arc<Lock<Caller>>) -> crate::peer::ProgressSink {
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
                if let Some(cancellation) = conversation.ending.cancellation.take() {
                    cancellation.disarm();
                }
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
            return Ok(Ok(fleet.park(conversation, caller)));
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

    fn input_required(&self) -> Raw {
        let mut wanted = Raw::empty_object();
        for (key, question) in &self.open {
            let mut request = Raw::encode(&json!({"method": question.request.method}));
            if let Some(params) = &question.request.params {
                request = edit::set(&request, "params", params);
            }
            wanted = edit::set(&wanted, key, &request);
        }
        let result = json!({"resultType": "input_required"});
        edit::set(&Raw::encode(&result), "inputRequests", &wanted)
    }
}

impl Fleet {
    /// Keeps the call until the host comes back with the answers, and returns what to tell it.
    fn park(&self, conversation: Conversation, caller: &Caller) -> Raw {
        conversation.entered.park();
        let input_required = conversation.input_required();
        let until = Instant::now() + PARK_TIMEOUT;
        let state = self.parked.keep(caller, until, conversation);
        let result = edit::set(&input_required, "requestState", &Raw::encode(&state));
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
        let mut conversation = match self.parked.take(caller)? {
            Ok(conversation) => conversation,
            Err(gone) => return Some(Err(gone)),
        };
        conversation.pulse.beat();
        conversation.entered.pass_to(caller);
        *lock(&conversation.audience) = caller.clone();
        let responses = edit::get(params, "inputResponses").unwrap_or_else(Raw::empty_object);
        conversation.answer(&responses);
        if !conversation.open.is_empty() {
            return Some(Ok(self.park(conversation, caller)));
        }
        let server = conversation.server;
        let method = conversation.ending.answered_as.unwrap_or(&conversation.method).to_owned();
        let answered = go_on(self, conversation, caller).await;
        let name = || self.config_of(server).name.clone();
        let answered = answered.map_err(|cause| ForwardError::new(name(), cause));
        Some(self.answered(caller, server, &method, answered))
    }
}

fn lock<T>(mutex: &Lock<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
