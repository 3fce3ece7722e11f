use super::*;
use crate::{peer::CallError, wire::credentials::CredentialError};

/// Plays events against a server and keeps the visible effects.
struct Life {
    state: Option<ServerState<u32>>,
    startup: Startup,
    now: Instant,
    connections: u32,
    closed: u32,
    attempts: u32,
    log: Vec<String>,
}

fn life(startup: Startup) -> Life {
    let state = Some(ServerState::initial(true, false));
    let now = Instant::now();
    Life { state, startup, now, connections: 0, closed: 0, attempts: 0, log: Vec::new() }
}

fn error() -> Arc<AttemptError> {
    Arc::new(AttemptError::ShuttingDown)
}

fn exhausted() -> Arc<AttemptError> {
    let cause = CallError::Exhausted("too many open files".to_owned());
    Arc::new(AttemptError::Call { phase: "connecting", cause })
}

fn no_login() -> Arc<AttemptError> {
    let (why, remedy) = (String::new(), "dormouse login x".to_owned());
    Arc::new(CredentialError::LoginRequired { why, remedy }.into())
}

impl Life {
    fn play(&mut self, event: ServerEvent<u32>) -> &mut Self {
        let state = self.state.take().unwrap();
        let (next, effects) = state.step(event, self.startup, self.now, 1.0);
        for effect in effects {
            self.attempts += u32::from(matches!(effect, Effect::StartAttempt(_)));
            self.closed += u32::from(matches!(effect, Effect::Close(_) | Effect::Bury(_)));
            self.log.push(match effect {
                Effect::StartAttempt(_) => "start".to_owned(),
                Effect::Close(_) => "close".to_owned(),
                Effect::Bury(_) => "bury".to_owned(),
                Effect::Admit(_) => "admit".to_owned(),
                Effect::Refuse(LoadRefusal::Failed { attempts_left, .. }) => {
                    format!("refuse, {attempts_left} left")
                }
                Effect::Refuse(LoadRefusal::GivenUp { .. }) => "refuse, given up".to_owned(),
                Effect::Refuse(LoadRefusal::Unreachable { .. }) => "refuse".to_owned(),
                Effect::Refuse(LoadRefusal::LoginRequired { .. }) => "refuse, log in".to_owned(),
                Effect::Refuse(LoadRefusal::Ending) => "refuse, ending".to_owned(),
                Effect::Refuse(LoadRefusal::Gone) => "gone".to_owned(),
                Effect::PublishUnreachable(_) => "unreachable".to_owned(),
                Effect::PublishAwaitingLogin(_) => "awaiting login".to_owned(),
                Effect::PublishOffered => "offered".to_owned(),
                Effect::PublishEvicted(_) => "evicted".to_owned(),
                Effect::ForgetCatalog => "forget".to_owned(),
            });
        }
        if let ServerState::BackingOff { until, .. } = &next {
            self.log.push(format!("retry after {:?}", *until - self.now));
        }
        self.state = Some(next);
        self
    }

    fn connect(&mut self) -> &mut Self {
        self.connections += 1;
        self.play(ServerEvent::Connected(self.connections))
    }

    fn mismatch(&mut self) -> &mut Self {
        self.connections += 1;
        self.play(ServerEvent::Mismatched(self.connections))
    }

    fn log(&self) -> Vec<&str> {
        self.log.iter().map(String::as_str).collect()
    }
}

#[test]
fn concurrent_callers_share_one_attempt() {
    let mut life = life(Startup::Lazy);
    life.play(ServerEvent::Wanted).play(ServerEvent::Wanted).play(ServerEvent::Wanted).connect();
    assert_eq!(life.log(), ["start", "admit"]);
}

#[test]
fn mismatched_connection_is_remade_within_the_attempt() {
    let mut life = life(Startup::Lazy);
    life.play(ServerEvent::Wanted).mismatch();
    assert!(matches!(life.state, Some(ServerState::Loading(_))));
    life.connect();
    assert_eq!(life.log(), ["start", "close", "start", "admit"]);
}

#[test]
fn third_failed_load_evicts_the_server() {
    let mut life = life(Startup::Lazy);
    for _ in 0..3 {
        life.play(ServerEvent::Wanted).play(ServerEvent::Failed(error()));
    }
    life.play(ServerEvent::Wanted);
    assert_eq!(
        life.log(),
        [
            "start",
            "refuse, 2 left",
            "start",
            "refuse, 1 left",
            "start",
            "evicted",
            "refuse, given up",
            "gone"
        ]
    );
}

#[test]
fn failed_wake_is_no_strike_and_is_not_retried_at_once() {
    let mut life = life(Startup::Lazy);
    life.play(ServerEvent::Wanted).connect().play(ServerEvent::Idled);
    for _ in 0..5 {
        life.play(ServerEvent::Wanted).play(ServerEvent::Failed(error())).play(ServerEvent::Wanted);
        life.now += MIN_RETRY_INTERVAL;
    }
    life.play(ServerEvent::Wanted).connect();
    assert_eq!(life.attempts, 7);
    assert!(matches!(life.state, Some(ServerState::Awake { .. })));
}

#[test]
fn lazy_server_sleeps_after_it_dies() {
    let mut life = life(Startup::Lazy);
    life.play(ServerEvent::Wanted).connect().play(ServerEvent::Died).play(ServerEvent::RetryDue);
    assert_eq!(life.log(), ["start", "admit", "bury"]);
    assert!(matches!(life.state, Some(ServerState::Asleep { .. })));
}

