//! Durations as people write them: `"90s"`, `"5m"`, `"1h 30m"`, or a number of seconds.

use std::{borrow::Cow, fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

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
    fn rejects_invalid_durations() {
        for written in
            [json!("soon"), json!(-1), json!(true), json!("-3s"), json!(1e18), json!("99999y")]
        {
            assert!(serde_json::from_value::<DurationText>(written.clone()).is_err(), "{written}");
        }
    }
}
