//! A modern host's request to a legacy server that asks something: the call is parked, the host
//! gets the question as a result, and its retry continues the call (2026-07-28,
//! basic/patterns/mrtr).

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::{
    forward_error::ForwardError,
    lease::upstream,
    leased_request::{LeasedRequest, Sent},
    recorder::Recorder,
    shape::shape,
};
use crate::{
    base::Lock,
    peer::{CallError, CallOptions, Pulse},
    protocol::{Era, adapt, error, method},
    proxy::{
        Caller, Fleet,
        asking::{Continuation, HostQuestion, RequestProgress, is_declared},
        in_flight::{Entered, InFlightCall, QuestionRoute},
        instance::Instance,
        known_tasks::Cancellation,
        large_results, questions,
    },
    upstream::{Lease, Question},
    wire::{Outcome, Raw, edit},
};

/// Maximum time for a host to retry with the answers (docs/design/eras.md).
const PARK_TIMEOUT: Duration = Duration::from_mins(10);
/// The time for which further questions are awaited after the first: a server may ask several at
/// once.
const GATHER_TIMEOUT: Duration = Duration::from_millis(5);

/// A call to a legacy server, with the questions that it has asked.
struct Conversation {
    call: Pin<Box<dyn Future<Output = Result<Outcome, CallError>> + Send>>,
    questions: CallQuestions,
    pulse: Pulse,
    /// The host's latest request for this call, which gets progress.
    latest_caller: Arc<Lock<Caller>>,
    entered: Entered,
    method: String,
    answers: HostRequest,
    /// The task that is cancelled when the host does not come back.
    cancellation: Option<Cancellation>,
    /// Keeps the server in use for as long as the call lives.
    _lease: Lease,
}

/// The host's request that a call answers.
#[derive(Clone)]
struct HostRequest {
    instance: Instance,
    method: String,
    recorder: Recorder,
}

impl HostRequest {
    /// Records the end of the call, and returns the host's answer.
    async fn end(
        self,
        fleet: &Fleet,
        caller: &Caller,
        answer: Result<Outcome, CallError>,
    ) -> Outcome {
        let server = self.instance.server;
        let name = || fleet.servers.config(server).name.clone();
        let answered = answer.map_err(|cause| ForwardError::new(name(), cause));
        self.recorder.finish(&answered);
        let shaped = shape(caller, &self.method, answered);
        let request = caller.request.as_ref().filter(|_| self.method == method::TOOLS_CALL);
        match request.and_then(|request| request.params.as_ref()) {
            Some(params) => large_results::bound(fleet, caller, server, params, shaped).await,
            None => shaped,
        }
    }
}

/// Sends the request, and waits for the answer or for questions.
pub(super) async fn begin(
    request: LeasedRequest<'_>,
    params: Option<Raw>,
    cancellation: Option<Cancellation>,
) -> Result<Sent, CallError> {
    if let Some(level) = request.caller.log_level {
        upstream(request.fleet, request.instance).raise_log_level(level).await;
    }
    let latest_caller = Arc::new(Lock::new(request.caller.clone()));
    let options = CallOptions {
        silence: request.silence(),
        progress: request
            .caller
            .progress_token
            .is_some()
            .then(|| progress_to(latest_caller.clone())),
    };
    let call = request.lease.peer().prepare(options);
    let (gathered, arriving) = mpsc::unbounded_channel();
    let pulse = call.pulse();
    let route = QuestionRoute::Gathered(gathered);
    let entry = InFlightCall::new(&call, request.lease.peer(), request.caller, route);
    let entered = request.fleet.calls.in_flight.enter(request.instance, entry);
    let params = request.recorder.send(&request.lease, call.id(), request.adapted(params));
    let method = request.method.to_owned();
    let conversation = Conversation {
        call: Box::pin(async move { call.send(&method, params).await }),
        questions: CallQuestions { arriving, open: Vec::new(), asked: 0 },
        pulse,
        latest_caller,
        entered,
        method: request.method.to_owned(),
        answers: HostRequest {
            instance: request.instance,
            method: request.answered_as.to_owned(),
            recorder: request.recorder,
        },
        cancellation,
        _lease: request.lease,
    };
    wait(request.fleet, conversation, request.caller).await
}

/// Returns a sink that passes progress to the latest caller of the call.
fn progress_to(latest_caller: Arc<Lock<Caller>>) -> crate::peer::ProgressSink {
    Box::new(move |params| {
        let caller = latest_caller.lock().clone();
        if let Some(sink) = caller.progress_sink() {
            sink(params);
        }
    })
}

