//! The running dormouse, as the handlers of the control API reach it.

use std::{path::PathBuf, sync::Arc};

use tokio_util::sync::CancellationToken;

use super::{ChangeSender, ServerReport, StatusReport, api_types::ApiError};
use crate::{
    base::run_blocking,
    proxy::{Fleet, OperateError},
    telemetry::FleetTelemetry,
};

/// Everything that the handlers of the control API need.
#[derive(Clone)]
pub(crate) struct ApiState {
    pub fleet: Arc<Fleet>,
    pub telemetry: Arc<FleetTelemetry>,
    /// The absolute path of the config; empty if there is none.
    pub config: PathBuf,
    pub changes: ChangeSender,
    /// Ends the event streams.
    pub stop: CancellationToken,
}

impl ApiState {
    pub(super) async fn report(&self) -> Result<StatusReport, ApiError> {
        self.report_by(StatusReport::of).await
    }

    /// Builds the report without the lists of tools.
    pub(super) async fn brief_report(&self) -> Result<StatusReport, ApiError> {
        self.report_by(StatusReport::brief).await
    }

    /// Builds a report on a blocking thread, because it reads from disk and looks up the memory of
    /// processes.
    async fn report_by(
        &self,
        build: fn(&Fleet, &FleetTelemetry, PathBuf) -> StatusReport,
    ) -> Result<StatusReport, ApiError> {
        let (fleet, config) = (self.fleet.clone(), self.config.clone());
        let telemetry = self.telemetry.clone();
        let report = run_blocking(move || build(&fleet, &telemetry, config)).await;
        report.ok_or_else(ApiError::shutting_down)
    }

    pub(super) async fn server_report(&self, name: &str) -> Result<ServerReport, ApiError> {
        let report = self.report().await?;
        let found = report.servers.into_iter().find(|server| server.name == name);
        found.ok_or_else(|| OperateError::Unknown(name.to_owned()).into())
    }
}
