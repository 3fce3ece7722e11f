//! The URLs that entries of servers may have.

use url::{Host, Url};

/// Returns the URL of a remote server, if the text is one.
pub(super) fn remote_url(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// Returns whether a client can be redirected to a URL (RFC 8252 sections 7.3 and 8.3). Port 0
/// stands for a free port.
pub(super) fn is_redirect(url: &Url) -> bool {
    url.scheme() == "http" && is_loopback(url) && url.port().is_some() && url.fragment().is_none()
}

/// Returns whether secrets may be sent to a URL: it is https, or on this machine.
pub(crate) fn is_secure(url: &Url) -> bool {
    url.has_host() && (url.scheme() == "https" || url.scheme() == "http" && is_loopback(url))
}

/// Returns whether a URL leads to this machine, by its name alone.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
