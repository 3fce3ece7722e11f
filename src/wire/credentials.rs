//! What a server is shown so that it answers. How that is come by is nobody's business here.

use std::{collections::BTreeMap, fmt, pin::Pin};

use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE},
};

pub type CredentialFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What requests to one server are authorized with.
pub trait Credentials: Send + Sync + 'static {
    /// What the next request shows; `None` where the server has not asked for anything so far.
    ///
    /// # Errors
    /// Where it has, and there is nothing that it would accept.
    fn authorization(&self)
    -> CredentialFuture<'_, Result<Option<Authorization>, CredentialError>>;

    /// The server has refused a request that showed this. `Ok`: the request is worth one more try.
    ///
    /// # Errors
    /// Where there is nothing else to show.
    fn refused<'a>(
        &'a self,
        shown: Option<&'a Authorization>,
        challenge: &'a Challenge,
    ) -> CredentialFuture<'a, Result<(), CredentialError>>;

    /// The server has taken a request that showed this.
    fn accepted(&self, shown: &Authorization);

    /// Resolves when somebody has logged in elsewhere.
    fn changed(&self) -> CredentialFuture<'_, ()>;
}

/// The value of `Authorization`, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorization(HeaderValue);

impl Authorization {
    /// `None` for a token that cannot be sent.
    pub fn bearer(token: &str) -> Option<Self> {
        if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
            return None;
        }
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization(…)")
    }
}

/// Headers of the config, whose names and values it has checked. They are not shown either.
pub fn sensitive_headers(written: &BTreeMap<String, String>) -> HeaderMap {
    let headers = written.iter().map(|(name, value)| {
        let mut value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name).ok()?, value))
    });
    headers.flatten().collect()
}

/// Why a request was refused (RFC 6750 section 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// 401 or 403.
    pub status: u16,
    /// The value of `WWW-Authenticate`; empty where there was none.
    pub www_authenticate: String,
}

impl Challenge {
    /// What a server says that wants another authorization. Many answer 403 for other reasons.
    pub fn of(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
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

/// Why there is nothing to show to a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// Somebody has to log in. `why`: what has become of the login that there was. `command`: how.
    #[error("it wants a login{why}: run `{command}` in a terminal, then try again")]
    LoginRequired { why: String, command: String },
    /// It may work later.
    #[error("its login cannot be used now: {0}")]
    Unavailable(String),
    /// Nobody can log in by hand here.
    #[error("it cannot be used: {0}")]
    Refused(String),
}
