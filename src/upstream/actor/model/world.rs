//! An actor in virtual time, with a server in memory and an observer that records what it sees.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{
    sync::Notify,
    task::AbortHandle,
    time::{Instant, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    ActorModel,
    recorder::Recorder,
    scenario::{
        Action, Answer, LOAD_TIMEOUT, Millis, Phased, Plan, REQUEST_TIMEOUT, Seen, Setting,
    },
};
use crate::{
    auth::{Auth, Browser, LoginStore},
    base::Lock,
    catalog::ServerCatalog,
    config::{Environment, ServerConfig, UserCommands, parse},
    peer::CallError,
    protocol::Era,
    upstream::{
        AttemptError, Context, Lease, LoadError, Opener, Upstream,
        memory_server::{ConnectionPlan, MemoryServer, ServerRecord, Step},
        server_state::model::Failure,
    },
    wire::credentials::{Authorization, Challenge, CredentialError, CredentialFuture, Credentials},
};

/// A resource of the server.
const RESOURCE: &str = "memory:resource";
/// Turns of the runtime in which the actor notices the end of a connection or of an attempt.
const YIELDS: u32 = 20;

pub(in crate::upstream::actor) struct World {
    start: Instant,
    upstream: Upstream,
    server: Arc<MemoryServer>,
    recorder: Arc<Recorder>,
    context: Context,
    login: Arc<Notify>,
    callers: BTreeMap<u32, AbortHandle>,
    leases: Arc<Lock<BTreeMap<u32, Lease>>>,
    list_version: u32,
}

impl World {
    pub(in crate::upstream::actor) fn new(setting: &Setting) -> Self {
        let plans = setting.clone();
        let newest = if setting.is_dual { Era::Modern } else { Era::Legacy };
        let plan = move |number| connection_plan(plans.plan(number));
        let server = MemoryServer::new("s", newest, plan);
        server.list(&["v0"], &[RESOURCE]);
        let context = context(setting, Opener::in_memory([server.clone()]));
        let recorder = Recorder::new(setting.is_recalled);
        let login = Arc::new(Notify::new());
        let credentials: Arc<dyn Credentials> = Arc::new(AwaitedLogin(login.clone()));
        let known = setting.is_known.then(|| Arc::new(ServerCatalog::unknown()));
        let upstream = Upstream::start_with(
            Arc::new(config(setting)),
            recorder.clone(),
            &context,
            known,
            Some(credentials),
        );
        recorder.watch(upstream.clone());
        let (callers, leases) = Default::default();
        Self {
            start: Instant::now(),
            upstream,
            server,
            recorder,
            context,
            login,
            callers,
            leases,
            list_version: 0,
        }
    }

    pub(in crate::upstream::actor) async fn advance(&self, to: Millis) {
        sleep_until(self.start + Duration::from_millis(to)).await;
        self.settle().await;
    }

    /// Lets the actor decide on retries in this moment, which the model observes.
    async fn settle(&self) {
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
    }

    pub(in crate::upstream::actor) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Performs an action here and in the model.
    #[expect(clippy::too_many_lines, reason = "a table of actions")]
    pub(in crate::upstream::actor) async fn act(&mut self, action: Action, model: &mut ActorModel) {
        match action {
            Action::Want { era, callers } => {
                for _ in 0..callers {
                    model.want(self.call(era), era);
                }
            }
            Action::Cancel(position) => {
                if let Some(caller) = at(&model.waiting(), position) {
                    self.callers[&caller].abort();
                    model.cancel(caller);
                }
            }
            Action::Release(position) => {
                let holders: Vec<u32> = self.leases.lock().keys().copied().collect();
                if let Some(caller) = at(&holders, position) {
                    self.leases.lock().remove(&caller);
                    model.release(caller);
                }
            }
            Action::Begin(era) => {
                self.upstream.begin(era);
                model.begin(era);
            }
            Action::Learn => {
                self.upstream.learn();
                model.learn();
            }
            Action::Restore => {
                drop(self.upstream.restore());
                model.restore();
            }
            Action::Sleep => {
                let (upstream, recorder) = (self.upstream.clone(), self.recorder.clone());
                tokio::spawn(async move { recorder.see(Seen::Slept(upstream.sleep().await)) });
                model.sleep();
            }
            Action::Subscribe => {
                if let Some(lease) = self.upstream.awake() {
                    let _ = self.upstream.subscribe(&lease, RESOURCE, None).await;
                }
                model.subscribe();
            }
            Action::Unsubscribe => {
                self.upstream.forget_subscription(RESOURCE);
                model.unsubscribe();
            }
            Action::Die if model.is_awake() => {
                self.server.die();
                self.settle().await;
                self.tell_retries(model);
                model.die();
            }
            Action::Die => {}
            Action::LogIn => {
                self.login.notify_waiters();
                model.log_in();
            }
            Action::ChangeLists => {
                self.list_version += 1;
                self.server.list(&[&format!("v{}", self.list_version)], &[RESOURCE]);
                model.change_lists();
            }
            Action::Retire => {
                self.upstream.retire();
                model.retire();
            }
            Action::Stop => {
                self.upstream.stop();
                model.stop();
            }
        }
    }

    /// Has a caller want the server until it is released.
    fn call(&mut self, era: Era) -> u32 {
        let caller = u32::try_from(self.callers.len()).expect("few callers");
        let (upstream, recorder) = (self.upstream.clone(), self.recorder.clone());
        let leases = self.leases.clone();
        let task = tokio::spawn(async move {
            let answer = match upstream.lease(era).await {
                Ok(lease) => {
                    let era = lease.greeting().era;
                    leases.lock().insert(caller, lease);
                    Answer::Leased(era)
                }
                Err(error) => answer_of(&error),
            };
            recorder.see(Seen::Answered(caller, answer));
        });
        self.callers.insert(caller, task.abort_handle());
        caller
    }

