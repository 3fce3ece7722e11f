//! The content and the targets of the export: the environment variables of OpenTelemetry
//! (specification 1, configuration: SDK environment variables, OTLP exporter).

use std::{str::FromStr, time::Duration};

use percent_encoding::percent_decode_str;
use url::Url;

/// Limit of the sizes of the queue and of a batch, since they come from a host's environment.
const MAX_SPANS: usize = 1 << 16;

/// The rules for one export.
#[derive(Clone, Debug)]
pub(crate) struct ExportSettings {
    /// `None` if there are no traces.
    pub(super) traces: Option<Target>,
    /// `None` if there are no metrics.
    pub(super) metrics: Option<Target>,
    /// The properties of this process, with `service.name`.
    pub(super) resource: Vec<(String, String)>,
    pub(super) sampler: Sampler,
    /// The time between two exports of metrics.
    pub(super) metric_interval: Duration,
    /// The time between two exports of spans.
    pub(super) span_interval: Duration,
    /// Maximum number of spans that wait. Further spans are dropped.
    pub(super) max_waiting_spans: usize,
    /// Maximum number of spans in one export.
    pub(super) max_batch: usize,
}

/// The receiver of one kind of data.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) headers: Vec<(String, String)>,
    pub(super) timeout: Duration,
}

/// The choice of the traces that are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sampler {
    /// True if the host's choice counts, where it has made one.
    pub(super) follows_parent: bool,
    /// The part of the other traces that is recorded, from 0 to 1.
    pub(super) ratio: f64,
}

impl ExportSettings {
    /// Reads the variables. Returns `None` if nothing is to be exported, and what is wrong with
    /// their values.
    pub(crate) fn of(variable: impl Fn(&str) -> Option<String>) -> (Option<Self>, Vec<String>) {
        let mut reader = Reader { variable: &variable, problems: Vec::new() };
        let settings = reader.settings();
        (settings, reader.problems)
    }
}

