//! What the actor does for what the state machine has decided.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::Actor;
use crate::{
    base::run_blocking,
    catalog::{Origin, ProtocolSupport},
    config,
    protocol::Era,
    upstream::{
        AttemptError, Audience, Kinds, Lease, LoadError,
        connect::{Surroundings, connect},
        connection::Link,
        listen,
        process::Grace,
        state::{Attempt, Effect, Refusal, State},
    },
};

/// A wake is for a call; the comparison of the lists comes after it.
const REFRESH_AFTER_WAKE: Duration = Duration::from_millis(50);
/// How long somebody who needs a server waits for its previous process to end by itself.
const END_TIMEOUT: Duration = Duration::from_millis(800);

impl Actor {
    pub(super) fn perform(&mut self, effect: Effect<Link>) {
        match effect {
            Effect::StartAttempt(attempt) => self.start_attempt(attempt),
            Effect::Close(link) => self.end(link.must_end_first(), link.end(Grace::SLEEP)),
            Effect::Bury(link) => {
                let server = self.name().to_owned();
                let shared = self.shared.clone();
                self.end(link.must_end_first(), async move {
                    if !link.is_expired() {
                        let epitaph = link.epitaph().await;
                        tracing::warn!(server, "the server ended{epitaph}");
                        shared.status.lock().last_error = Some(format!("it ended{epitaph}"));
                    }
                    link.end(Grace::QUICK).await;
                });
            }
            Effect::Admit(attempt) => self.admit(attempt),
            Effect::Refuse(refusal) => self.refuse(&refusal),
            Effect::PublishUnreachable(cause) => {
                self.log_unreachable(&cause.to_string());
                let trouble = format!("not reachable now: {}", cause.in_short());
                self.shared.observer.troubled(Some(trouble));
                self.first_attempt_over();
            }
            Effect::PublishAwaitingLogin(cause) => {
                tracing::warn!(server = self.name(), "{cause}");
                self.shared.observer.troubled(Some(cause.to_string()));
                self.first_attempt_over();
            }
            Effect::PublishOffered => self.shared.observer.troubled(None),
            Effect::PublishEvicted(cause) => {
                tracing::warn!(server = self.name(), %cause, "evicted after three failed loads");
                self.shared.observer.evicted();
                self.first_attempt_over();
            }
        }
    }

    fn end(&mut self, must_end_first: bool, ending: impl Future<Output = ()> + Send + 'static) {
        self.shared.current.store(None);
        let ending = self.surroundings.context.tasks.spawn(ending);
        if must_end_first {
            self.ending = Some(AbortOnDropHandle::new(ending));
        }
    }

    fn start_attempt(&mut self, attempt: Attempt) {
        let (ending, spoken) = (self.ending.take(), self.spoken);
        let (surroundings, host) = (self.surroundings.clone(), self.host);
        self.attempted_for = host;
        // A tool that has changed while the server slept must not be called before that is noticed.
        let must_compare = surroundings.config.pin == config::Pin::Block;
        let with_catalog = attempt.reads_lists() || must_compare;
        self.attempt = Some(Box::pin(async move {
            hurry(ending).await;
            let began = Instant::now();
            let spoken = match spoken {
                Some(spoken) => spoken,
                None => remembered(&surroundings).await,
            };
            let connected = connect(surroundings.clone(), host, spoken, with_catalog).await?;
            let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let tools = connected.link.brought.as_ref().map(|catalog| catalog.tools.len());
            tracing::info!(server = surroundings.config.name, took_ms, tools, "awake");
            Ok(Box::new(connected))
        }));
    }

    fn admit(&mut self, attempt: Attempt) {
        let Some(State::Awake { connection: link, .. }) = &mut self.state else { return };
        let (connection, brought) = (link.connection.clone(), link.brought.take());
        self.shared.current.store(Some(connection.clone()));
        self.logged = None;
        let origin = match attempt {
            Attempt::Load { .. } => Origin::HostsRequest,
            _ => Origin::OwnAccord,
        };
        let is_needed = !attempt.is_study() || !self.waiting.is_empty();
        if let Some(catalog) = brought {
            self.freshness.renew(&catalog);
            self.shared.publish(catalog, origin, Audience::All);
        } else {
            self.refresh_not_before = Instant::now() + REFRESH_AFTER_WAKE;
            self.surroundings.stale.mark(Kinds::ALL);
        }
        self.first_attempt_over();
        if self.surroundings.context.reads_lists || connection.greeting.era == Era::Legacy {
            listen::resume(&self.shared, &self.surroundings.context.tasks, &connection);
        }
        for (_, reply) in self.waiting.drain(..) {
            // Whoever asked may have gone away; the load stands all the same.
            let lease = Lease::on(&connection).map(Lease::for_a_host);
            let gone = || LoadError::Gone { server: self.surroundings.config.name.clone() };
            let _ = reply.send(lease.ok_or_else(gone));
        }
        if !is_needed {
            // It has said what it has; nobody has asked for more.
            self.idled();
        }
    }

    /// Logs why the server cannot be reached, once for all retries that fail for the same reason.
    fn log_unreachable(&mut self, cause: &str) {
        if self.logged.as_deref() == Some(cause) {
            tracing::debug!(server = self.name(), cause, "still cannot be reached");
        } else {
            tracing::warn!(server = self.name(), cause, "cannot be reached");
            self.logged = Some(cause.to_owned());
        }
    }

    fn is_logged(&self, cause: &AttemptError) -> bool {
        self.logged.as_ref().is_some_and(|logged| *logged == cause.to_string())
    }

    pub(super) fn refuse(&mut self, refusal: &Refusal) {
        let server = self.surroundings.config.name.clone();
        let error = match refusal.clone() {
            Refusal::Failed { cause, attempts_left } => {
                if !self.is_logged(&cause) {
                    tracing::warn!(server, %cause, attempts_left, "cannot be loaded");
                }
                self.shared.observer.failed(cause.in_short());
                LoadError::Failed { server, cause, attempts_left }
            }
            Refusal::GivenUp { cause } => {
                self.shared.observer.failed(cause.in_short());
                LoadError::GivenUp { server, cause }
            }
            Refusal::Unreachable { cause } => {
                if !self.is_logged(&cause) {
                    tracing::info!(server, %cause, "cannot be reached");
                }
                LoadError::Unreachable { server, cause }
            }
            Refusal::LoginRequired { cause } => LoadError::LoginRequired { server, cause },
            Refusal::Gone => LoadError::Gone { server },
        };
        for (_, reply) in self.waiting.drain(..) {
            // As above.
            let _ = reply.send(Err(error.clone()));
        }
    }
}

/// Waits a moment for a process to end in order. Then it is killed, as it is when this is dropped.
pub(super) async fn hurry(ending: Option<AbortOnDropHandle<()>>) {
    if let Some(ending) = ending {
        let _ = tokio::time::timeout(END_TIMEOUT, ending).await;
    }
}

/// What the server has been seen to speak in other runs.
async fn remembered(surroundings: &Surroundings) -> ProtocolSupport {
    let observer = surroundings.observer.clone();
    let recalled = run_blocking(move || observer.recall()).await.flatten();
    recalled.map(|recalled| recalled.catalog.discovery.spoken).unwrap_or_default()
}