    /// Returns what has been seen since the last call, in order; what the server has seen is last.
    pub(in crate::upstream::actor) fn take_seen(&self) -> Vec<(Millis, Seen)> {
        let records = self.server.take_log().into_iter().map(|(at, record)| match record {
            ServerRecord::Opening(number) => (at, Seen::Opening(number)),
            ServerRecord::Ended(number) => (at, Seen::Ended(number)),
        });
        let seen = self.recorder.take_seen().into_iter().chain(records);
        seen.map(|(at, seen)| (self.millis(at), seen)).collect()
    }

    /// Tells the model the retries that have been decided since the last call.
    pub(in crate::upstream::actor) fn tell_retries(&self, model: &mut ActorModel) {
        for (at, due) in self.recorder.take_retries() {
            model.observe_retry(self.millis(at), self.millis(due));
        }
    }

    pub(in crate::upstream::actor) fn strikes(&self) -> u8 {
        self.upstream.status().strikes
    }

    /// Returns what is left when the actor has stopped, as a sentence.
    ///
    /// # Errors
    /// If a task or a connection is left.
    pub(in crate::upstream::actor) async fn check_end(self) -> Result<(), String> {
        self.recorder.unwatch();
        drop(self.leases);
        self.context.tasks.close();
        let minute = Duration::from_mins(1);
        if tokio::time::timeout(minute, self.context.tasks.wait()).await.is_err() {
            return Err(format!("{} tasks of the server are left", self.context.tasks.len()));
        }
        match tokio::runtime::Handle::current().metrics().num_alive_tasks() {
            0 => Ok(()),
            left => Err(format!("{left} tasks are left")),
        }
    }

    /// Rounds up, as timers do.
    fn millis(&self, at: Instant) -> Millis {
        let nanos = at.duration_since(self.start).as_nanos();
        u64::try_from(nanos.div_ceil(1_000_000)).expect("within years")
    }
}

fn at(callers: &[u32], position: u8) -> Option<u32> {
    (!callers.is_empty()).then(|| callers[usize::from(position) % callers.len()])
}

fn answer_of(error: &LoadError) -> Answer {
    match error {
        LoadError::Failed { attempts_left, .. } => Answer::Strike { left: *attempts_left },
        LoadError::GivenUp { .. } => Answer::GivenUp,
        LoadError::Unreachable { .. } => Answer::Unreachable,
        LoadError::LoginRequired { .. } => Answer::NoLogin,
        LoadError::Gone { .. } => Answer::Gone,
    }
}

fn config(setting: &Setting) -> ServerConfig {
    let text = r#"{"mcpServers": {"s": {"command": "s"}}}"#;
    let parsed = parse(text, "dormouse.json".as_ref(), &Environment::default());
    let mut config = parsed.expect("a constant").config.servers.remove(0);
    config.startup = setting.startup;
    config.settings.idle_timeout = setting.idle_timeout.map(Duration::from_millis);
    config.settings.timeouts.load = Duration::from_millis(LOAD_TIMEOUT);
    config.settings.timeouts.request = Duration::from_millis(REQUEST_TIMEOUT);
    config
}

fn context(setting: &Setting, opener: Opener) -> Context {
    Context {
        opener,
        auth: Auth::new(LoginStore::new(None, false), UserCommands::default(), Browser::Here),
        catalog_ttl: setting.ttl.map(Duration::from_millis),
        reads_lists: true,
        tasks: TaskTracker::new(),
        stop: CancellationToken::new(),
    }
}

fn connection_plan(plan: Plan) -> ConnectionPlan {
    let step = |phase| match phase {
        Phased::Takes(delay) => Step::Takes(Duration::from_millis(delay)),
        Phased::Fails(delay, failure) => {
            Step::Fails(Duration::from_millis(delay), Some(error_of(failure)))
        }
        Phased::Hangs => Step::Hangs,
    };
    ConnectionPlan {
        opening: step(plan.opening),
        handshake: step(plan.handshake),
        lists: step(plan.lists),
        ending: Duration::from_millis(plan.ending),
    }
}

fn error_of(failure: Failure) -> AttemptError {
    match failure {
        Failure::Ordinary => AttemptError::CommandNotFound { command: String::new() },
        Failure::NoLogin => {
            let (why, remedy) = (String::new(), String::new());
            CredentialError::LoginRequired { why, remedy }.into()
        }
        Failure::BadLogin => CredentialError::Refused(String::new()).into(),
        Failure::Exhausted => {
            let cause = CallError::Exhausted(String::new());
            AttemptError::Call { phase: "connecting", cause }
        }
    }
}

/// Credentials that tell of a login as soon as there is one.
struct AwaitedLogin(Arc<Notify>);

impl Credentials for AwaitedLogin {
    fn authorization(
        &self,
    ) -> CredentialFuture<'_, Result<Option<Authorization>, CredentialError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn refused<'a>(
        &'a self,
        _: Option<&'a Authorization>,
        _: &'a Challenge,
    ) -> CredentialFuture<'a, Result<(), CredentialError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn accepted(&self, _: &Authorization) {}

    fn changed(&self) -> CredentialFuture<'_, ()> {
        Box::pin(self.0.notified())
    }
}
