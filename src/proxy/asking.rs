//! Asking a host something, and going on when it has answered, in both eras.
//!
//! A legacy host is asked by a request of ours, and answers it. A modern host gets the question as
//! the result of its own request (`input_required`), and answers with a retry of that request
//! (2026-07-28, basic/patterns/mrtr). Questions of servers, logins and
//! approvals use both ways.

mod states;

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::Caller;
use crate::{
    base::SealingKeys,
    peer::{CallError, CallOptions, Peer},
    protocol::{ClientIdentity, Elicitation, Era, method},
    wire::{Outcome, Raw, edit},
};
pub(super) use states::RequestProgress;
use states::{ServerStates, States, seal_context};

/// Maximum time for a user to answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);

/// A question for a host.
#[derive(Clone, Debug)]
pub(super) struct HostQuestion {
    pub(super) method: String,
    pub(super) params: Option<Raw>,
}

/// The reaction of a legacy host to a question.
pub(super) enum Reaction {
    Answered(Raw),
    /// The host's error object.
    Refused(Raw),
    Failed(CallError),
    /// The question was taken back.
    Withdrawn,
}

impl HostQuestion {
    /// Asks a legacy host, which has no longer than `limit` to answer (zero: any time). When
    /// `withdrawn` resolves first, the question is taken back.
    pub(super) async fn ask(
        &self,
        host: &Peer,
        limit: Duration,
        withdrawn: impl Future<Output = ()>,
    ) -> Reaction {
        let options = CallOptions::silent_for(limit);
        let asking = host.request(&self.method, self.params.clone(), options);
        // Dropping the request takes the question back from the host.
        let answer = tokio::select! {
            biased;
            () = withdrawn => return Reaction::Withdrawn,
            answer = asking => answer,
        };
        match answer {
            Ok(Ok(answer)) => Reaction::Answered(answer),
            Ok(Err(refusal)) => Reaction::Refused(refusal),
            Err(cause) => Reaction::Failed(cause),
        }
    }

    /// Returns the question as a member of `inputRequests`.
    fn as_input_request(&self) -> Raw {
        let request = Raw::encode(&json!({"method": self.method}));
        match &self.params {
            Some(params) => edit::set(&request, "params", params),
            None => request,
        }
    }
}

/// Returns whether a host has declared that it answers questions of this method; `None` for methods
/// that need no declaration.
pub(super) fn is_declared(client: &ClientIdentity, method: &str) -> Option<bool> {
    let declares = |capability| edit::get(&client.capabilities, capability).is_some();
    match method {
        method::SAMPLING_CREATE_MESSAGE => Some(declares("sampling")),
        method::ELICITATION_CREATE => {
            let Elicitation { form, url } = client.elicitation();
            Some(form || url)
        }
        method::ROOTS_LIST => Some(declares("roots")),
        _ => None,
    }
}

/// Goes on when a modern host has come back, with the caller of the retry and its `inputResponses`.
/// Returns `None` where the retry is handled like a new request.
pub(super) type Continuation =
    Box<dyn FnOnce(Caller, Raw) -> BoxFuture<'static, Option<Outcome>> + Send>;

/// The modern hosts that have been asked and have not come back.
pub(super) struct Asking {
    mark: String,
    waiting: Arc<States<Continuation>>,
    of_servers: ServerStates,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Asking {
    /// `tasks` and `stop` are those of the process: nothing waits for a host beyond its end.
    /// `mark`: that of the fleet, which its states contain.
    /// `keys`: those of all replicas, if there may be several.
    pub(super) fn new(
        mark: &str,
        keys: Option<SealingKeys>,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let of_servers = ServerStates::default();
        let waiting = Arc::new(States::new(mark, keys));
        Self { mark: mark.to_owned(), waiting, of_servers, tasks, stop }
    }

    /// Returns a random text that no other fleet has. The ids that this fleet gives out contain it,
    /// so that other replicas recognize them.
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// Returns the result that asks a modern host these questions, each under its key. `then` goes
    /// on when the host comes back, and is dropped when it has not come back within `limit`.
    pub(super) fn ask_by_result(
        &self,
        caller: &Caller,
        questions: &[(String, HostQuestion)],
        limit: Duration,
        progress: RequestProgress,
        then: Continuation,
    ) -> Raw {
        let until = Instant::now() + limit;
        let state = self.waiting.keep(caller, until, progress, then);
        let mut result = Raw::encode(&json!({"resultType": "input_required"}));
        if !questions.is_empty() {
            let mut wanted = Raw::empty_object();
            for (key, question) in questions {
                wanted = edit::set(&wanted, key, &question.as_input_request());
            }
            result = edit::set(&result, "inputRequests", &wanted);
        }
        result = edit::set(&result, "requestState", &Raw::encode(&state));
        self.drop_at(until, state);
        result
    }

    fn drop_at(&self, until: Instant, state: String) {
        let (waiting, stop) = (self.waiting.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            stop.run_until_cancelled(tokio::time::sleep_until(until)).await;
            waiting.end(&state);
        });
    }

    /// Goes on with what waits for this request, if it is the retry of one. Returns its answer;
    /// `None` for a request that is handled like a new one.
    pub(super) async fn resume(&self, caller: &Caller) -> Option<Outcome> {
        let params = caller.request.as_ref()?.params.as_ref()?;
        match self.waiting.take(caller)? {
            Ok(then) => {
                let responses = edit::get(params, "inputResponses");
                let responses = responses.unwrap_or_else(Raw::empty_object);
                then(caller.clone(), responses).await
            }
            Err(gone) => Some(Err(gone)),
        }
    }

    /// Removes from params what a host has come back with for dormouse.
    pub(super) fn without_answers(&self, caller: &Caller, params: Raw) -> Raw {
        self.waiting.taken_out_of(|| seal_context(caller), params)
    }

    /// Remembers the state in a modern server's result, which its host gives back to the server.
    pub(super) fn note_state_of_server(&self, result: &Raw) {
        self.of_servers.note(result);
    }

    /// Checks the state in the params of a modern host for a server of this era.
    ///
    /// # Errors
    /// The error object to answer with.
    pub(super) fn check_state_of_server(
        &self,
        server: Era,
        params: Option<&Raw>,
    ) -> Result<(), Raw> {
        self.of_servers.check(server, params)
    }

    /// Drops everything that waits.
    pub(super) fn clear(&self) {
        self.waiting.clear();
    }
}
