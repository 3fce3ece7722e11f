//! Counters and histograms of one fleet. Names are those of the semantic conventions of
//! OpenTelemetry for MCP (`mcp.*`), and of dormouse (`dormouse.*`) for what they do not have.

use std::{collections::BTreeMap, time::Duration};

use super::{
    metric_names::{Attribute, Attributes, BUCKETS},
    operation,
};
use crate::{
    base::Lock,
    proxy::{EndedCall, EndedRequest},
};

/// Maximum number of attribute sets of one metric. Further ones are counted together, since names
/// come from outside.
const MAX_SERIES: usize = 2000;
/// The value of an attribute whose own values are too many (OpenTelemetry, `error.type`).
const OTHER: &str = "_OTHER";
/// Everything that is counted.
#[derive(Default)]
pub(super) struct Metrics(Lock<MetricSet>);

/// All metrics at one moment.
#[derive(Clone, Default)]
pub(super) struct MetricSet {
    /// `mcp.server.operation.duration`: requests of hosts.
    pub(super) requests: Series<Histogram>,
    /// `mcp.client.operation.duration`: requests to servers.
    pub(super) calls: Series<Histogram>,
    /// `mcp.server.session.duration`: sessions of hosts.
    pub(super) sessions: Series<Histogram>,
    /// `dormouse.server.wake.duration`: connections to servers.
    pub(super) wakes: Series<Histogram>,
    /// `dormouse.store.operation.duration`: operations on the shared store.
    pub(super) store: Series<Histogram>,
    /// `dormouse.call.size`: bytes of parameters and of results.
    pub(super) bytes: Series<u64>,
    /// `dormouse.result.withheld`: bytes of results that were cut.
    pub(super) withheld: Series<u64>,
    /// The hosts that are attached.
    pub(super) hosts: u64,
}

/// The values of one metric, by their attributes in the order of [`Attribute`].
#[derive(Clone, Default)]
pub(super) struct Series<T>(pub(super) BTreeMap<Attributes, T>);

/// A histogram of durations.
#[derive(Clone, Default)]
pub(super) struct Histogram {
    /// The number of durations in each bucket; the last one has no bound.
    pub(super) counts: [u64; BUCKETS.len() + 1],
    /// In seconds.
    pub(super) sum: f64,
}

impl Metrics {
    pub(super) fn snapshot(&self) -> MetricSet {
        self.0.lock().clone()
    }

    pub(super) fn request_ended(&self, request: &EndedRequest) {
        self.0.lock().requests.of(operation::of_request(request)).add(request.time.took);
    }

    pub(super) fn call_ended(&self, call: &EndedCall) {
        let mut metrics = self.0.lock();
        for (direction, bytes) in [("in", call.size.params), ("out", call.size.answer)] {
            let direction = (Attribute::Direction, direction.into());
            let server = (Attribute::Server, call.server.clone().into());
            *metrics.bytes.of(vec![direction, server]) += bytes as u64;
        }
        if let Some(sent) = &call.sent {
            metrics.calls.of(operation::of_call(call, sent)).add(sent.time.took);
        }
    }

    pub(super) fn server_woke(&self, server: &str, took: Duration) {
        let attributes = vec![(Attribute::Server, server.to_owned().into())];
        self.0.lock().wakes.of(attributes).add(took);
    }

    pub(super) fn store_used(&self, took: Duration, is_answered: bool) {
        let failure = (!is_answered).then(|| (Attribute::ErrorType, "unreachable".into()));
        self.0.lock().store.of(failure.into_iter().collect()).add(took);
    }

    pub(super) fn result_cut(&self, server: &str, withheld: usize) {
        let attributes = vec![(Attribute::Server, server.to_owned().into())];
        *self.0.lock().withheld.of(attributes) += withheld as u64;
    }

    pub(super) fn host_attached(&self) {
        self.0.lock().hosts += 1;
    }

    pub(super) fn host_detached(&self, version: Option<&str>, lasted: Duration) {
        let mut metrics = self.0.lock();
        metrics.hosts = metrics.hosts.saturating_sub(1);
        let version = version.map(|version| (Attribute::Protocol, version.to_owned().into()));
        metrics.sessions.of(version.into_iter().collect()).add(lasted);
    }
}

impl<T: Default> Series<T> {
    /// Returns the value with these attributes.
    fn of(&mut self, mut attributes: Attributes) -> &mut T {
        attributes.sort();
        if self.0.len() >= MAX_SERIES && !self.0.contains_key(&attributes) {
            for (_, value) in &mut attributes {
                *value = OTHER.into();
            }
        }
        self.0.entry(attributes).or_default()
    }
}

impl Histogram {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BUCKETS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS.len());
        self.counts[bucket] += 1;
        self.sum += seconds;
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_the_bucket_with_the_next_higher_bound() {
        let mut histogram = Histogram::default();
        for seconds in [0.005, 0.01, 0.011, 1000.0] {
            histogram.add(Duration::from_secs_f64(seconds));
        }
        assert_eq!((histogram.counts[0], histogram.counts[1]), (2, 1));
        assert_eq!(histogram.counts[BUCKETS.len()], 1);
        assert_eq!(histogram.count(), 4);
    }

    #[test]
    fn names_without_end_become_one_series() {
        let mut series = Series::<u64>::default();
        for number in 0..MAX_SERIES * 2 {
            *series.of(vec![(Attribute::Tool, number.to_string().into())]) += 1;
        }
        assert_eq!(series.0.len(), MAX_SERIES + 1);
        let other = vec![(Attribute::Tool, OTHER.into())];
        assert_eq!(series.0[&other], MAX_SERIES as u64);
    }
}
