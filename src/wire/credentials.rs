//! The authorization of requests to servers, as transports see it. Where tokens come from is the
//! business of `auth`.

use std::{collections::BTreeMap, fmt, pin::Pin};

use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE},
};

pub(crate) type CredentialFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The authorization of the requests to one server.
pub(crate) trait Credentials: Send + Sync + 'static {
    /// Returns the authorization for the next request; `None` if the server has not demanded any
    /// yet.
    ///
    /// # Errors
    /// If the server has demanded authorization and nothing is available that it would accept.
    fn authorization(&self)
    -> CredentialFuture<'_, Result<Option<Authorization>, CredentialError>>;

    /// Handles a request that the server refused although it carried `shown`. Returns `Ok` if the
    /// request is worth another try.
    ///
    /// # Errors
    /// If no other authorization is available.
    fn refused<'a>(
        &'a self,
        shown: Option<&'a Authorization>,
        challenge: &'a Challenge,
    ) -> CredentialFuture<'a, Result<(), CredentialError>>;

    /// Notes that the server has accepted a request with this authorization.
    fn accepted(&self, shown: &Authorization);

    /// Resolves when a user has logged in elsewhere.
    fn changed(&self) -> CredentialFuture<'_, ()>;
}

/// A value of the `Authorization` header, which `Debug` does not print.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Authorization(HeaderValue);

impl Authorization {
    /// Returns `None` for a token that a header cannot hold.
    pub(crate) fn bearer(token: &str) -> Option<Self> {
        if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
            return None;
        }
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization(…)")
    }
}

/// Returns the headers of the config, whose names and values are checked already. `Debug` does not
/// print them.
pub(crate) fn sensitive_headers(written: &BTreeMap<String, String>) -> HeaderMap {
    let headers = written.iter().map(|(name, value)| {
        let mut value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name).ok()?, value))
    });
    headers.flatten().collect()
}

/// A refusal of a request (RFC 6750 section 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The HTTP status, 401 or 403.
    pub status: u16,
    /// The value of `WWW-Authenticate`; empty if the response has none.
    pub www_authenticate: String,
}

impl Challenge {
    /// Returns the challenge of a response that demands another authorization. Many servers answer
    /// 403 for other reasons, which are no challenge.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        let www_authenticate = values.join(", ");
        let is_challenge = match status {
            StatusCode::UNAUTHORIZED => true,
            StatusCode::FORBIDDEN => www_authenticate.contains("insufficient_scope"),
            _ => false,
        };
        is_challenge.then(|| Self { status: status.as_u16(), www_authenticate })
    }
}

/// The reason that no authorization is available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CredentialError {
    /// A user must log in. `why` is the state of the previous login, `remedy` what to do.
    #[error("the server requires a login{why}: {remedy}, then try again")]
    LoginRequired { why: String, remedy: String },
    /// A later try may succeed.
    #[error("cannot use the login now: {0}")]
    Unavailable(String),
    /// The store of logins cannot be used, or may not have the newest state.
    #[error("cannot use the login now: {0}")]
    StoreOutage(String),
    /// No user can log in from here.
    #[error("cannot use the login: {0}")]
    Refused(String),
}
