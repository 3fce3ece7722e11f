//! All consumers of the events of one fleet.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    CallLogDirectory, CallRecord, ExportSettings, SavingsReport,
    call_log::{CallLog, CallLogWriter},
    call_ring::CallRing,
    metrics::Metrics,
    operation,
    otlp::{Exporter, ExporterTask},
    prometheus::{self, Gauges},
    savings::Savings,
    server_counts::{ServerCounts, ServerTally},
};
use crate::{
    base::Lock,
    config::CallLogging,
    protocol::{ClientIdentity, TraceContext},
    proxy::{Bodies, EndedCall, EndedRequest, EventSink, Fleet, HostId, Span},
    upstream::Phase,
    wire::Raw,
};

/// The parameters of a fleet's telemetry.
#[derive(Default)]
pub(crate) struct TelemetryParts {
    pub logging: CallLogging,
    /// The place of the log of calls; `None` if there is none.
    pub log: Option<CallLogDirectory>,
    /// `None` if nothing is exported.
    pub export: Option<ExportSettings>,
}

/// The memory and the reports of one fleet.
pub(crate) struct FleetTelemetry {
    has_contents: bool,
    recent: CallRing,
    metrics: Metrics,
    savings: Savings,
    counts: ServerCounts,
    /// The beginnings of the sessions of hosts.
    sessions: Lock<HashMap<HostId, Instant>>,
    outputs: Lock<Outputs>,
}

/// The ways out of the process; none after the end of the fleet.
#[derive(Default)]
struct Outputs {
    log: Option<CallLog>,
    exporter: Option<Arc<Exporter>>,
}

impl FleetTelemetry {
    /// Makes the consumers, and the task that writes and exports what they collect. The task ends
    /// after [`Self::end`].
    pub(crate) fn new(parts: TelemetryParts) -> (Arc<Self>, impl Future<Output = ()> + Send) {
        let place = parts.log.filter(|_| parts.logging != CallLogging::Off);
        let (log, writer) = place.map(CallLogDirectory::open).unzip();
        let (exporter, task) = parts.export.map(Exporter::new).unzip();
        let telemetry = Arc::new(Self {
            has_contents: parts.logging == CallLogging::Contents,
            recent: CallRing::default(),
            metrics: Metrics::default(),
            savings: Savings::default(),
            counts: ServerCounts::default(),
            sessions: Lock::default(),
            outputs: Lock::new(Outputs { log, exporter: exporter.map(Arc::new) }),
        });
        let working = run(telemetry.clone(), writer, task);
        (telemetry, working)
    }

    /// Has the task end when it has written everything.
    pub(crate) fn end(&self) {
        *self.outputs.lock() = Outputs::default();
    }

    /// Returns the last calls, oldest first.
    pub(crate) fn recent_calls(&self) -> Vec<Arc<CallRecord>> {
        self.recent.calls()
    }

    /// Returns what was counted of a server.
    pub(crate) fn tally(&self, server: &str) -> ServerTally {
        self.counts.of(server)
    }

    pub(crate) fn savings(&self, fleet: &Fleet) -> SavingsReport {
        self.savings.report(&fleet.operator().known_catalogs())
    }

    /// Returns the metrics in the text format of Prometheus.
    pub(crate) fn metrics_text(&self, fleet: &Fleet) -> String {
        let saved = self.savings(fleet);
        let mut servers: Vec<(Phase, u64)> = Vec::new();
        for phase in fleet.operator().phases() {
            match servers.iter_mut().find(|(known, _)| *known == phase) {
                Some((_, count)) => *count += 1,
                None => servers.push((phase, 1)),
            }
        }
        let servers = servers.into_iter().map(|(phase, count)| (phase.name(), count)).collect();
        let gauges = Gauges { servers, turns: saved.turns, saved_tokens: saved.tokens };
        prometheus::text_of(&self.metrics.snapshot(), &gauges)
    }

    fn exporter(&self) -> Option<Arc<Exporter>> {
        self.outputs.lock().exporter.clone()
    }
}

async fn run(
    telemetry: Arc<FleetTelemetry>,
    writer: Option<CallLogWriter>,
    exporter: Option<ExporterTask>,
) {
    let writing = async {
        if let Some(writer) = writer {
            writer.run().await;
        }
    };
    let exporting = async {
        if let Some(exporter) = exporter {
            exporter.run(&telemetry.metrics, &telemetry.savings).await;
        }
    };
    tokio::join!(writing, exporting);
}

impl EventSink for FleetTelemetry {
    fn server_woke(&self, server: &str, took: Duration) {
        self.metrics.server_woke(server, took);
        self.counts.woke(server);
    }

    fn host_attached(&self, host: HostId) {
        self.metrics.host_attached();
        self.sessions.lock().insert(host, Instant::now());
    }

    fn host_detached(&self, host: HostId, client: Option<&ClientIdentity>) {
        let began = self.sessions.lock().remove(&host);
        let lasted = began.map(|began| began.elapsed()).unwrap_or_default();
        self.metrics.host_detached(client.map(|client| client.version.as_str()), lasted);
    }

    fn request_ended(&self, request: &EndedRequest, result: Option<&Raw>) {
        self.metrics.request_ended(request);
        self.savings.request_ended(request, result.map(Raw::len));
        if let Some(span) = operation::span_of_request(request)
            && let Some(exporter) = self.exporter()
        {
            exporter.send(span);
        }
    }

    fn call_ended(&self, call: &EndedCall, bodies: Bodies<'_>) {
        self.metrics.call_ended(call);
        self.counts.called(call);
        let record = CallRecord::of(call);
        let record =
            Arc::new(if self.has_contents { record.with_contents(bodies) } else { record });
        if let Some(log) = &self.outputs.lock().log {
            log.write(record.clone());
        }
        self.recent.push(record);
        if let Some(span) = operation::span_of_call(call)
            && let Some(exporter) = self.exporter()
        {
            exporter.send(span);
        }
    }

    fn trace(&self, meta: Option<&Raw>) -> Option<Arc<Span>> {
        self.exporter()?.span(meta.and_then(TraceContext::of_meta))
    }
}
