//! One request to one server: wake it, carry the request over in its era, and the answer back.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::json;

use super::{
    Caller, Fleet,
    conversation::{self, Ending},
    in_flight::Entry,
    instance::Instance,
    logins::{LoginOutcome, Way},
    rounds,
};
use crate::{
    catalog::ServerId,
    peer::{CallError, CallOptions},
    protocol::{Era, adapt, method},
    upstream::{Lease, LoadError},
    wire::{Outcome, Raw, credentials::CredentialError, edit},
};

/// Why a request has no answer from its server.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ForwardError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("server {server:?} ended before it answered; the request may have been executed")]
    Died { server: String },
    #[error("the {feature} of server {server:?} are switched off by the config of dormouse")]
    SwitchedOff { server: String, feature: &'static str },
    #[error("server {server:?}: {cause}")]
    Call { server: String, cause: CallError },
    /// The host has to ask its user something first: the result that says what.
    #[error("its user has to log in first")]
    Asks(Raw),
    /// Somebody was asked to log in, and has not.
    #[error(
        "server {server:?} wants a login, which has not come about ({why}): run `{command}` in a terminal, then try again"
    )]
    NotLoggedIn { server: String, why: String, command: String },
}

impl ForwardError {
    pub(super) fn new(server: String, cause: CallError) -> Self {
        match cause {
            CallError::Closed => Self::Died { server },
            cause => Self::Call { server, cause },
        }
    }
}

/// For one request: a server may end whenever it is woken.
pub(super) const MAX_CONNECTIONS: usize = 3;

/// For one request.
const MAX_LOGINS: usize = 2;

/// How often a host that waits is shown that it goes on.
const HEARTBEAT: Duration = Duration::from_secs(5);

impl Fleet {
    /// Sends a request to a server, which is woken or loaded for it, and returns its answer.
    pub(super) async fn forward(
        &self,
        server: ServerId,
        caller: &Caller,
        method: &str,
        params: Option<Raw>,
    ) -> Result<Outcome, ForwardError> {
        self.check_feature(server, method)?;
        let failed = |cause| ForwardError::new(self.servers.config(server).name.clone(), cause);
        let mut last = CallError::NotSent;
        for _ in 0..MAX_CONNECTIONS {
            let (instance, lease) = self.lease(server, caller).await?;
            match self.request(lease, instance, caller, method, params.clone()).await {
                Err(cause) if self.can_repeat(server, caller, &cause).await? => last = cause,
                answered => return answered.map_err(failed),
            }
        }
        Err(failed(last))
    }

    /// Whether a request that was not executed can be made once more: on another connection, or now that somebody has
    /// logged in.
    pub(super) async fn can_repeat(
        &self,
        server: ServerId,
        caller: &Caller,
        cause: &CallError,
    ) -> Result<bool, ForwardError> {
        match cause {
            CallError::NotSent => Ok(true),
            CallError::Unauthorized(CredentialError::LoginRequired { .. }) => {
                match Box::pin(self.log_in(server, caller, self.way(caller))).await {
                    LoginOutcome::LoggedIn => Ok(true),
                    LoginOutcome::Asks(result) => Err(ForwardError::Asks(result)),
                    LoginOutcome::Failed(error) => Err(error),
                    LoginOutcome::NobodyToAsk => Ok(false),
                }
            }
            _ => Ok(false),
        }
    }

    /// The instance of a server that this caller uses, awake. Where it wants a login, somebody is asked for it if that
    /// can be.
    pub(super) async fn lease(
        &self,
        server: ServerId,
        caller: &Caller,
    ) -> Result<(Instance, Lease), ForwardError> {
        self.lease_asking(server, caller, self.way(caller)).await
    }

    /// The same, where somebody can be asked in this way only.
    pub(super) async fn lease_asking(
        &self,
        server: ServerId,
        caller: &Caller,
        way: Option<Way>,
    ) -> Result<(Instance, Lease), ForwardError> {
        let mut logins = 0;
        loop {
            let required = match self.lease_unasked(server, caller).await {
                // Some change their mind about a login as soon as it is used.
                Err(required @ LoadError::LoginRequired { .. }) if logins < MAX_LOGINS => required,
                leased => return Ok(leased?),
            };
            logins += 1;
            match Box::pin(self.log_in(server, caller, way)).await {
                LoginOutcome::LoggedIn => {}
                LoginOutcome::Asks(result) => return Err(ForwardError::Asks(result)),
                LoginOutcome::Failed(error) => return Err(error),
                LoginOutcome::NobodyToAsk => return Err(required.into()),
            }
        }
    }

    /// Whether the config lets the part of a server be used that a method is for.
    pub(super) fn check_feature(&self, server: ServerId, method: &str) -> Result<(), ForwardError> {
        let config = self.servers.config(server);
        let (feature, is_on) = match method.split_once('/') {
            Some(("tools", _)) => ("tools", config.features.tools),
            Some(("resources", _)) => ("resources", config.features.resources),
            Some(("prompts", _)) => ("prompts", config.features.prompts),
            _ => return Ok(()),
        };
        if is_on {
            return Ok(());
        }
        Err(ForwardError::SwitchedOff { server: config.name.clone(), feature })
    }

    /// Sends a request to a server that is awake, in whatever number of steps the two eras need for it.
    pub(super) async fn request(
        &self,
        lease: Lease,
        instance: Instance,
        caller: &Caller,
        method: &str,
        params: Option<Raw>,
    ) -> Result<Outcome, CallError> {
        let forwarded = Forwarded { fleet: self, lease, instance, caller, method };
        self.send_forwarded(forwarded, params, Ending::default()).await
    }

