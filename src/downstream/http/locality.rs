//! Determines whether the user of a host that connects over HTTP is at this machine. Only that user
//! can use a login page whose callback is on this machine.

use std::net::IpAddr;

use axum::http::{
    HeaderMap, Version,
    header::{FORWARDED, HOST},
};
use ipnet::IpNet;
use url::Url;

use crate::config::is_loopback;

/// Headers by which proxies reveal that they forward a request (RFC 7239, RFC 9110 section 7.6.3,
/// and common use).
const PROXY_HEADERS: [&str; 5] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// Maximum number of proxies that a request may name.
const MAX_HOPS: usize = 32;

/// Returns whether a request that arrived on a loopback address was sent from this machine.
/// `trusted`: proxies whose headers are believed; if there are any, a request without such a header
/// is not local.
pub(super) fn is_from_this_machine(
    headers: &HeaderMap,
    version: Version,
    trusted: &[IpNet],
) -> bool {
    if trusted.is_empty() {
        let is_proxied = PROXY_HEADERS.iter().any(|name| headers.contains_key(*name));
        // nginx adds no such header by default, but forwards requests in HTTP/1.0.
        return !is_proxied && version > Version::HTTP_10 && names_loopback(headers);
    }
    let told = [hops(headers, X_FORWARDED_FOR, address), hops(headers, FORWARDED.as_str(), of_for)];
    let mut told = told.iter().filter(|hops| !hops.is_empty()).peekable();
    told.peek().is_some() && told.all(|hops| is_local_client(hops, trusted))
}

/// Returns whether the last address that is not a trusted proxy is a loopback address. The sender
/// may have invented all addresses before it.
fn is_local_client(hops: &[Option<IpAddr>], trusted: &[IpNet]) -> bool {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
    let mut nearest_first = hops.iter().rev().take(MAX_HOPS);
    let client = nearest_first.find(|hop| hop.as_ref().is_none_or(|hop| !is_trusted(hop)));
    match client {
        Some(client) => client.is_some_and(|client| client.is_loopback()),
        // All addresses are trusted proxies, so that the first is a program on its own machine.
        None => hops.len() <= MAX_HOPS && hops[0].is_some_and(|first| first.is_loopback()),
    }
}

/// Returns the addresses in all headers of this name, the client's first; `None` for an entry that
/// is not an address.
fn hops(headers: &HeaderMap, name: &str, read: fn(&str) -> Option<IpAddr>) -> Vec<Option<IpAddr>> {
    let lines = headers.get_all(name).iter();
    let texts = lines.map(|line| line.to_str().unwrap_or_default());
    texts.flat_map(|text| text.split(',')).map(|hop| read(hop.trim())).collect()
}

/// Parses an address with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches('"');
    let with_port = || text.parse().ok().map(|socket: std::net::SocketAddr| socket.ip());
    text.trim_matches(['[', ']']).parse().ok().or_else(with_port)
}

/// Parses the `for` of an element of `Forwarded` (RFC 7239 section 5.2).
fn of_for(element: &str) -> Option<IpAddr> {
    let mut pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.eq_ignore_ascii_case("for"))?;
    address(value)
}

fn names_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    Url::parse(&format!("http://{host}/")).is_ok_and(|asked| is_loopback(&asked))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn is_here(headers: &[(&'static str, &'static str)], trusted: &[&str]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|net| net.parse().unwrap()).collect();
        is_from_this_machine(&map, Version::HTTP_11, &trusted)
    }

    #[test]
    fn without_trusted_proxies_only_a_direct_request_is_local() {
        let direct = ("host", "127.0.0.1:8080");
        assert!(is_here(&[direct], &[]));
        assert!(!is_here(&[("host", "dormouse.example")], &[]));
        for name in PROXY_HEADERS {
            assert!(!is_here(&[direct, (name, "127.0.0.1")], &[]), "{name}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("127.0.0.1"));
        assert!(!is_from_this_machine(&headers, Version::HTTP_10, &[]));
    }

    #[test]
    fn nearest_untrusted_address_decides_locality() {
        let proxies = ["127.0.0.1/32", "10.0.0.0/8"];
        let local = "127.0.0.2";
        for (name, value, expected) in [
            (X_FORWARDED_FOR, "127.0.0.2", true),
            (X_FORWARDED_FOR, "127.0.0.2:4711, 10.1.2.3", true),
            (X_FORWARDED_FOR, "127.0.0.2, 192.0.2.1, 10.1.2.3", false),
            (X_FORWARDED_FOR, "192.0.2.1", false),
            (X_FORWARDED_FOR, "127.0.0.1", true),
            (X_FORWARDED_FOR, "10.1.2.3", false),
            (X_FORWARDED_FOR, "unknown", false),
            (X_FORWARDED_FOR, "[::1]:80", true),
            ("forwarded", "for=127.0.0.2;proto=http", true),
            ("forwarded", "by=10.0.0.1;For=\"[::1]:80\", for=10.0.0.2", true),
            ("forwarded", "for=192.0.2.1", false),
            ("forwarded", "proto=http", false),
            ("via", "1.1 proxy", false),
        ] {
            assert_eq!(is_here(&[(name, value)], &proxies), expected, "{name}: {value}");
        }
        assert!(!is_here(&[("host", "127.0.0.1")], &proxies), "no header names its origin");
        let differing = [(X_FORWARDED_FOR, local), ("forwarded", "for=192.0.2.1")];
        assert!(!is_here(&differing, &proxies));
    }
}
