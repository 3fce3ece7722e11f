//! The JSON of OTLP (opentelemetry-proto 1: trace/v1, metrics/v1; OTLP, JSON Protobuf encoding):
//! 64-bit integers are texts, and ids are hexadecimal.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::telemetry::{
    metric_names::{
        Attributes, BUCKETS, BYTES, CALLS, HOSTS, MetricName, REQUESTS, SAVED, SESSIONS, STORE,
        TURNS, WAKES, WITHHELD,
    },
    metrics::{Histogram, MetricSet, Series},
    span_record::{SpanKind, SpanRecord},
};

/// The name of what has recorded the data.
const SCOPE: &str = "dormouse";
/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;
/// `STATUS_CODE_ERROR`.
const STATUS_ERROR: u8 = 2;

/// Returns a request with these spans.
pub(super) fn of_spans(resource: &Value, spans: &[SpanRecord]) -> Value {
    let spans: Vec<Value> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": resource,
        "scopeSpans": [{"scope": scope(), "spans": spans}],
    }]})
}

/// The time that metrics count, with the turns of models in it and the tokens saved at them.
pub(super) struct MetricContext {
    pub(super) since: SystemTime,
    pub(super) turns: u64,
    pub(super) saved_tokens: u64,
}

/// Returns a request with these metrics.
pub(super) fn of_metrics(resource: &Value, metrics: &MetricSet, context: &MetricContext) -> Value {
    let period = || {
        json!({
            "startTimeUnixNano": nanoseconds(context.since),
            "timeUnixNano": nanoseconds(SystemTime::now()),
        })
    };
    let histogram = |metric: &MetricName, series: &Series<Histogram>| {
        let points = series.0.iter().map(|(attributes, histogram)| {
            let mut point = period();
            point["attributes"] = own_attributes(attributes);
            point["count"] = json!(histogram.count().to_string());
            point["sum"] = json!(histogram.sum);
            let counts = histogram.counts.iter().map(ToString::to_string);
            point["bucketCounts"] = json!(counts.collect::<Vec<_>>());
            point["explicitBounds"] = json!(BUCKETS);
            point
        });
        let points: Vec<Value> = points.collect();
        let data = json!({"aggregationTemporality": CUMULATIVE, "dataPoints": points});
        (!points.is_empty()).then(|| introduced(metric, "histogram", &data))
    };
    let number = |attributes: Value, value: u64| {
        let mut point = period();
        point["attributes"] = attributes;
        point["asInt"] = json!(value.to_string());
        point
    };
    let sum = |metric: &MetricName, points: Vec<Value>| {
        let data = json!({
            "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points,
        });
        (!points.is_empty()).then(|| introduced(metric, "sum", &data))
    };
    let bytes = |series: &Series<u64>| {
        let all = series.0.iter();
        all.map(|(attributes, bytes)| number(own_attributes(attributes), *bytes)).collect()
    };
    let hosts = json!({"dataPoints": [number(json!([]), metrics.hosts)]});
    let all = [
        histogram(&REQUESTS, &metrics.requests),
        histogram(&CALLS, &metrics.calls),
        histogram(&SESSIONS, &metrics.sessions),
        histogram(&WAKES, &metrics.wakes),
        histogram(&STORE, &metrics.store),
        sum(&BYTES, bytes(&metrics.bytes)),
        sum(&WITHHELD, bytes(&metrics.withheld)),
        sum(&TURNS, vec![number(json!([]), context.turns)]),
        sum(&SAVED, vec![number(json!([]), context.saved_tokens)]),
        Some(introduced(&HOSTS, "gauge", &hosts)),
    ];
    let all: Vec<Value> = all.into_iter().flatten().collect();
    json!({"resourceMetrics": [{
        "resource": resource,
        "scopeMetrics": [{"scope": scope(), "metrics": all}],
    }]})
}

/// Returns attributes in the form of OTLP.
pub(super) fn attributes<'a>(all: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let attribute = |(name, value)| json!({"key": name, "value": {"stringValue": value}});
    all.into_iter().map(attribute).collect()
}

fn own_attributes(all: &Attributes) -> Value {
    attributes(all.iter().map(|(attribute, value)| (attribute.name(), value.as_ref())))
}

fn introduced(metric: &MetricName, kind: &str, data: &Value) -> Value {
    json!({
        "name": metric.name, "unit": metric.unit, "description": metric.meaning, kind: data,
    })
}

fn scope() -> Value {
    json!({"name": SCOPE, "version": env!("CARGO_PKG_VERSION")})
}

fn span(record: &SpanRecord) -> Value {
    let context = &record.span.context;
    let mut span = json!({
        "traceId": format!("{:032x}", context.trace),
        "spanId": format!("{:016x}", context.span),
        "name": record.name,
        "kind": match record.kind {
            SpanKind::Server => 2,
            SpanKind::Client => 3,
        },
        "startTimeUnixNano": nanoseconds(record.time.began),
        "endTimeUnixNano": nanoseconds(record.time.began + record.time.took),
        "attributes": own_attributes(&record.attributes),
    });
    if let Some(parent) = record.span.parent {
        span["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    if let Some(state) = &context.state {
        span["traceState"] = json!(state);
    }
    if record.is_error {
        span["status"] = json!({"code": STATUS_ERROR});
    }
    span
}

fn nanoseconds(at: SystemTime) -> String {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}
