//! Durations as people write them: `"90s"`, `"5m"`, `"1h 30m"`, or a number of seconds.

use std::{borrow::Cow, fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DurationText(pub(super) Duration);

/// Maximum duration. A longer one is a mistake, and near the limit of timers.
const MAX_DURATION: Duration = Duration::from_hours(87600);

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }
}

struct DurationVisitor;

impl de::Visitor<'_> for DurationVisitor {
    type Value = DurationText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"90s\" or \"5m\", or a number of seconds")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        if let Ok(seconds) = text.trim().parse::<f64>() {
            return self.visit_f64(seconds);
        }
        let duration = humantime::parse_duration(text)
            .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))?;
        bounded(duration)
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Self::Value, E> {
        bounded(Duration::from_secs(seconds))
    }

    fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Self::Value, E> {
        let seconds = u64::try_from(seconds)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(seconds), &self))?;
        self.visit_u64(seconds)
    }

    fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<Self::Value, E> {
        let duration = Duration::try_from_secs_f64(seconds)
            .map_err(|_| E::invalid_value(de::Unexpected::Float(seconds), &self))?;
        bounded(duration)
    }
}

fn bounded<E: de::Error>(duration: Duration) -> Result<DurationText, E> {
    if duration > MAX_DURATION {
        return Err(E::custom("longer than ten years"));
    }
    Ok(DurationText(duration))
}

/// Parses a duration of a config.
///
/// # Errors
/// A sentence, if the text is not a duration.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    use de::Visitor as _;
    let read: Result<_, de::value::Error> = DurationVisitor.visit_str(text);
    read.map(|duration| duration.0).map_err(|error| error.to_string())
}

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for DurationText {
    /// Writes one number with the largest unit that divides the duration, such as `24h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let dividing = UNITS.iter().find(|(_, unit)| nanos.is_multiple_of(unit.as_nanos()));
        let (name, unit) = dividing.unwrap_or(&NANOSECOND);
        write!(f, "{}{name}", nanos / unit.as_nanos())
    }
}

const NANOSECOND: (&str, Duration) = ("ns", Duration::from_nanos(1));
const UNITS: [(&str, Duration); 5] = [
    ("h", Duration::from_hours(1)),
    ("m", Duration::from_mins(1)),
    ("s", Duration::from_secs(1)),
    ("ms", Duration::from_millis(1)),
    ("us", Duration::from_micros(1)),
];

/// For `serde(with)`: a duration of a config.
pub(super) mod text {
    use super::{Deserialize, Deserializer, Duration, DurationText, Serialize, Serializer};

    pub(in crate::config) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        DurationText(*duration).serialize(serializer)
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        DurationText::deserialize(deserializer).map(|duration| duration.0)
    }
}

/// For `serde(with)`: a duration of a config, of which 0 stands for never.
pub(super) mod or_never {
    use super::{Deserializer, Duration, Serializer, text};

    #[expect(clippy::ref_option, reason = "the signature is that of serde")]
    pub(in crate::config) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        text::serialize(&duration.unwrap_or_default(), serializer)
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        text::deserialize(deserializer).map(|duration| Some(duration).filter(|it| !it.is_zero()))
    }
}

impl JsonSchema for DurationText {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration such as \"90s\", \"5m\" or \"250ms\", or a number of \
                seconds.",
            "anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parses_texts_and_seconds() {
        for (written, millis) in [
            (json!("90s"), 90_000),
            (json!("5m"), 300_000),
            (json!("1h 30m"), 5_400_000),
            (json!("250ms"), 250),
            (json!("7"), 7_000),
            (json!(0), 0),
            (json!(1.5), 1_500),
        ] {
            let read: DurationText = serde_json::from_value(written).unwrap();
            assert_eq!(read.0, Duration::from_millis(millis));
        }
    }

    #[test]
    fn is_written_as_it_is_read() {
        for text in ["24h", "5m", "90s", "250ms", "3us", "1ns", "0h"] {
            let read: DurationText = serde_json::from_value(json!(text)).unwrap();
            assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn rejects_invalid_durations() {
        for written in
            [json!("soon"), json!(-1), json!(true), json!("-3s"), json!(1e18), json!("99999y")]
        {
            assert!(serde_json::from_value::<DurationText>(written.clone()).is_err(), "{written}");
        }
    }
}
