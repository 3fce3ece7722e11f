//! The laws of this layer for bytes from outside (see `crate::fuzz`).

use std::{net::SocketAddr, sync::LazyLock};

use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Version,
    header::{AUTHORIZATION, HOST, ORIGIN},
};
use ipnet::IpNet;

use super::{
    guard::{Guard, HttpAccess},
    locality::is_from_this_machine,
    paths::PathScope,
    request::accepts,
};
use crate::base::FuzzInput;

const ADDRESS: &str = "192.0.2.7:8080";
const TOKEN: &str = "t-1";

static TRUSTED: LazyLock<Vec<IpNet>> =
    LazyLock::new(|| vec!["10.0.0.0/8".parse().expect("a net"), "::1/128".parse().expect("a net")]);

/// A request is let in only if its headers name this machine and have a token.
///
/// Arguments: the path, then a header in each line.
pub(crate) fn http_headers(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let path = input.text_line();
    let headers = headers(&mut input);
    let address: SocketAddr = ADDRESS.parse().expect("a constant");
    let guard = Guard::new(HttpAccess::default(), address);
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    let is_here = |text: &str| {
        let text = text.to_lowercase();
        // A number may be another form of a loopback address.
        let is_number = text.bytes().any(|byte| byte.is_ascii_digit());
        text.contains("localhost") || text.contains("::") || is_number
    };
    if guard.is_known_host(&headers) {
        let host = text(HOST).expect("a request without a host is refused");
        assert!(is_here(host) || !host.is_ascii() || host.contains('%'), "{host:?} was accepted");
    }
    if guard.is_known_origin(&headers)
        && let Some(origin) = text(ORIGIN)
    {
        assert!(is_here(origin) || origin.contains('%'), "{origin:?} was accepted");
    }
    let own = [("files".to_owned(), vec!["t-2".to_owned()])];
    if guard.admit(&PathScope::of(&path), &headers, &[TOKEN.to_owned()], &own).is_some() {
        let shown = text(AUTHORIZATION).expect("a request without a token is refused");
        assert!(shown.contains(TOKEN) || path.contains("/servers/") && shown.contains("t-2"));
        assert!(!path.starts_with("/api/"), "the API has other tokens");
    }
    let is_forwarded = ["forwarded", "via", "x-forwarded-for"].iter();
    let is_forwarded = is_forwarded.clone().any(|name| headers.contains_key(*name));
    for version in [Version::HTTP_10, Version::HTTP_11] {
        let is_here = is_from_this_machine(&headers, version, &[]);
        assert!(!is_here || !is_forwarded && version == Version::HTTP_11);
        let is_here = is_from_this_machine(&headers, version, &TRUSTED);
        assert!(!is_here || is_forwarded, "a trusted proxy names the client");
    }
    // Any value is accepted here.
    let _ = accepts(&headers);
}

fn headers(input: &mut FuzzInput<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    while !input.rest().is_empty() && headers.len() < 20 {
        let line = input.line();
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            headers.append(name, value);
        }
    }
    headers
}
