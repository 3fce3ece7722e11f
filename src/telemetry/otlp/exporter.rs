//! The task that sends spans and metrics to a collector.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use serde_json::Value;
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, MissedTickBehavior, interval_at},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    ExportSettings,
    export_settings::{Sampler, Target},
    payload::{self, MetricContext},
};
use crate::{
    base::with_causes,
    protocol::TraceContext,
    proxy::Span,
    telemetry::{
        metrics::{MetricSet, Metrics},
        savings::Savings,
        span_record::SpanRecord,
    },
    wire::http_client_builder,
};

/// Attempts for one export that the collector refuses for now.
const MAX_ATTEMPTS: u32 = 3;
/// Minimum time between two exports of full batches. At higher rates spans are dropped, so that
/// calls stay quick.
const MIN_SPAN_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time for what is left when the fleet ends.
const LAST_EXPORT_TIMEOUT: Duration = Duration::from_secs(1);
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);

/// The sender of spans to the exporting task.
pub(in crate::telemetry) struct Exporter {
    spans: Option<SpanQueue>,
    /// Ends the task when the fleet ends.
    _end: DropGuard,
}

struct SpanQueue {
    sender: mpsc::Sender<SpanRecord>,
    sampler: Sampler,
    max_batch: usize,
    /// Wakes the task when so many spans wait.
    has_batch: Arc<Notify>,
    dropped: Arc<AtomicU64>,
}

/// The task that exports, with what it reads.
pub(in crate::telemetry) struct ExporterTask {
    settings: ExportSettings,
    resource: Value,
    spans: mpsc::Receiver<SpanRecord>,
    has_batch: Arc<Notify>,
    dropped: Arc<AtomicU64>,
    end: CancellationToken,
    since: SystemTime,
}

impl Exporter {
    pub(in crate::telemetry) fn new(settings: ExportSettings) -> (Self, ExporterTask) {
        let (sender, spans) = mpsc::channel(settings.max_waiting_spans);
        let end = CancellationToken::new();
        let dropped = Arc::<AtomicU64>::default();
        let has_batch = Arc::<Notify>::default();
        let queue = SpanQueue {
            sender,
            sampler: settings.sampler,
            max_batch: settings.max_batch,
            has_batch: has_batch.clone(),
            dropped: dropped.clone(),
        };
        let spans_wanted = settings.traces.is_some();
        let exporter =
            Self { spans: spans_wanted.then_some(queue), _end: end.clone().drop_guard() };
        // Several fleets of one process are told apart by it.
        let instance = format!("{:032x}", fastrand::u128(..));
        let resource = settings.resource.iter();
        let resource = resource.map(|(name, value)| (name.as_str(), value.as_str()));
        let resource = resource.chain([("service.instance.id", instance.as_str())]);
        let resource = serde_json::json!({"attributes": payload::attributes(resource)});
        let since = SystemTime::now();
        (exporter, ExporterTask { settings, resource, spans, has_batch, dropped, end, since })
    }

    /// Returns the span of a request. `parent`: the span that the host has named. Returns `None`
    /// if the trace is not recorded; then what the host has named passes unchanged.
    pub(in crate::telemetry) fn span(&self, parent: Option<TraceContext>) -> Option<Arc<Span>> {
        let queue = self.spans.as_ref()?;
        let decision = parent.as_ref().map(|parent| parent.is_sampled);
        let span = match parent {
            Some(parent) => Span { parent: Some(parent.span), context: parent.child() },
            None => Span { parent: None, context: TraceContext::root(true) },
        };
        let is_sampled = queue.sampler.is_sampled(span.context.trace, decision);
        is_sampled.then(|| {
            let context = TraceContext { is_sampled, ..span.context };
            Arc::new(Span { context, ..span })
        })
    }

    pub(in crate::telemetry) fn send(&self, span: SpanRecord) {
        let Some(queue) = &self.spans else { return };
        if queue.sender.try_send(span).is_err() {
            queue.dropped.fetch_add(1, Ordering::Relaxed);
        }
        if queue.sender.max_capacity() - queue.sender.capacity() >= queue.max_batch {
            queue.has_batch.notify_one();
        }
    }
}

