//! One run of a script: its worker, and the calls that wait.

use std::{collections::VecDeque, iter, time::Duration};

use serde_json::{json, value::RawValue};
use tokio::{sync::OwnedSemaphorePermit, task::JoinSet};

use super::{
    CallTool,
    answer::{Answered, read_answer},
    made_call::CallOutcome,
    script_call::ScriptCall,
    script_record::ScriptRecord,
    stubs::with_stubs,
};
use crate::{
    config::Limits,
    protocol::error,
    proxy::{Caller, Fleet, RunningScript, asking::HostQuestion},
    script::{Bounds, FromWorker, Request, Run, ToWorker, WorkerError, WorkerProcess},
    surface::{ArgumentProblems, WantedScript},
    wire::{Outcome, Raw},
};

/// Maximum number of calls at once.
const MAX_AT_ONCE: usize = 8;
/// Time without news after which the user of a modern host is asked, while calls are open. Such a
/// call may wait for the answer too: a server does not say which of its calls a question is for.
const QUIET_TIME: Duration = Duration::from_millis(300);
/// Time in addition to that of the script after which a silent worker has failed.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of a script that has made no more progress by itself.
pub(super) enum Step {
    /// It has ended, with this result.
    Ended(Raw),
    /// Calls of it need answers of the user of a modern host.
    Asks,
}

pub(super) struct ScriptRun {
    worker: WorkerProcess,
    script: RunningScript,
    call: CallTool,
    record: ScriptRecord,
    max_calls: usize,
    /// Maximum time without a message of the worker while no call is open.
    max_silence: Duration,
    traffic: Traffic,
    calls: Calls,
    _slot: OwnedSemaphorePermit,
}

/// The numbers of messages between a worker and its owner.
#[derive(Default)]
struct Traffic {
    /// Requests that it has made.
    requests: usize,
    /// Times that it has begun to wait for an answer.
    waits: usize,
    /// Answers that it was sent.
    answers: usize,
}

/// The calls that have not ended.
#[derive(Default)]
struct Calls {
    /// Calls that can be made, or repeated with the user's answers.
    ready: VecDeque<ScriptCall>,
    /// Calls that are being made. They end with the script.
    open: JoinSet<(ScriptCall, Outcome)>,
    /// Calls that need answers of the user.
    asking: Vec<AskingCall>,
}

/// A call that the user is asked about.
struct AskingCall {
    call: ScriptCall,
    state: Option<Raw>,
    questions: Vec<(String, HostQuestion)>,
}

