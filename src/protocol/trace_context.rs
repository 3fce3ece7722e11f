//! The context of a trace in `params._meta` (SEP-414; W3C Trace Context, level 1). `baggage` and
//! `tracestate` pass unchanged, since dormouse adds nothing to them.

use std::fmt;

use crate::wire::{Raw, edit};

/// The member of `_meta` with the trace and the span that a request belongs to.
const TRACEPARENT: &str = "traceparent";
/// The member of `_meta` with what other systems have noted about the trace.
const TRACESTATE: &str = "tracestate";
/// Maximum length of `tracestate` that is reported, in bytes (W3C Trace Context, 3.3.1.1).
const MAX_STATE_BYTES: usize = 512;
/// The bit of the flags that says that the trace is recorded.
const SAMPLED: u8 = 1;

/// A span of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub trace: u128,
    pub span: u64,
    pub is_sampled: bool,
    pub state: Option<String>,
}

impl TraceContext {
    /// Makes the first span of a new trace.
    pub(crate) fn root(is_sampled: bool) -> Self {
        // Zero means that there is no trace.
        Self { trace: fastrand::u128(1..), span: fastrand::u64(1..), is_sampled, state: None }
    }

    /// Makes a span of the same trace.
    pub(crate) fn child(&self) -> Self {
        Self { span: fastrand::u64(1..), ..self.clone() }
    }

    /// Reads the span that a request comes from. Returns `None` if it names none, or not in the
    /// form of the standard.
    pub(crate) fn of_meta(meta: &Raw) -> Option<Self> {
        let parent = Self::parse(&edit::get_str(meta, TRACEPARENT)?)?;
        let state = edit::get_str(meta, TRACESTATE).filter(|state| state.len() <= MAX_STATE_BYTES);
        Some(Self { state, ..parent })
    }

    /// Returns the `params` as those of a request that comes from this span.
    pub(crate) fn in_params(&self, params: Option<Raw>) -> Raw {
        let params = params.unwrap_or_else(Raw::empty_object);
        edit::set_within(&params, "_meta", &[(TRACEPARENT, &Raw::encode(&self.to_string()))])
    }

    fn parse(text: &str) -> Option<Self> {
        let is_lower_hex = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
        };
        let mut parts = text.split('-');
        let mut part = |length| parts.next().filter(|it| it.len() == length && is_lower_hex(it));
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        // Version ff is invalid. A later version may have more parts; version 00 has none.
        if version == "ff" || version == "00" && parts.next().is_some() {
            return None;
        }
        let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
        let flags = u8::from_str_radix(flags, 16).ok()?;
        Some(Self { trace, span, is_sampled: flags & SAMPLED != 0, state: None })
    }
}

/// Writes the value of `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(meta: &str) -> Option<TraceContext> {
        TraceContext::of_meta(&Raw::parse(meta.to_owned()).unwrap())
    }

    #[test]
    fn parent_is_read_and_written_as_it_was() {
        let read = of(&format!(r#"{{"traceparent": "{PARENT}", "tracestate": "a=b"}}"#)).unwrap();
        assert_eq!(read.to_string(), PARENT);
        assert_eq!(read.state.as_deref(), Some("a=b"));
        let child = read.child();
        assert_eq!((child.trace, child.is_sampled), (read.trace, true));
        assert_ne!(child.span, read.span);
    }

    #[test]
    fn values_that_break_the_standard_are_no_parent() {
        for value in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(of(&format!(r#"{{"traceparent": "{value}"}}"#)), None, "{value}");
        }
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more";
        assert!(!of(&format!(r#"{{"traceparent": "{later}"}}"#)).unwrap().is_sampled);
    }

    #[test]
    fn other_members_of_meta_stay() {
        let context = of(&format!(r#"{{"traceparent": "{PARENT}"}}"#)).unwrap();
        let params = r#"{"name":"x","_meta":{"traceparent":"old","baggage":"k=v"}}"#;
        let params = context.in_params(Some(Raw::parse(params).unwrap()));
        let expected =
            format!(r#"{{"name":"x","_meta":{{"traceparent":"{PARENT}","baggage":"k=v"}}}}"#);
        assert_eq!(params.to_string(), expected);
        let only = context.in_params(None).to_string();
        assert_eq!(only, format!(r#"{{"_meta":{{"traceparent":"{PARENT}"}}}}"#));
    }
}