struct Reader<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn settings(&mut self) -> Option<ExportSettings> {
        if self.text("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true")) {
            return None;
        }
        let (traces, metrics) = (self.target("TRACES"), self.target("METRICS"));
        if traces.is_none() && metrics.is_none() {
            return None;
        }
        let milliseconds = |default| Duration::from_millis(default);
        Some(ExportSettings {
            traces,
            metrics,
            resource: self.resource(),
            sampler: self.sampler(),
            metric_interval: self
                .number("OTEL_METRIC_EXPORT_INTERVAL")
                .map_or(milliseconds(60_000), milliseconds),
            span_interval: self
                .number("OTEL_BSP_SCHEDULE_DELAY")
                .map_or(milliseconds(5000), milliseconds),
            max_waiting_spans: self
                .number("OTEL_BSP_MAX_QUEUE_SIZE")
                .unwrap_or(2048)
                .clamp(1, MAX_SPANS),
            max_batch: self
                .number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE")
                .unwrap_or(512)
                .clamp(1, MAX_SPANS),
        })
    }

    /// Returns a variable; an empty one counts as unset.
    fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty())
    }

    fn number<T: FromStr>(&mut self, name: &str) -> Option<T> {
        let text = self.text(name)?;
        let number = text.parse().ok();
        if number.is_none() {
            self.problems.push(format!("{name} is not a valid number"));
        }
        number
    }

    /// Returns the variable for one kind of data, or else the one for all.
    fn of_kind(&self, kind: &str, name: &str) -> Option<String> {
        self.text(&format!("OTEL_EXPORTER_OTLP_{kind}_{name}"))
            .or_else(|| self.text(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }

    /// Returns the receiver of one kind of data. Without an endpoint there is none, although the
    /// standard names one: dormouse sends nothing unasked.
    fn target(&mut self, kind: &str) -> Option<Target> {
        if self.text(&format!("OTEL_{kind}_EXPORTER")).is_some_and(|exporter| exporter != "otlp") {
            return None;
        }
        let own = self.text(&format!("OTEL_EXPORTER_OTLP_{kind}_ENDPOINT"));
        let general = self.text("OTEL_EXPORTER_OTLP_ENDPOINT");
        let address = own.or_else(|| {
            let general = general?;
            Some(format!("{}/v1/{}", general.trim_end_matches('/'), kind.to_lowercase()))
        })?;
        if self.of_kind(kind, "PROTOCOL").as_deref() == Some("grpc") {
            self.problems.push(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL: dormouse exports {} over HTTP, not gRPC: set it to \
                    http/json, and the endpoint to the HTTP port (usually 4318)",
                kind.to_lowercase()
            ));
            return None;
        }
        let url = Url::parse(&address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some(url) = url else {
            // The address may have a password.
            self.problems.push(format!(
                "OTEL_EXPORTER_OTLP_ENDPOINT for {} is not an http or https URL",
                kind.to_lowercase()
            ));
            return None;
        };
        let timeout = self.number(&format!("OTEL_EXPORTER_OTLP_{kind}_TIMEOUT"));
        let timeout = timeout.or_else(|| self.number("OTEL_EXPORTER_OTLP_TIMEOUT"));
        Some(Target {
            url,
            headers: self.of_kind(kind, "HEADERS").map_or_else(Vec::new, |text| pairs(&text)),
            timeout: Duration::from_millis(timeout.unwrap_or(10_000)),
        })
    }

    fn resource(&self) -> Vec<(String, String)> {
        let attributes = self.text("OTEL_RESOURCE_ATTRIBUTES");
        let mut attributes = attributes.map_or_else(Vec::new, |text| pairs(&text));
        let is_named = attributes.iter().any(|(name, _)| name == "service.name");
        if let Some(name) = self.text("OTEL_SERVICE_NAME") {
            attributes.retain(|(name, _)| name != "service.name");
            attributes.push(("service.name".to_owned(), name));
        } else if !is_named {
            attributes.push(("service.name".to_owned(), "dormouse".to_owned()));
        }
        attributes.push(("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
        attributes
    }

    fn ratio(&mut self) -> Option<f64> {
        let ratio: f64 = self.number("OTEL_TRACES_SAMPLER_ARG")?;
        let is_ratio = (0.0..=1.0).contains(&ratio);
        if !is_ratio {
            self.problems.push("OTEL_TRACES_SAMPLER_ARG is not between 0 and 1".to_owned());
        }
        is_ratio.then_some(ratio)
    }

    fn sampler(&mut self) -> Sampler {
        let name = self.text("OTEL_TRACES_SAMPLER");
        let name = name.as_deref().unwrap_or("parentbased_always_on");
        let (follows_parent, own) = match name.strip_prefix("parentbased_") {
            Some(own) => (true, own),
            None => (false, name),
        };
        let ratio = match own {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => self.ratio().unwrap_or(1.0),
            _ => {
                self.problems.push("OTEL_TRACES_SAMPLER names an unknown sampler".to_owned());
                return Sampler { follows_parent: true, ratio: 1.0 };
            }
        };
        Sampler { follows_parent, ratio }
    }
}

impl Sampler {
    /// Decides on a trace. `parent`: the decision of the host. The same trace has the same decision
    /// in every program with this ratio.
    pub(super) fn is_sampled(self, trace: u128, parent: Option<bool>) -> bool {
        if let Some(parent) = parent.filter(|_| self.follows_parent) {
            return parent;
        }
        // The last bytes of a trace id are random (W3C Trace Context, level 2).
        let [.., a, b, c, d] = trace.to_be_bytes();
        let position = f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX);
        self.ratio >= 1.0 || position < self.ratio
    }
}

/// Reads `a=1,b=2`, with values in percent encoding (W3C Baggage).
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8_lossy().into_owned();
        Some((name.trim().to_owned(), value))
    };
    text.split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> (Option<ExportSettings>, Vec<String>) {
        ExportSettings::of(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn urls(variables: &[(&str, &str)]) -> [Option<String>; 2] {
        let settings = of(variables).0;
        let url = |target: Option<Target>| target.map(|target| target.url.to_string());
        settings.map_or([None, None], |it| [url(it.traces), url(it.metrics)])
    }

    #[test]
    fn nothing_is_exported_unasked() {
        assert_eq!(urls(&[]), [None, None]);
        assert_eq!(urls(&[("OTEL_SERVICE_NAME", "x")]), [None, None]);
        let off = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_SDK_DISABLED", "true")];
        assert_eq!(urls(&off), [None, None]);
    }

    #[test]
    fn endpoints_for_all_and_for_one_kind_are_told_apart() {
        let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        let [traces, metrics] = urls(&[general]);
        assert_eq!(traces.as_deref(), Some("http://c:4318/v1/traces"));
        assert_eq!(metrics.as_deref(), Some("http://c:4318/v1/metrics"));
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/x");
        assert_eq!(urls(&[general, own])[0].as_deref(), Some("http://t/x"));
        assert_eq!(urls(&[own]), [Some("http://t/x".to_owned()), None]);
        assert_eq!(urls(&[general, ("OTEL_TRACES_EXPORTER", "none")])[0], None);
    }

    #[test]
    fn values_that_cannot_be_used_are_named_without_their_secrets() {
        for (variables, problem) in [
            ([("OTEL_EXPORTER_OTLP_ENDPOINT", "secret"), ("A", "")], "ENDPOINT"),
            (
                [
                    ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
                    ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
                ],
                "PROTOCOL",
            ),
            (
                [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_TRACES_SAMPLER", "secret")],
                "SAMPLER",
            ),
            (
                [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_BSP_MAX_QUEUE_SIZE", "-1")],
                "OTEL_BSP_MAX_QUEUE_SIZE",
            ),
            (
                [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "1s")],
                "OTEL_EXPORTER_OTLP_TIMEOUT",
            ),
        ] {
            let problems = of(&variables).1.join(" ");
            assert!(problems.contains(problem) && !problems.contains("secret"), "{problems}");
        }
    }

    #[test]
    fn ratio_is_between_zero_and_one() {
        for text in ["NaN", "-1", "7", "half"] {
            let (settings, problems) = of(&[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
                ("OTEL_TRACES_SAMPLER", "traceidratio"),
                ("OTEL_TRACES_SAMPLER_ARG", text),
            ]);
            assert!(problems.join(" ").contains("OTEL_TRACES_SAMPLER_ARG"), "{text}");
            assert_eq!(settings.unwrap().sampler.ratio.to_string(), "1");
        }
    }

    #[test]
    fn sizes_are_bounded() {
        let huge = usize::MAX.to_string();
        let (settings, _) = of(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", &huge),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0"),
        ]);
        let settings = settings.unwrap();
        assert_eq!((settings.max_waiting_spans, settings.max_batch), (MAX_SPANS, 1));
    }

    #[test]
    fn headers_and_resource_are_read() {
        let (settings, problems) = of(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x, b=2"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=a,service.name=b"),
        ]);
        let settings = settings.unwrap();
        assert!(problems.is_empty());
        let header = ("authorization".to_owned(), "Bearer x".to_owned());
        assert_eq!(settings.traces.unwrap().headers[0], header);
        assert!(settings.resource.contains(&("service.name".to_owned(), "b".to_owned())));
    }

    #[test]
    fn sampler_follows_the_host_or_its_ratio() {
        let parent = Sampler { follows_parent: true, ratio: 0.0 };
        assert!(parent.is_sampled(7, Some(true)) && !parent.is_sampled(7, None));
        let own = Sampler { follows_parent: false, ratio: 0.25 };
        let sampled = (0..4000).filter(|_| own.is_sampled(fastrand::u128(..), Some(true))).count();
        assert!((700..1300).contains(&sampled), "{sampled}");
    }
}
