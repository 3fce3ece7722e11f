//! The public address of a service, to which browsers return.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

/// The path of the pages at which logins begin. The name of a server follows it.
pub(crate) const LOGIN_PATH: &str = "/login/to";

/// The public address of a service.
#[derive(Clone, Debug)]
pub(crate) struct PublicAddress {
    /// Without a slash at its end.
    url: String,
}

impl PublicAddress {
    /// # Errors
    /// If the text is not a URL.
    pub(crate) fn new(url: &str) -> Result<Self, url::ParseError> {
        let url = url.trim_end_matches('/').to_owned();
        Url::parse(&url)?;
        Ok(Self { url })
    }

    /// Returns the address of a path, which has only characters of a path.
    pub(crate) fn with(&self, path: &str) -> Url {
        Url::parse(&format!("{}{path}", self.url)).expect("a path after a valid address")
    }

    /// Returns the address at which a person logs in to a server.
    pub(crate) fn of_login(&self, server: &str) -> Url {
        let server = utf8_percent_encode(server, NON_ALPHANUMERIC);
        self.with(&format!("{LOGIN_PATH}/{server}"))
    }
}
