//! A fleet that serves hosts, with its tasks: following the config, the control socket, and the
//! first run.

use std::{sync::Arc, time::Duration};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{config_rules::ConfigRules, config_source::ConfigSource, first_run, follow, settings};
use crate::{
    auth::Auth,
    config::ParsedConfig,
    control::{self, ApiState, ChangeSender},
    proxy::{Fleet, Storage},
    store::SharedStores,
    telemetry::{FleetTelemetry, TelemetryOptions},
    upstream::ProcessServices,
};

/// Time in which all servers must end. Stopping them normally takes less; this is a safeguard.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The state that outlives a fleet.
pub(super) struct KeptState {
    pub(super) storage: Storage,
    pub(super) auth: Auth,
    /// The store that several machines share, if there is one.
    pub(super) shared: Option<SharedStores>,
}

pub(super) struct ServedFleet {
    fleet: Arc<Fleet>,
    telemetry: Arc<FleetTelemetry>,
    control: ApiState,
    tasks: TaskTracker,
}

impl ServedFleet {
    /// Makes the fleet, and starts its tasks. `source` is `None` if dormouse wraps a command. The
    /// caller calls [`Self::stop`] when its transports have ended; `ending` ends the tasks alone.
    pub(super) fn start(
        parsed: ParsedConfig,
        source: Option<ConfigSource>,
        kept: KeptState,
        services: &ProcessServices,
        ending: &CancellationToken,
    ) -> Self {
        let is_first_run =
            source.as_ref().is_some_and(|source| first_run::is_due(&source.file, &parsed));
        let KeptState { storage, auth, shared } = kept;
        let logging = parsed.config.settings.telemetry.call_log;
        let fleet = Fleet::new(parsed.config, services, storage, auth);
        let parts = TelemetryOptions {
            fleet: Arc::downgrade(&fleet),
            logging,
            log: source.as_ref().and_then(|source| settings::call_log_directory(&source.file)),
            export: source.as_ref().and_then(ConfigSource::export_settings),
        };
        let tasks = TaskTracker::new();
        let (telemetry, writing) = FleetTelemetry::new(parts);
        fleet.operator().report_to(telemetry.clone());
        if let Some(shared) = shared {
            let telemetry = Arc::downgrade(&telemetry);
            shared.health().report_to(Box::new(move |took, is_answered| {
                if let Some(telemetry) = telemetry.upgrade() {
                    telemetry.store_used(took, is_answered);
                }
            }));
        }
        tasks.spawn(writing);
        let served = Served { fleet: fleet.clone(), telemetry: telemetry.clone() };
        let control = start_tasks(served, source, is_first_run, ending.child_token(), &tasks);
        Self { fleet, telemetry, control, tasks }
    }

    pub(super) fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    pub(super) fn control(&self) -> &ApiState {
        &self.control
    }

    /// Ends all servers and tasks, and waits for them.
    pub(super) async fn stop(self) {
        if tokio::time::timeout(STOP_TIMEOUT, self.fleet.stop()).await.is_err() {
            tracing::error!("some servers did not stop in time");
        }
        self.control.stop.cancel();
        self.telemetry.end();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// A fleet with what is remembered of it.
struct Served {
    fleet: Arc<Fleet>,
    telemetry: Arc<FleetTelemetry>,
}

/// Starts the tasks of the fleet, and returns the state of the API.
fn start_tasks(
    served: Served,
    source: Option<ConfigSource>,
    is_first_run: bool,
    stop: CancellationToken,
    tasks: &TaskTracker,
) -> ApiState {
    let Served { fleet, telemetry } = served;
    let Some(source) = source else {
        let (config, changes) = Default::default();
        return ApiState { fleet, telemetry, config, changes, stop };
    };
    let (changes, wanted) = ChangeSender::channel();
    fleet.operator().write_rules_with(Arc::new(ConfigRules(changes.clone())));
    let file = source.file.clone();
    let config = std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone());
    let control = ApiState { fleet: fleet.clone(), telemetry, config, changes, stop: stop.clone() };
    tasks.spawn(follow::follow(fleet.clone(), source, wanted, stop.clone()));
    #[cfg(unix)]
    if let Some(place) = settings::control_place(&file) {
        let answering = control::serve(control.clone(), place);
        tasks.spawn(async {
            if let Err(error) = answering.await {
                tracing::info!(
                    %error,
                    "the control socket is closed; other commands cannot reach this dormouse",
                );
            }
        });
    }
    if is_first_run {
        tasks.spawn(first_run::write_tools(fleet, file, stop));
    }
    control
}
