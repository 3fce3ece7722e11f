//! The keys about serving hosts over HTTP.

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{KeyGroup, KeyProblem, access_settings::expected, key_class::AT_NEXT_START};
use crate::config::{
    duration::{self, DurationText},
    key_path::Step,
};

/// The address on which hosts are served over HTTP, and how.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenSettings {
    /// The address on which to serve hosts over HTTP, unless `--http` gives another.
    #[schemars(extend("x-class" = AT_NEXT_START.expanded()))]
    pub listen: Option<String>,
    /// A file with the certificate of this service, and those between it and its root, in PEM:
    /// hosts connect over TLS then. A changed file is read again.
    #[schemars(extend("x-class" = AT_NEXT_START.expanded()))]
    pub certificate: Option<PathBuf>,
    /// The file with the private key of `certificate`, in PEM.
    #[schemars(extend("x-class" = AT_NEXT_START.expanded()))]
    pub certificate_key: Option<PathBuf>,
    /// Threads that serve hosts over HTTP; 0 for as many as there are processors.
    #[schemars(extend("x-class" = AT_NEXT_START))]
    pub threads: u16,
    /// Time in which the requests in progress are answered when dormouse is asked to end.
    #[serde(with = "duration::text")]
    #[schemars(with = "DurationText", extend("x-class" = AT_NEXT_START))]
    pub drain_timeout: Duration,
    /// Time without an open stream or a request after which the HTTP session of a legacy host ends,
    /// and after which what is kept for a modern host is dropped.
    #[serde(with = "duration::text")]
    #[schemars(with = "DurationText", extend("x-class" = AT_NEXT_START))]
    pub session_timeout: Duration,
}

impl Default for ListenSettings {
    fn default() -> Self {
        let (listen, certificate, certificate_key) = Default::default();
        let drain_timeout = Duration::from_secs(6);
        // A host may stay open overnight; its state here is small.
        let session_timeout = Duration::from_hours(24);
        Self { listen, certificate, certificate_key, threads: 1, drain_timeout, session_timeout }
    }
}

impl ListenSettings {
    /// Returns the scheme of the URL at which hosts connect.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.certificate.is_some() { "https" } else { "http" }
    }
}

impl KeyGroup for ListenSettings {
    fn problems(&self, _: &Value) -> Vec<KeyProblem> {
        let key = |name: &str| vec![Step::Key(name.to_owned())];
        let mut problems = Vec::new();
        if let Some(address) = self.listen.as_deref().filter(|text| !is_address(text)) {
            problems.extend(expected(address, key("listen"), ADDRESS));
        }
        let alone = match (&self.certificate, &self.certificate_key) {
            (Some(_), None) => Some(("certificate", "certificateKey")),
            (None, Some(_)) => Some(("certificateKey", "certificate")),
            (None, None) | (Some(_), Some(_)) => None,
        };
        problems.extend(alone.map(|(has, lacks)| (key(has), format!("it needs {lacks} too"))));
        problems
    }
}

const ADDRESS: &str = "an address: \"HOST:PORT\", or \":PORT\" for loopback";

/// Returns whether `--http` would accept the text. A name is resolved at the start.
fn is_address(text: &str) -> bool {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let is_v6 = host.contains(':');
    port.parse::<u16>().is_ok() && (!is_v6 || host.starts_with('[') && host.ends_with(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_validated() {
        for (text, expected) in [
            ("8080", true),
            (":8080", true),
            ("127.0.0.1:0", true),
            ("[::1]:80", true),
            ("localhost:80", true),
            ("::1:80", false),
            ("localhost", false),
            ("127.0.0.1:99999", false),
            ("", false),
        ] {
            assert_eq!(is_address(text), expected, "{text}");
        }
    }

    #[test]
    fn certificate_and_key_belong_together() {
        let problems = |certificate: Option<&str>, key: Option<&str>| {
            let certificate = certificate.map(PathBuf::from);
            let certificate_key = key.map(PathBuf::from);
            let settings =
                ListenSettings { certificate, certificate_key, ..ListenSettings::default() };
            settings.problems(&Value::Null).len()
        };
        assert_eq!((problems(Some("a"), None), problems(None, Some("b"))), (1, 1));
        assert_eq!((problems(None, None), problems(Some("a"), Some("b"))), (0, 0));
    }
}
