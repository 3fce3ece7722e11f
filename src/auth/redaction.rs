//! URLs in texts.

use url::Url;

/// Returns a URL without its query, which may contain secrets.
pub(super) fn redacted(url: &Url) -> String {
    if !url.has_host() {
        return format!("{}:…", url.scheme());
    }
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}