impl ScriptRun {
    /// Starts the worker of a script with this text, whose calls `call` makes.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start(
        script: &WantedScript,
        code: String,
        limits: &Limits,
        slot: OwnedSemaphorePermit,
        call: CallTool,
    ) -> Result<Self, WorkerError> {
        let worker = WorkerProcess::start()?;
        let input = RawValue::from_string(script.input.to_string());
        worker.send(&ToWorker::Run(Box::new(Run {
            code: code.clone(),
            input: input.expect("a value is JSON"),
            bounds: Bounds {
                memory: limits.script_memory * 1_000_000,
                own_time_ms: u64::try_from(limits.script_time.as_millis()).unwrap_or(u64::MAX),
                output: limits.script_output,
                at_once: u32::try_from(MAX_AT_ONCE).expect("a small number"),
            },
        })));
        Ok(Self {
            worker,
            script: RunningScript::new(&script.name),
            call,
            record: ScriptRecord::new(code, limits.script_output),
            max_calls: limits.script_calls,
            max_silence: limits.script_time.saturating_add(SILENCE_TIMEOUT),
            traffic: Traffic::default(),
            calls: Calls::default(),
            _slot: slot,
        })
    }

    /// Goes on until the script has ended, or can only go on with answers of the user.
    pub(super) async fn advance(&mut self, fleet: &Fleet, caller: &Caller) -> Step {
        let caller = caller.for_script(&self.script);
        loop {
            self.calls.make(fleet, &caller, self.call);
            let can_ask = self.traffic.is_worker_waiting() && !self.calls.asking.is_empty();
            if can_ask && self.calls.open.is_empty() {
                return Step::Asks;
            }
            tokio::select! {
                message = self.worker.next() => match message {
                    Ok(message) => {
                        if let Some(result) = self.take(fleet, &caller, message) {
                            return Step::Ended(result);
                        }
                    }
                    Err(error) => return Step::Ended(self.failed(&error)),
                },
                Some(made) = self.calls.open.join_next() => match made {
                    Ok((call, outcome)) => self.deliver(fleet, &caller, call, outcome),
                    Err(error) => {
                        let message = format!("a call of the script has failed: {error}");
                        return Step::Ended(self.record.failed(&message, None));
                    }
                },
                () = tokio::time::sleep(QUIET_TIME), if can_ask => return Step::Asks,
                () = tokio::time::sleep(self.max_silence), if self.calls.open.is_empty() => {
                    return Step::Ended(self.failed(&WorkerError::Silent));
                }
            }
        }
    }

    /// Takes a message of the worker. Returns the result if the script has ended.
    fn take(&mut self, fleet: &Fleet, caller: &Caller, message: FromWorker) -> Option<Raw> {
        match message {
            FromWorker::Ready => {}
            FromWorker::Waiting => self.traffic.waits += 1,
            FromWorker::Log { text } => self.record.add_log(&text),
            FromWorker::Request { id, request } if self.traffic.unanswered() < MAX_AT_ONCE => {
                self.traffic.requests += 1;
                self.take_request(fleet, caller, id, request);
            }
            FromWorker::Request { .. } | FromWorker::Checked { .. } => {
                return Some(self.failed(&WorkerError::Unexpected));
            }
            FromWorker::Done { value } => {
                return Some(self.record.result(value.as_ref().map(|value| value.get())));
            }
            FromWorker::Failed(failure) => {
                return Some(self.record.failed(&failure.message, failure.place));
            }
        }
        None
    }

    fn failed(&self, error: &WorkerError) -> Raw {
        self.record.failed(&error.to_string(), None)
    }

    fn take_request(&mut self, fleet: &Fleet, caller: &Caller, id: u32, request: Request) {
        if self.record.calls() >= self.max_calls {
            let message = format!("a script can make at most {} calls", self.max_calls);
            return self.answer(&ToWorker::Refusal { id, message });
        }
        if let Some(usage) = caller.host.usage()
            && let Err(exceeded) = usage.spend_call()
        {
            return self.answer(&ToWorker::Refusal { id, message: exceeded.to_string() });
        }
        let call = ScriptCall::new(fleet, caller, (id, request), self.record.calls());
        self.record.add_call(&call.name());
        self.calls.ready.push_back(call);
    }

    /// Gives the worker the outcome of a call, or keeps the call until the user has answered.
    fn deliver(&mut self, fleet: &Fleet, caller: &Caller, call: ScriptCall, outcome: Outcome) {
        let id = call.id;
        let (message, outcome) = match read_answer(call.kind, outcome) {
            Answered::Value(value) => {
                let value = with_stubs(fleet, caller, call.kind, value);
                let value = RawValue::from_string(value.to_string()).expect("a value is JSON");
                (ToWorker::Answer { id, value }, CallOutcome::Done)
            }
            Answered::Refusal(message) => {
                let problems = call.problems(fleet, caller);
                let lines = problems.iter().flat_map(ArgumentProblems::lines);
                let message = iter::once(message).chain(lines).collect::<Vec<_>>().join("\n");
                (ToWorker::Refusal { id, message }, CallOutcome::Failed)
            }
            Answered::Asks { state, questions } => {
                return self.calls.asking.push(AskingCall { call, state, questions });
            }
        };
        let made = self.record.end_call(call.position, &call.name(), outcome);
        caller.tell_progress(&json!(self.script.next_progress()), &made);
        self.answer(&message);
    }

    fn answer(&mut self, message: &ToWorker) {
        self.traffic.answers += 1;
        self.worker.send(message);
    }

    /// Returns the questions of all calls for the user, each under a key of its own.
    pub(super) fn questions(&self) -> Vec<(String, HostQuestion)> {
        let of_call = |asking: &AskingCall| {
            let questions = asking.questions.iter();
            questions
                .map(|(key, question)| (asking.call.key_of(key), question.clone()))
                .collect::<Vec<_>>()
        };
        self.calls.asking.iter().flat_map(of_call).collect()
    }

    /// Takes the user's answers: the calls are made again with them.
    pub(super) fn take_answers(&mut self, responses: &Raw) {
        for AskingCall { mut call, state, questions } in std::mem::take(&mut self.calls.asking) {
            call.take_answers(state.as_ref(), &questions, responses);
            self.calls.ready.push_back(call);
        }
    }
}

impl Calls {
    /// Makes as many calls as may be open at once.
    fn make(&mut self, fleet: &Fleet, caller: &Caller, call: CallTool) {
        while self.open.len() < MAX_AT_ONCE
            && let Some(next) = self.ready.pop_front()
        {
            let (fleet, caller) = (fleet.this.clone(), caller.clone());
            self.open.spawn(async move {
                match fleet.upgrade() {
                    Some(fleet) => next.make(&fleet, caller, call).await,
                    None => (next, Err(error::internal("dormouse ends"))),
                }
            });
        }
    }
}

impl Traffic {
    /// Returns whether the worker has read every answer, and waits for another one.
    fn is_worker_waiting(&self) -> bool {
        self.waits > self.answers
    }

    fn unanswered(&self) -> usize {
        self.requests - self.answers
    }
}