/// Waits for the answer. If questions come first, parks the call, and its host gets the questions.
async fn wait(
    fleet: &Fleet,
    mut conversation: Conversation,
    caller: &Caller,
) -> Result<Sent, CallError> {
    loop {
        tokio::select! {
            biased;
            outcome = &mut conversation.call => {
                if let Some(cancellation) = conversation.cancellation.take() {
                    cancellation.disarm();
                }
                let instance = conversation.answers.instance;
                drop(conversation.entered);
                conversation.questions.hand_over(fleet, instance);
                let (from, to) = (Era::Legacy, caller.client.era);
                let outcome = adapt::outcome(&conversation.method, from, to, outcome?);
                return Ok(Sent::Answered(outcome));
            }
            Some(question) = conversation.questions.arriving.recv() => {
                conversation.questions.gather(question, caller).await;
            }
        }
        if conversation.questions.are_open() {
            return Ok(Sent::Parked(park(fleet, conversation, caller)));
        }
    }
}

/// The questions of one call.
struct CallQuestions {
    arriving: mpsc::UnboundedReceiver<Question>,
    /// Open questions, by the key under which the host knows them.
    open: Vec<(String, Question)>,
    /// The number of questions so far.
    asked: usize,
}

impl CallQuestions {
    /// Opens a question, and those that follow at once.
    async fn gather(&mut self, first: Question, caller: &Caller) {
        self.open(first, caller);
        let more = async {
            while let Some(question) = self.arriving.recv().await {
                self.open(question, caller);
            }
        };
        let _ = tokio::time::timeout(GATHER_TIMEOUT, more).await;
    }

    fn open(&mut self, question: Question, caller: &Caller) {
        if is_declared(&caller.client, &question.request.method) != Some(true) {
            let refusal = error::method_not_found(&question.request.method);
            return question.answer(Err(refusal));
        }
        self.asked += 1;
        self.open.push((format!("q{}", self.asked), question));
    }

    /// Forgets the questions that the server has cancelled, and returns whether others are open.
    fn are_open(&mut self) -> bool {
        self.open.retain(|(_, question)| !question.cancelled.is_cancelled());
        !self.open.is_empty()
    }

    /// Gives the server the answers that have arrived; other questions stay open.
    fn answer(&mut self, responses: &Raw) {
        for (key, question) in std::mem::take(&mut self.open) {
            match edit::get(responses, &key).filter(Raw::is_object) {
                Some(answer) => question.answer(Ok(adapt::input_response(&answer))),
                None => self.open.push((key, question)),
            }
        }
    }

    /// Gives the questions that are left to other calls in flight: a server on stdio does not say
    /// to which call a question belongs.
    fn hand_over(mut self, fleet: &Fleet, instance: Instance) {
        self.arriving.close();
        let arrived = std::iter::from_fn(|| self.arriving.try_recv().ok());
        for question in self.open.drain(..).map(|(_, question)| question).chain(arrived) {
            questions::ask(fleet, instance, question);
        }
    }

    /// Returns the open questions under their keys.
    fn for_host(&self) -> Vec<(String, HostQuestion)> {
        let open = self.open.iter();
        open.map(|(key, Question { request, .. })| {
            let (method, params) = (request.method.clone(), request.params.clone());
            (key.clone(), HostQuestion { method, params })
        })
        .collect()
    }
}

/// Keeps the call until the host comes back with answers. Returns the result that asks for them.
fn park(fleet: &Fleet, conversation: Conversation, caller: &Caller) -> Raw {
    conversation.entered.park();
    let (questions, fleet_later) = (conversation.questions.for_host(), fleet.this.clone());
    let then: Continuation = Box::new(move |caller, responses| {
        Box::pin(async move {
            let fleet = fleet_later.upgrade()?;
            Some(resume(&fleet, conversation, &caller, &responses).await)
        })
    });
    fleet.asking.ask_by_result(caller, &questions, PARK_TIMEOUT, RequestProgress::Sent, then)
}

/// Goes on with a parked call, whose host has come back with answers.
async fn resume(
    fleet: &Fleet,
    mut conversation: Conversation,
    caller: &Caller,
    responses: &Raw,
) -> Outcome {
    conversation.pulse.beat();
    conversation.entered.pass_to(caller);
    *conversation.latest_caller.lock() = caller.clone();
    conversation.questions.answer(responses);
    if !conversation.questions.open.is_empty() {
        return Ok(park(fleet, conversation, caller));
    }
    let answers = conversation.answers.clone();
    match wait(fleet, conversation, caller).await {
        Ok(Sent::Parked(question)) => Ok(question),
        Ok(Sent::Answered(outcome)) => answers.end(fleet, caller, Ok(outcome)).await,
        Err(cause) => answers.end(fleet, caller, Err(cause)).await,
    }
}