impl ExporterTask {
    /// Exports until the [`Exporter`] is dropped, and then what is left, within
    /// [`LAST_EXPORT_TIMEOUT`].
    pub(in crate::telemetry) async fn run(self, metrics: &Metrics, savings: &Savings) {
        let end = self.end.clone();
        let too_late = async {
            end.cancelled().await;
            tokio::time::sleep(LAST_EXPORT_TIMEOUT).await;
        };
        tokio::select! {
            () = self.export(metrics, savings) => {}
            () = too_late => tracing::warn!("some telemetry was not exported in time"),
        }
    }

    async fn export(mut self, metrics: &Metrics, savings: &Savings) {
        let Ok(client) = http_client_builder().build() else {
            tracing::error!("cannot export telemetry: there is no HTTP client");
            return;
        };
        let sender = Sender { client, is_failing: false };
        let ticks = |interval: Duration| {
            let mut ticks = interval_at(Instant::now() + interval, interval);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let floor = Duration::from_millis(10);
        let mut metric_ticks = ticks(self.settings.metric_interval.max(floor));
        let mut span_ticks = ticks(self.settings.span_interval.max(floor));
        let (mut for_spans, mut for_metrics) = (sender.clone(), sender);
        let has_batch = self.has_batch.clone();
        let mut earliest = Instant::now();
        loop {
            tokio::select! {
                _ = span_ticks.tick() => self.export_spans(&mut for_spans).await,
                () = async {
                    tokio::time::sleep_until(earliest).await;
                    has_batch.notified().await;
                } => {
                    self.export_spans(&mut for_spans).await;
                    earliest = Instant::now() + MIN_SPAN_INTERVAL;
                }
                _ = metric_ticks.tick() => {
                    self.export_metrics(&mut for_metrics, metrics.snapshot(), savings).await;
                }
                () = self.end.cancelled() => break,
            }
        }
        self.export_spans(&mut for_spans).await;
        self.export_metrics(&mut for_metrics, metrics.snapshot(), savings).await;
    }

    async fn export_spans(&mut self, sender: &mut Sender) {
        let Some(target) = self.settings.traces.clone() else { return };
        loop {
            let mut batch = Vec::new();
            while batch.len() < self.settings.max_batch
                && let Ok(span) = self.spans.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                break;
            }
            sender.send(&target, payload::of_spans(&self.resource, &batch)).await;
        }
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "spans were dropped, since the queue was full");
        }
    }

    async fn export_metrics(&self, sender: &mut Sender, metrics: MetricSet, savings: &Savings) {
        let Some(target) = &self.settings.metrics else { return };
        let context = MetricContext {
            since: self.since,
            turns: savings.turns(),
            saved_tokens: savings.saved_tokens(),
        };
        sender.send(target, payload::of_metrics(&self.resource, &metrics, &context)).await;
    }
}

/// Sends to one collector.
#[derive(Clone)]
struct Sender {
    client: reqwest::Client,
    /// A collector that cannot be reached is reported once.
    is_failing: bool,
}

impl Sender {
    async fn send(&mut self, target: &Target, body: Value) {
        let body = body.to_string();
        let mut delay = FIRST_RETRY_DELAY;
        for attempt in 1..=MAX_ATTEMPTS {
            let problem = match self.post(target, body.clone()).await {
                Ok(()) => {
                    if std::mem::take(&mut self.is_failing) {
                        tracing::info!("the collector of telemetry can be reached again");
                    }
                    return;
                }
                Err(problem) => problem,
            };
            if !problem.is_transient || attempt == MAX_ATTEMPTS {
                if !std::mem::replace(&mut self.is_failing, true) {
                    let collector = target.url.host_str().unwrap_or_default();
                    tracing::warn!(collector, problem = problem.what, "cannot export telemetry");
                }
                return;
            }
            tokio::time::sleep(delay).await;
            delay *= 2;
        }
    }

    async fn post(&self, target: &Target, body: String) -> Result<(), ExportProblem> {
        let mut request = self
            .client
            .post(target.url.clone())
            .timeout(target.timeout)
            .header("content-type", "application/json")
            .body(body);
        for (name, value) in &target.headers {
            request = request.header(name, value);
        }
        // The URL may have a password.
        let answer = request.send().await.map_err(|error| ExportProblem {
            what: with_causes(&error.without_url()),
            is_transient: true,
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        // OTLP/HTTP, failures: these can be tried again.
        let is_transient = matches!(status.as_u16(), 429 | 502..=504);
        Err(ExportProblem { what: format!("HTTP status {status}"), is_transient })
    }
}

struct ExportProblem {
    what: String,
    is_transient: bool,
}
