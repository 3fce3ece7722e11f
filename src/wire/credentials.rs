//! What a server is shown so that it answers. How that is come by is nobody's business here.

use std::{fmt, pin::Pin};

use reqwest::header::HeaderValue;

pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What requests to one server are authorized with.
pub trait Credentials: Send + Sync + 'static {
    /// What the next request shows; `None` where the server has not asked for anything so far.
    ///
    /// # Errors
    /// Where it has, and there is nothing that it would accept.
    fn authorization(&self) -> Pending<'_, Result<Option<Authorization>, CredentialError>>;

    /// The server has refused a request that showed this. `Ok`: the request is worth one more try.
    ///
    /// # Errors
    /// Where there is nothing else to show.
    fn refused<'a>(
        &'a self,
        shown: Option<&'a Authorization>,
        challenge: &'a Challenge,
    ) -> Pending<'a, Result<(), CredentialError>>;

    /// The server has refused what it was shown, and then what it was shown in the place of that.
    fn refused_again(&self, shown: Option<&Authorization>) -> CredentialError;

    /// Resolves when somebody has logged in, or out, elsewhere.
    fn changed(&self) -> Pending<'_, ()>;
}

/// The value of `Authorization`, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorization(HeaderValue);

impl Authorization {
    /// `None` for a token that cannot be sent.
    pub fn bearer(token: &str) -> Option<Self> {
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

/// Why a request was refused (RFC 6750 section 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// 401 or 403.
    pub status: u16,
    /// The value of `WWW-Authenticate`; empty where there was none.
    pub www_authenticate: String,
}

/// Why there is nothing to show to a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// Somebody has to log in. `why`: what has become of the login that there was. `command`: how.
    #[error("it wants a login{why}: run `{command}` in a terminal, then try again")]
    LoginRequired { why: String, command: String },
    /// It may work later.
    #[error("its login cannot be renewed now: {0}")]
    Unavailable(String),
    /// Nobody can log in by hand here.
    #[error("it gives no token: {0}")]
    Refused(String),
}