#[test]
fn eager_server_is_retried_indefinitely_and_never_sleeps() {
    let mut life = life(Startup::Eager);
    life.play(ServerEvent::Wanted);
    for _ in 0..50 {
        life.play(ServerEvent::Failed(error())).play(ServerEvent::RetryDue);
    }
    life.connect().play(ServerEvent::Idled);
    assert!(matches!(life.state, Some(ServerState::Awake { .. })));
    assert_eq!(life.attempts, 51);
    assert_eq!(&life.log()[..5], ["start", "unreachable", "refuse", "retry after 1s", "start"]);
}

#[test]
fn eager_server_that_dies_early_backs_off() {
    let mut life = life(Startup::Eager);
    life.play(ServerEvent::Wanted).connect();
    for _ in 0..3 {
        life.play(ServerEvent::Died).play(ServerEvent::RetryDue).connect();
    }
    life.now += MIN_STABLE_UPTIME;
    life.play(ServerEvent::Died);
    let retries: Vec<&str> =
        life.log().into_iter().filter(|line| line.starts_with("retry")).collect();
    assert_eq!(retries, ["retry after 1s", "retry after 2s", "retry after 4s", "retry after 1s"]);
    life.play(ServerEvent::Wanted);
    assert!(
        matches!(life.state, Some(ServerState::Loading(_))),
        "a call does not wait for the retry"
    );
}

#[test]
fn only_hybrid_servers_without_a_catalog_are_evicted() {
    let mut life = life(Startup::Hybrid);
    for _ in 0..3 {
        life.play(ServerEvent::CatalogWanted).play(ServerEvent::Failed(error()));
    }
    assert!(matches!(life.state, Some(ServerState::Evicted)));
    let mut life = self::life(Startup::Hybrid);
    life.play(ServerEvent::Recalled);
    for _ in 0..5 {
        life.play(ServerEvent::CatalogWanted).play(ServerEvent::Failed(error()));
    }
    assert!(matches!(life.state, Some(ServerState::Asleep { .. })));
    life.play(ServerEvent::Recalled);
    assert!(matches!(life.state, Some(ServerState::Asleep { .. })), "it is known already");
}

#[test]
fn missing_login_is_no_strike_and_login_resumes_the_attempt() {
    let mut life = life(Startup::Lazy);
    life.play(ServerEvent::Wanted).play(ServerEvent::Failed(error())).play(ServerEvent::Wanted);
    for _ in 0..5 {
        life.play(ServerEvent::Failed(no_login())).play(ServerEvent::Wanted);
    }
    life.play(ServerEvent::Failed(no_login())).play(ServerEvent::LoggedIn);
    assert!(matches!(life.state, Some(ServerState::Unloaded { strikes: 1 })));
    assert_eq!(life.log().last(), Some(&"offered"));
    life.play(ServerEvent::Wanted).connect().play(ServerEvent::Idled).play(ServerEvent::Wanted);
    life.play(ServerEvent::Failed(no_login())).play(ServerEvent::LoggedIn);
    assert!(matches!(life.state, Some(ServerState::Asleep { .. })));

    let mut life = self::life(Startup::Eager);
    life.play(ServerEvent::Wanted)
        .play(ServerEvent::Failed(no_login()))
        .play(ServerEvent::RetryDue);
    assert_eq!(life.log(), ["start", "awaiting login", "refuse, log in"]);
    life.play(ServerEvent::LoggedIn).connect();
    assert!(matches!(life.state, Some(ServerState::Awake { .. })));
}

#[test]
fn login_has_the_unknown_catalog_of_a_hybrid_server_learned() {
    let mut life = life(Startup::Hybrid);
    life.play(ServerEvent::Wanted)
        .play(ServerEvent::Failed(no_login()))
        .play(ServerEvent::LoggedIn);
    assert_eq!(life.log(), ["start", "awaiting login", "refuse, log in", "start"]);
    let state = life.state.as_ref();
    assert!(matches!(state, Some(ServerState::Loading(AttemptPurpose::Learn { strikes: 0 }))));
}

#[test]
fn stable_connection_that_is_replaced_resets_the_count_of_failures() {
    let mut life = life(Startup::Eager);
    life.play(ServerEvent::Wanted);
    for _ in 0..3 {
        life.play(ServerEvent::Failed(error())).play(ServerEvent::RetryDue);
    }
    life.connect();
    life.now += MIN_STABLE_UPTIME;
    life.play(ServerEvent::Unsuitable).play(ServerEvent::Failed(error()));
    assert_eq!(life.log().last(), Some(&"retry after 1s"));
}

#[test]
fn hosts_are_told_of_a_failed_study_that_is_no_strike() {
    let mut life = life(Startup::Hybrid);
    life.play(ServerEvent::CatalogWanted).play(ServerEvent::Failed(exhausted()));
    assert_eq!(life.log(), ["start", "unreachable", "refuse"]);
    assert!(matches!(life.state, Some(ServerState::Unloaded { strikes: 0 })));
}

#[test]
fn retired_server_finishes_what_is_in_flight_and_is_not_connected_again() {
    let mut life = life(Startup::Eager);
    life.play(ServerEvent::Wanted).connect();
    life.play(ServerEvent::Retired).play(ServerEvent::Wanted);
    assert!(matches!(life.state, Some(ServerState::Retiring { connection: 1 })));
    life.play(ServerEvent::Unsuitable).play(ServerEvent::Idled);
    assert!(matches!(life.state, Some(ServerState::Ended { remaining: Some(1) })));
    life.play(ServerEvent::Wanted);
    assert_eq!(life.log(), ["start", "admit", "forget", "refuse, ending", "refuse, ending"]);
}

#[test]
fn server_that_is_retired_without_a_connection_refuses_its_callers() {
    let mut life = life(Startup::Lazy);
    life.play(ServerEvent::Wanted).play(ServerEvent::Retired);
    assert!(matches!(life.state, Some(ServerState::Ended { remaining: None })));
    assert_eq!(life.log(), ["start", "forget", "refuse, ending"]);
}
