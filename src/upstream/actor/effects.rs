//! Performs the effects that the state machine has decided.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::ServerActor;
use crate::{
    catalog::{LoadOrigin, ProtocolSupport},
    config,
    protocol::Era,
    upstream::{
        AttemptError, ChangeAudience, Lease, ListKinds, LoadError,
        attempt::{ConnectSetup, connect},
        carrier::ShutdownPolicy,
        connection::OwnedConnection,
        listen,
        server_state::{AttemptPurpose, Effect, LoadRefusal, ServerState},
    },
};

/// Time between a wake and the comparison of the lists, so that the call that caused the wake comes
/// first.
const REFRESH_AFTER_WAKE_DELAY: Duration = Duration::from_millis(50);
/// Maximum time to wait for the previous process to end by itself.
const PREVIOUS_END_TIMEOUT: Duration = Duration::from_millis(800);

impl ServerActor {
    pub(super) fn perform(&mut self, effect: Effect<OwnedConnection>) {
        match effect {
            Effect::StartAttempt(purpose) => self.start_attempt(purpose),
            Effect::Close(owned) => {
                self.end(owned.must_end_before_next(), owned.end(ShutdownPolicy::SLEEP));
            }
            Effect::Bury(owned) => {
                let server = self.name().to_owned();
                let shared = self.shared.clone();
                self.end(owned.must_end_before_next(), async move {
                    if !owned.is_expired() {
                        let description = owned.describe_end().await;
                        tracing::warn!(server, "the server ended{description}");
                        shared.status.lock().last_error = Some(format!("ended{description}"));
                    }
                    owned.end(ShutdownPolicy::QUICK).await;
                });
            }
            Effect::Admit(purpose) => self.admit(purpose),
            Effect::Refuse(refusal) => self.refuse(&refusal),
            Effect::PublishUnreachable(cause) => {
                self.failures.log_unreachable(&self.shared.config.name, &cause.to_string());
                let trouble = format!("not reachable: {}", cause.in_short());
                self.shared.observer.troubled(Some(trouble));
            }
            Effect::PublishAwaitingLogin(cause) => {
                tracing::warn!(server = self.name(), "{cause}");
                self.shared.observer.troubled(Some(cause.to_string()));
            }
            Effect::PublishOffered => self.shared.observer.troubled(None),
            Effect::PublishEvicted(cause) => {
                tracing::warn!(
                    server = self.name(), %cause,
                    "server evicted after three consecutive failed loads",
                );
                self.shared.observer.evicted();
            }
            Effect::ForgetCatalog => self.shared.catalog.store(None),
        }
    }

    fn end(
        &mut self,
        must_end_before_next: bool,
        ending: impl Future<Output = ()> + Send + 'static,
    ) {
        self.shared.current.store(None);
        let ending = self.context.tasks.spawn(ending);
        if must_end_before_next {
            self.connecting.ending = Some(AbortOnDropHandle::new(ending));
        }
    }

    fn start_attempt(&mut self, purpose: AttemptPurpose) {
        let (host_era, spoken) = self.eras.begin_attempt();
        let setup = ConnectSetup {
            server: self.shared.clone(),
            credentials: self.credentials.clone(),
            context: self.context.clone(),
        };
        let ending = self.connecting.ending.take();
        // A tool that has changed while the server slept must not be called before the change is
        // noticed.
        let must_compare = setup.server.config.settings.pin == config::Pin::Block;
        let with_catalog = purpose.reads_lists() || must_compare;
        self.connecting.attempt = Some(Box::pin(async move {
            wait_for_end(ending).await;
            let began = Instant::now();
            let spoken = match spoken {
                Some(spoken) => spoken,
                None => recalled_spoken(&setup).await,
            };
            let connected = connect(setup.clone(), host_era, spoken, with_catalog).await?;
            let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let tools = connected.owned.fetched_catalog.as_ref().map(|catalog| catalog.tools.len());
            tracing::info!(server = setup.server.config.name, took_ms, tools, "server is awake");
            Ok(Box::new(connected))
        }));
    }

    fn admit(&mut self, purpose: AttemptPurpose) {
        let Some(ServerState::Awake { connection: owned, .. }) = &mut self.state else { return };
        let (connection, fetched_catalog) =
            (owned.connection.clone(), owned.fetched_catalog.take());
        self.shared.current.store(Some(connection.clone()));
        self.failures.clear();
        let origin = match purpose {
            AttemptPurpose::Load { .. } => LoadOrigin::HostsRequest,
            _ => LoadOrigin::OwnAccord,
        };
        let is_needed = !purpose.is_learning()
            || !self.connecting.waiters.is_empty()
            || self.shared.subscriptions.has_uris();
        if let Some(catalog) = fetched_catalog {
            self.refresh.freshness.renew(&catalog);
            self.shared.publish(catalog, origin, ChangeAudience::All);
        } else {
            self.refresh.not_before = Instant::now() + REFRESH_AFTER_WAKE_DELAY;
            self.shared.stale.mark(ListKinds::ALL);
        }
        self.first_attempt_over();
        if self.context.reads_lists || connection.greeting.era == Era::Legacy {
            listen::resume(&self.shared, &self.context.tasks, &connection);
        }
        for (_, reply) in self.connecting.waiters.drain(..) {
            // The caller may have stopped waiting; the server stays loaded.
            let lease = Lease::on(&connection).map(Lease::mark_used);
            let gone = || LoadError::Gone { server: self.shared.config.name.clone() };
            let _ = reply.send(lease.ok_or_else(gone));
        }
        if !is_needed {
            // The lists have been read, and no host needs more.
            self.close_if_unused();
        }
    }

    fn refuse(&mut self, refusal: &LoadRefusal) {
        let server = self.shared.config.name.clone();
        let error = match refusal.clone() {
            LoadRefusal::Failed { cause, attempts_left } => {
                if !self.failures.is_last(&cause.to_string()) {
                    tracing::warn!(server, %cause, attempts_left, "cannot load server");
                }
                self.shared.observer.failed(cause.in_short());
                LoadError::Failed { server, cause, attempts_left }
            }
            LoadRefusal::GivenUp { cause } => {
                self.shared.observer.failed(cause.in_short());
                LoadError::GivenUp { server, cause }
            }
            LoadRefusal::Unreachable { cause } => {
                if !self.failures.is_last(&cause.to_string()) {
                    tracing::info!(server, %cause, "server unreachable");
                }
                LoadError::Unreachable { server, cause }
            }
            LoadRefusal::LoginRequired { cause } => LoadError::LoginRequired { server, cause },
            LoadRefusal::Ending => {
                LoadError::Unreachable { server, cause: Arc::new(AttemptError::ShuttingDown) }
            }
            LoadRefusal::Gone => LoadError::Gone { server },
        };
        for (_, reply) in self.connecting.waiters.drain(..) {
            // The caller may have stopped waiting.
            let _ = reply.send(Err(error.clone()));
        }
    }
}

/// Waits briefly for a process to end by itself. Dropping this kills the process.
pub(super) async fn wait_for_end(ending: Option<AbortOnDropHandle<()>>) {
    if let Some(ending) = ending {
        let _ = tokio::time::timeout(PREVIOUS_END_TIMEOUT, ending).await;
    }
}

/// Returns the eras and framings that the server was seen to use in other runs.
async fn recalled_spoken(setup: &ConnectSetup) -> ProtocolSupport {
    let recalled = setup.server.observer.recall().await;
    recalled.map(|recalled| recalled.catalog.discovery.spoken).unwrap_or_default()
}
