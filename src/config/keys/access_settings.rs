//! The keys about who may send requests over HTTP.

use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use url::Url;

use super::{
    KeyGroup, KeyProblem,
    key_class::{AT_NEXT_START, AT_ONCE},
};
use crate::config::key_path::Step;

/// The tokens that open dormouse over HTTP, and the origins of requests.
#[derive(Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AccessSettings {
    /// Bearer tokens for hosts over HTTP, of which each must send one; only with `--http`. `${VAR}`
    /// is expanded.
    #[schemars(extend("x-class" = AT_ONCE.secret().expanded()))]
    pub auth_tokens: Vec<String>,
    /// Bearer tokens that open `/api/v1`, through which servers and their tools are changed;
    /// without any, it is closed. They are for operators; hosts do not need them.
    #[schemars(extend("x-class" = AT_NEXT_START.secret().expanded()))]
    pub api_tokens: Vec<String>,
    /// Names that HTTP requests may have in `Host`, in addition to the loopback names and the
    /// listening address.
    #[schemars(extend("x-class" = AT_NEXT_START))]
    pub allowed_hosts: Vec<String>,
    /// Web origins that may send HTTP requests, in addition to loopback ones, such as
    /// `https://example.com`.
    #[schemars(extend("x-class" = AT_NEXT_START))]
    pub allowed_origins: Vec<String>,
    /// Addresses or networks of reverse proxies in front of dormouse, such as `127.0.0.1` or
    /// `10.0.0.0/8`. Their `Forwarded` and `X-Forwarded-For` headers tell whether a user is at this
    /// machine and can be asked to log in.
    #[serde(deserialize_with = "networks")]
    #[schemars(with = "Vec<String>", extend("x-class" = AT_ONCE))]
    pub trusted_proxies: Vec<IpNet>,
}

impl std::fmt::Debug for AccessSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.fmt_without_secrets("AccessSettings", f)
    }
}

impl KeyGroup for AccessSettings {
    fn problems(&self, written: &Value) -> Vec<KeyProblem> {
        let key = |name: &str| Step::Key(name.to_owned());
        let mut problems = Vec::new();
        for (name, tokens) in [("authTokens", &self.auth_tokens), ("apiTokens", &self.api_tokens)] {
            // Values of a wrong type were reported, and are replaced by empty ones.
            let is_valid = written[name] == Value::from(tokens.as_slice());
            if is_valid && tokens.iter().any(|token| token.trim().is_empty()) {
                problems.push((vec![key(name)], "a token must not be blank".to_owned()));
            }
        }
        for (name, is_valid, what) in [
            ("allowedHosts", is_host as fn(&str) -> bool, HOST),
            ("allowedOrigins", is_origin, ORIGIN),
            ("trustedProxies", |text| network(text).is_some(), NETWORK),
        ] {
            for (at, text) in written[name].as_array().into_iter().flatten().enumerate() {
                let invalid = text.as_str().filter(|text| !is_valid(text));
                let path = || vec![key(name), Step::Index(at)];
                problems.extend(invalid.and_then(|text| expected(text, path(), what)));
            }
        }
        problems
    }
}

/// Returns the problem of a text; `None` if it refers to an undefined variable, which is reported
/// elsewhere.
pub(super) fn expected(text: &str, path: Vec<Step>, what: &str) -> Option<KeyProblem> {
    (!text.contains("${")).then(|| (path, format!("expected {what}")))
}

/// Reads networks; a text that is none is a problem of the group.
fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    Ok(texts.iter().filter_map(|text| network(text)).collect())
}

const ORIGIN: &str = "an origin such as \"https://example.com\", or \"*\"";
const HOST: &str = "a host such as \"example.com\" or \"example.com:8443\", or \"*\"";
const NETWORK: &str = "an address or a network, such as \"10.0.0.0/8\"";

fn is_host(text: &str) -> bool {
    text == "*" || Url::parse(&format!("http://{text}/")).is_ok_and(|url| url.path() == "/")
}

fn is_origin(text: &str) -> bool {
    let is_bare = |url: &Url| matches!(url.path(), "" | "/") && url.query().is_none();
    text == "*" || Url::parse(text).is_ok_and(|url| url.has_host() && is_bare(&url))
}

fn network(text: &str) -> Option<IpNet> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_origins_and_networks_are_validated() {
        for (text, expected) in [
            ("*", true),
            ("https://example.com", true),
            ("https://example.com:8443/", true),
            ("chrome-extension://abc", true),
            ("example.com", false),
            ("https://example.com/path", false),
        ] {
            assert_eq!(is_origin(text), expected, "{text}");
        }
        for (text, expected) in [
            ("example.com", true),
            ("example.com:8443", true),
            ("[::1]:80", true),
            ("*", true),
            ("http://x/", false),
            ("x/y", false),
            ("", false),
        ] {
            assert_eq!(is_host(text), expected, "{text}");
        }
        assert_eq!(network("127.0.0.1").unwrap().to_string(), "127.0.0.1/32");
        assert!(network("10.0.0.0/8").is_some() && network("10.0.0.0/33").is_none());
    }
}
