//! The metrics in the text format of Prometheus (version 0.0.4).

use super::{
    metric_names::{
        Attribute, AttributeValue, Attributes, BUCKETS, BYTES, CALLS, HOSTS, MetricName, REQUESTS,
        SAVED, SERVERS, SESSIONS, STORE, TURNS, WAKES, WITHHELD,
    },
    metrics::{Histogram, MetricSet, Series},
};

/// The type of the text, for the `Content-Type` header.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The present values that are not counted.
pub(super) struct Gauges {
    /// The number of servers in each state.
    pub(super) servers: Vec<(&'static str, u64)>,
    pub(super) turns: u64,
    pub(super) saved_tokens: u64,
}

/// Writes all metrics.
pub(super) fn text_of(metrics: &MetricSet, gauges: &Gauges) -> String {
    let mut text = String::new();
    histogram(&mut text, &REQUESTS, &metrics.requests);
    histogram(&mut text, &CALLS, &metrics.calls);
    histogram(&mut text, &SESSIONS, &metrics.sessions);
    histogram(&mut text, &WAKES, &metrics.wakes);
    histogram(&mut text, &STORE, &metrics.store);
    for (metric, series) in [(&BYTES, &metrics.bytes), (&WITHHELD, &metrics.withheld)] {
        let name = begin(&mut text, metric, "_bytes_total", "counter");
        for (attributes, bytes) in &series.0 {
            line(&mut text, &name, &labels(attributes), &bytes.to_string());
        }
    }
    let name = begin(&mut text, &HOSTS, "", "gauge");
    line(&mut text, &name, "", &metrics.hosts.to_string());
    let name = begin(&mut text, &SERVERS, "", "gauge");
    for (state, count) in &gauges.servers {
        let attributes = vec![(Attribute::ServerState, (*state).into())];
        line(&mut text, &name, &labels(&attributes), &count.to_string());
    }
    let name = begin(&mut text, &TURNS, "_total", "counter");
    line(&mut text, &name, "", &gauges.turns.to_string());
    let name = begin(&mut text, &SAVED, "_total", "counter");
    line(&mut text, &name, "", &gauges.saved_tokens.to_string());
    text
}

fn histogram(text: &mut String, metric: &MetricName, series: &Series<Histogram>) {
    let name = begin(text, metric, "_seconds", "histogram");
    for (attributes, histogram) in &series.0 {
        let labels = labels(attributes);
        let mut below = 0;
        let bounds = BUCKETS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(histogram.counts) {
            below += count;
            let separator = if labels.is_empty() { "" } else { "," };
            let labels = format!("{labels}{separator}le=\"{bound}\"");
            line(text, &format!("{name}_bucket"), &labels, &below.to_string());
        }
        line(text, &format!("{name}_sum"), &labels, &histogram.sum.to_string());
        line(text, &format!("{name}_count"), &labels, &histogram.count().to_string());
    }
}

/// Writes the introduction of a metric. Returns its name in this format.
fn begin(text: &mut String, metric: &MetricName, suffix: &str, kind: &str) -> String {
    let name = metric.name.replace('.', "_") + suffix;
    text.push_str(&format!("# HELP {name} {}\n# TYPE {name} {kind}\n", metric.meaning));
    name
}

fn line(text: &mut String, name: &str, labels: &str, value: &str) {
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    text.push_str(&format!("{name}{labels} {value}\n"));
}

fn labels(attributes: &Attributes) -> String {
    let label = |(attribute, value): &(Attribute, AttributeValue)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{}=\"{value}\"", attribute.name().replace('.', "_"))
    };
    attributes.iter().map(label).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::telemetry::metrics::Metrics;

    #[test]
    fn every_metric_is_introduced_and_labels_are_escaped() {
        let metrics = Metrics::default();
        metrics.host_attached();
        metrics.host_attached();
        metrics.host_detached(Some("2025-11-25"), Duration::from_secs(3));
        metrics.result_cut("a", 31_000_000);
        metrics.server_woke("a \"b\"\n\\", Duration::from_millis(15));
        let gauges = Gauges { servers: vec![("awake", 1)], turns: 2, saved_tokens: 1000 };
        insta::assert_snapshot!(text_of(&metrics.snapshot(), &gauges));
    }
}
