//! All consumers of the events of one fleet.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::{
    CallLogDirectory, CallRecord, ExportSettings, SavingsReport, TurnRecord,
    call_log::{CallLog, CallLogWriter, LogEntry},
    client_name::LastClientName,
    metrics::Metrics,
    operation,
    otlp::{Exporter, ExporterTask},
    pending::{Ended, Pending},
    prometheus::{self, Gauges},
    savings::Savings,
    server_counts::{ServerCounts, ServerTally},
    span_record::SpanRecord,
};
use crate::{
    base::{Lock, Recent},
    config::CallLogging,
    protocol::{ClientIdentity, TraceContext},
    proxy::{Bodies, EndedCall, EndedRequest, EventSink, Fleet, HostId, Span},
    upstream::Phase,
    wire::Raw,
};

/// Time for which ends of requests are gathered before the folds take them.
const FOLD_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of calls in memory.
const MAX_RECENT_CALLS: usize = 500;
/// Maximum size of the arguments and results that are kept with them, in bytes.
const MAX_RECENT_BYTES: usize = 8 * 1024 * 1024;

/// The parameters of a fleet's telemetry.
#[derive(Default)]
pub(crate) struct TelemetryOptions {
    /// The fleet whose definitions models do not have to read; none if no model is served.
    pub fleet: Weak<Fleet>,
    pub logging: CallLogging,
    /// The place of the log of calls; `None` if there is none.
    pub log: Option<CallLogDirectory>,
    /// `None` if nothing is exported.
    pub export: Option<ExportSettings>,
}

/// The telemetry of one fleet.
pub(crate) struct FleetTelemetry {
    has_contents: bool,
    recent: Recent<Arc<CallRecord>>,
    metrics: Metrics,
    savings: Savings,
    counts: ServerCounts,
    pending: Pending,
    /// Locked while the folds take what is pending, so that ends stay in their order.
    last_client: Lock<LastClientName>,
    ended: CancellationToken,
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
    pub(crate) fn new(parts: TelemetryOptions) -> (Arc<Self>, impl Future<Output = ()> + Send) {
        let place = parts.log.filter(|_| parts.logging != CallLogging::Off);
        let (log, writer) = place.map(CallLogDirectory::open).unzip();
        let (exporter, task) = parts.export.map(Exporter::new).unzip();
        let telemetry = Arc::new(Self {
            has_contents: parts.logging == CallLogging::Contents,
            recent: Recent::new(MAX_RECENT_CALLS, MAX_RECENT_BYTES),
            metrics: Metrics::default(),
            savings: Savings::of(parts.fleet),
            counts: ServerCounts::default(),
            pending: Pending::default(),
            last_client: Lock::default(),
            ended: CancellationToken::new(),
            sessions: Lock::default(),
            outputs: Lock::new(Outputs { log, exporter: exporter.map(Arc::new) }),
        });
        let working = run(telemetry.clone(), writer, task);
        (telemetry, working)
    }

    /// Counts an operation on the store that several machines share.
    pub(crate) fn store_used(&self, took: Duration, is_answered: bool) {
        self.metrics.store_used(took, is_answered);
    }

    /// Has the task end when it has written everything.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    /// Returns the last calls, oldest first.
    pub(crate) fn recent_calls(&self) -> Vec<Arc<CallRecord>> {
        self.fold();
        self.recent.items()
    }

    /// Returns what was counted of a server.
    pub(crate) fn tally(&self, server: &str) -> ServerTally {
        self.fold();
        self.counts.of(server)
    }

    pub(crate) fn savings(&self) -> SavingsReport {
        self.fold();
        self.savings.report()
    }

    /// Returns the metrics in the text format of Prometheus.
    pub(crate) fn metrics_text(&self, fleet: &Fleet) -> String {
        let saved = self.savings();
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

    fn note(&self, ended: Ended) {
        if self.pending.note(ended) {
            self.fold();
        }
    }

    /// Has the folds take what is pending.
    fn fold(&self) {
        let mut last_client = self.last_client.lock();
        for ended in self.pending.take() {
            match ended {
                Ended::Request { request, result_bytes } => {
                    let client = last_client.of(&request.client);
                    self.fold_request(&request, client, result_bytes);
                }
                Ended::Call { call, bodies } => {
                    let client = last_client.of(&call.origin.client);
                    self.fold_call(&call, client, bodies);
                }
            }
        }
    }

    fn fold_request(
        &self,
        request: &EndedRequest,
        client: Option<&str>,
        result_bytes: Option<usize>,
    ) {
        self.metrics.request_ended(request);
        let name = client.unwrap_or_default();
        let saved = self.savings.request_ended(request, name, result_bytes);
        if let Some(saved) = saved.filter(|saved| *saved > 0) {
            let turn = TurnRecord::new(request.time.began, client.map(str::to_owned), saved);
            self.log(LogEntry::Turn(turn));
        }
        self.export(operation::span_of_request(request));
    }

    fn fold_call(&self, call: &EndedCall, client: Option<&str>, bodies: Option<Bodies>) {
        self.metrics.call_ended(call);
        self.counts.called(call);
        let record = CallRecord::of(call, client.map(str::to_owned));
        let record = match bodies {
            Some(bodies) => record.with_contents(bodies),
            None => record,
        };
        let record = Arc::new(record);
        self.log(LogEntry::Call(record.clone()));
        let bytes = record.content_bytes();
        self.recent.push(record, bytes);
        self.export(operation::span_of_call(call));
    }

    fn log(&self, entry: LogEntry) {
        if let Some(log) = &self.outputs.lock().log {
            log.write(entry);
        }
    }

    fn export(&self, span: Option<SpanRecord>) {
        if let Some(span) = span
            && let Some(exporter) = self.exporter()
        {
            exporter.send(span);
        }
    }
}

async fn run(
    telemetry: Arc<FleetTelemetry>,
    writer: Option<CallLogWriter>,
    exporter: Option<ExporterTask>,
) {
    let folding = async {
        while telemetry.ended.run_until_cancelled(fold_next(&telemetry)).await.is_some() {}
        telemetry.fold();
        // The writer and the exporter end when they have no sender.
        *telemetry.outputs.lock() = Outputs::default();
    };
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
    tokio::join!(folding, writing, exporting);
}

/// Waits for ends of requests, and for those that follow soon, and has the folds take them.
async fn fold_next(telemetry: &FleetTelemetry) {
    telemetry.pending.wait().await;
    telemetry.savings.learn().await;
    tokio::time::sleep(FOLD_INTERVAL).await;
    telemetry.fold();
}

impl EventSink for FleetTelemetry {
    fn server_woke(&self, server: &str, took: Duration) {
        self.metrics.server_woke(server, took);
        self.counts.woke(server);
    }

    fn result_cut(&self, server: &str, withheld: usize) {
        self.metrics.result_cut(server, withheld);
        self.savings.result_cut(withheld);
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

    fn request_ended(&self, request: EndedRequest, result: Option<&Raw>) {
        self.note(Ended::Request { request, result_bytes: result.map(Raw::len) });
    }

    fn call_ended(&self, call: Arc<EndedCall>, bodies: Bodies) {
        self.note(Ended::Call { call, bodies: self.has_contents.then_some(bodies) });
    }

    fn trace(&self, meta: Option<&Raw>) -> Option<Arc<Span>> {
        self.exporter()?.span(meta.and_then(TraceContext::of_meta))
    }
}