    /// The same, where a call to a legacy server may outlive this future: see [`Ending`].
    pub(super) async fn send_forwarded(
        &self,
        request: Forwarded<'_>,
        params: Option<Raw>,
        ending: Ending,
    ) -> Result<Outcome, CallError> {
        let (caller, era) = (request.caller, request.lease.greeting().era);
        if caller.client.era == Era::Modern
            && let Err(refusal) = self.asking.check_state_of_server(era, params.as_ref())
        {
            return Ok(Err(refusal));
        }
        match (caller.client.era, era) {
            (Era::Modern, Era::Legacy) => {
                Box::pin(conversation::begin(request, params, ending)).await
            }
            (Era::Legacy, Era::Modern) => Box::pin(rounds::play(&request, params)).await,
            (Era::Legacy, Era::Legacy) => {
                let outcome = request.send(params).await?;
                Ok(outcome.map(|result| request.with_task(result)))
            }
            (Era::Modern, Era::Modern) => {
                let outcome = request.send(params).await?;
                if let Ok(result) = &outcome
                    && adapt::is_input_required(result)
                {
                    self.asking.note_state_of_server(result);
                }
                Ok(outcome.map(|result| request.with_task(result)))
            }
        }
    }

    /// As `lease`, where nobody is asked to log in.
    async fn lease_unasked(
        &self,
        server: ServerId,
        caller: &Caller,
    ) -> Result<(Instance, Lease), LoadError> {
        loop {
            let instance = self.instance(server, caller);
            if !self.servers.is_current(instance) {
                return Err(LoadError::Gone { server: self.servers.config(server).name.clone() });
            }
            match self.wake(instance, caller).await {
                // The config has changed meanwhile, and it is another instance's turn.
                Err(_) if !self.servers.is_current(instance) => {}
                leased => return leased.map(|lease| (instance, lease)),
            }
        }
    }

    async fn wake(&self, instance: Instance, caller: &Caller) -> Result<Lease, LoadError> {
        let upstream = self.upstream(instance);
        let era = caller.client.era;
        let message = format!("starting server {}", upstream.name());
        with_beats(caller, &message, upstream.lease(era)).await
    }
}

/// A request of a host on its way to a server that is awake.
pub(super) struct Forwarded<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) lease: Lease,
    pub(super) instance: Instance,
    pub(super) caller: &'a Caller,
    pub(super) method: &'a str,
}

impl Forwarded<'_> {
    /// How long the server may be silent.
    pub(super) fn silence(&self) -> Duration {
        let timeouts = self.fleet.servers.config(self.instance.server).timeouts;
        // `tasks/result` is answered when the work is done.
        let is_work = matches!(self.method, method::TOOLS_CALL | method::TASKS_RESULT);
        if is_work { timeouts.call } else { timeouts.request }
    }

    /// The `params` as the server's era has them.
    pub(super) fn adapted(&self, params: Option<Raw>) -> Option<Raw> {
        let era = self.lease.greeting().era;
        let client = &self.caller.client;
        // What a legacy host has set once, a modern server is told with each request.
        let crosses = (client.era, era) == (Era::Legacy, Era::Modern);
        let level =
            crosses.then(|| self.fleet.audience.levels().of(self.caller.host.id())).flatten();
        adapt::params(client, era, level, params)
    }

    /// The result as its host is to see it, where it stands for a task.
    fn with_task(&self, result: Raw) -> Raw {
        match self.method {
            method::TOOLS_CALL => {
                self.fleet.with_task(&self.lease, self.instance, self.caller, result)
            }
            _ => result,
        }
    }

    /// The answer as the host's era has it.
    pub(super) fn answered(&self, outcome: Outcome) -> Outcome {
        let era = self.lease.greeting().era;
        adapt::outcome(self.method, era, self.caller.client.era, outcome)
    }

    /// Sends the request once, and waits for the answer.
    pub(super) async fn send(&self, params: Option<Raw>) -> Result<Outcome, CallError> {
        let options =
            CallOptions { silence: self.silence(), progress: self.caller.progress_sink() };
        let call = self.lease.peer().prepare(options);
        let entry = Entry {
            call: call.id(),
            upstream: self.lease.peer().clone(),
            caller: self.caller.clone(),
            pulse: call.pulse(),
            questions: None,
            is_parked: false,
        };
        let _entered = self.fleet.in_flight.enter(self.instance, entry);
        let outcome = call.send(self.method, self.adapted(params)).await?;
        Ok(self.answered(outcome))
    }
}

/// A host that asked for progress is told that it takes a while.
pub(super) async fn with_beats<T>(
    caller: &Caller,
    message: &str,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        if let Ok(done) = tokio::time::timeout(HEARTBEAT, &mut work).await {
            return done;
        }
        beat(caller, message);
    }
}

/// The values rise from -1 towards 0, so that those of the server itself still rise after them.
fn beat(caller: &Caller, message: &str) {
    let Some(token) = &caller.progress_token else { return };
    let beats = caller.beats.fetch_add(1, Ordering::Relaxed) + 1;
    let params = Raw::encode(&json!({
        "progress": -1.0 / f64::from(beats),
        "message": message,
    }));
    let params = edit::set(&params, "progressToken", token);
    caller.peer.notify(method::PROGRESS, Some(params));
}
