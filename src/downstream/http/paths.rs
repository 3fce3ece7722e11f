//! The paths over HTTP that the router, the guard and the limit of connections share: those of
//! health checks, and what a path gives access to.

use std::borrow::Cow;

/// The paths that tell whether the process runs, and whether it can serve hosts. The names with an
/// underscore are those of mcp-proxy.
pub(super) const LIVENESS_CHECKS: [&str; 2] = ["/healthz", "/_healthz"];
pub(super) const READINESS_CHECKS: [&str; 2] = ["/readyz", "/_readyz"];

/// First segments, in addition to those of health checks, that are never a server's name.
const OWN_SEGMENTS: [&str; 7] = ["api", "metrics", "mcp", "sse", "messages", "ui", "login"];

pub(super) fn is_health_check(path: &str) -> bool {
    LIVENESS_CHECKS.contains(&path) || READINESS_CHECKS.contains(&path)
}

/// Returns whether the first segment of a path is one of dormouse's own.
pub(super) fn is_own_segment(segment: &str) -> bool {
    OWN_SEGMENTS.contains(&segment) || is_health_check(&format!("/{segment}"))
}

/// The part of dormouse that a path gives access to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PathScope<'a> {
    /// The control API, and the metrics.
    Api,
    /// The page in a browser, which checks by itself who may see it.
    Page,
    /// The endpoint of the server with this name.
    Server(Cow<'a, str>),
    /// An endpoint of all servers.
    AllServers,
}

impl<'a> PathScope<'a> {
    pub(super) fn of(path: &'a str) -> Self {
        if path.starts_with("/api/") || path == "/metrics" {
            return Self::Api;
        }
        if path == "/ui" || path.starts_with("/ui/") {
            return Self::Page;
        }
        let Some(rest) = path.strip_prefix("/servers/") else { return Self::AllServers };
        let segment = rest.split('/').next().unwrap_or_default();
        Self::Server(percent_encoding::percent_decode_str(segment).decode_utf8_lossy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_of_a_path_is_percent_decoded() {
        assert_eq!(PathScope::of("/servers/a%20b/mcp"), PathScope::Server("a b".into()));
        assert_eq!(PathScope::of("/servers/a"), PathScope::Server("a".into()));
        assert_eq!(PathScope::of("/mcp"), PathScope::AllServers);
        assert_eq!(PathScope::of("/api/v1/servers/a"), PathScope::Api);
        assert_eq!(PathScope::of("/metrics"), PathScope::Api);
        assert_eq!(PathScope::of("/ui/api/overview"), PathScope::Page);
    }
}
