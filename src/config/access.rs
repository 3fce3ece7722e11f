//! Settings for hosts that connect over HTTP: their values and the checks of them.

use std::net::IpAddr;

use ipnet::IpNet;
use url::Url;

use super::{HttpSettings, file::File, key_path::Step};

pub(super) fn http_settings(file: &File) -> HttpSettings {
    let default = HttpSettings::default();
    HttpSettings {
        listen: file.listen.clone(),
        auth_tokens: file.auth_tokens.clone(),
        api_tokens: file.api_tokens.clone(),
        allowed_hosts: file.allowed_hosts.clone(),
        allowed_origins: file.allowed_origins.clone(),
        trusted_proxies: file.trusted_proxies.iter().filter_map(|text| network(text)).collect(),
        session_timeout: file.session_timeout.map_or(default.session_timeout, |timeout| timeout.0),
    }
}

/// Returns the key paths and messages of invalid values. Variables are expanded already; undefined
/// ones are reported elsewhere.
pub(super) fn problems(file: &File) -> Vec<(Vec<Step>, String)> {
    let listen =
        file.listen.iter().map(|text| (vec![key("listen")], text, is_address(text), ADDRESS));
    let origins = file.allowed_origins.iter().enumerate();
    let origins = origins.map(|(at, text)| {
        (vec![key("allowedOrigins"), Step::Index(at)], text, is_origin(text), ORIGIN)
    });
    let proxies = file.trusted_proxies.iter().enumerate();
    let proxies = proxies.map(|(at, text)| {
        (vec![key("trustedProxies"), Step::Index(at)], text, network(text).is_some(), NETWORK)
    });
    let hosts = file.allowed_hosts.iter().enumerate();
    let hosts = hosts
        .map(|(at, text)| (vec![key("allowedHosts"), Step::Index(at)], text, is_host(text), HOST));
    let invalid = listen
        .chain(hosts)
        .chain(origins)
        .chain(proxies)
        .filter(|(_, text, is_valid, _)| !is_valid && !text.contains("${"));
    invalid.map(|(path, _, _, expected)| (path, format!("expected {expected}"))).collect()
}

const ADDRESS: &str = "an address: \"HOST:PORT\", or \":PORT\" for loopback";
const ORIGIN: &str = "an origin such as \"https://example.com\", or \"*\"";
const HOST: &str = "a host such as \"example.com\" or \"example.com:8443\", or \"*\"";
const NETWORK: &str = "an address or a network, such as \"10.0.0.0/8\"";

fn key(name: &str) -> Step {
    Step::Key(name.to_owned())
}

/// Returns whether `--http` would accept the text. A name is resolved at the start.
fn is_address(text: &str) -> bool {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let is_v6 = host.contains(':');
    port.parse::<u16>().is_ok() && (!is_v6 || host.starts_with('[') && host.ends_with(']'))
}

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
    fn addresses_origins_and_networks_are_validated() {
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
