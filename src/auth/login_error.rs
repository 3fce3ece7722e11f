//! Errors of logins and of token requests.

use oauth2::{ErrorResponseType, RequestTokenError, StandardErrorResponse};
use rmcp::transport::auth::AuthError;
use url::form_urlencoded;

use super::{guarded_client::GuardedClientError, login_store_error::LoginStoreError};
use crate::base::is_invisible;

/// Reason for which a login fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    #[error("server {0:?} has no URL: a login does not apply")]
    NotRemote(String),
    #[error(
        "the entry of server {0:?} has a header \"Authorization\", which is used instead of a \
            login; remove it to log in"
    )]
    HasHeader(String),
    #[error("server {0:?} uses \"grant\": \"client_credentials\": no user has to log in")]
    ForMachines(String),
    #[error(
        "people cannot log in before the service is started with publicUrl, and with a clientId \
            for each of the issuers"
    )]
    NoPublicAddress,
    #[error("too many people are logging in; try again in some minutes")]
    TooMany,
    #[error("server {0:?} does not require a login")]
    NotWanted(String),
    #[error("cannot contact the server: {0}")]
    Unreachable(String),
    #[error("cannot discover the authorization server: {0}")]
    Discovery(String),
    #[error(
        "the authorization server does not support client registration: register a client there, \
            and add its \"clientId\" to \"oauth\""
    )]
    NoRegistration,
    #[error("the authorization server refused to register a client: {0}")]
    Registration(String),
    #[error("the authorization server does not support the device flow; log in without --device")]
    NoDeviceFlow,
    #[error("dormouse does not open the authorization URL: {0}")]
    BadAddress(String),
    #[error("cannot listen on {address} for the browser's redirect: {cause}{}", hint(cause))]
    Callback { address: String, cause: std::io::Error },
    #[error("the authorization server refused the login: {0}")]
    Refused(String),
    #[error("the response does not belong to this login, or was used before")]
    Foreign,
    #[error("the response comes from an authorization server other than {0}")]
    WrongIssuer(String),
    #[error("the authorization server issued no token: {0}")]
    TokenExchange(String),
    #[error(
        "the authorization server no longer knows dormouse ({0}); run the command again, and \
            dormouse registers again"
    )]
    ForgottenClient(String),
    #[error(
        "server {server:?} has changed its authorization server from {before} to {now}; the \
         client's secret is not sent there. If the change is right, run \
         `dormouse logout {server}`, or name it as \"authServer\""
    )]
    OtherAuthority { server: String, before: String, now: String },
    #[error("the token request failed: {0}")]
    Token(TokenError),
    #[error(transparent)]
    Client(#[from] super::ClientError),
    #[error("cannot store the login: {0}")]
    Store(LoginStoreError),
    #[error(transparent)]
    GuardedClient(GuardedClientError),
}

fn hint(cause: &std::io::Error) -> &'static str {
    match cause.kind() {
        std::io::ErrorKind::AddrInUse => "; another login may be in progress",
        _ => "",
    }
}

// Not derived, because `#[from]` makes the inner error a source as well, which a report of the
// error chain would repeat.
impl From<TokenError> for LoginError {
    fn from(error: TokenError) -> Self {
        Self::Token(error)
    }
}

impl From<LoginStoreError> for LoginError {
    fn from(error: LoginStoreError) -> Self {
        Self::Store(error)
    }
}

impl From<GuardedClientError> for LoginError {
    fn from(error: GuardedClientError) -> Self {
        Self::GuardedClient(error)
    }
}

/// Reason for which a token request failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum TokenError {
    /// The refresh token or the code is not valid any more.
    #[error("the code or token is no longer valid ({0})")]
    Rejected(String),
    /// The authorization server does not know the client, or not any more.
    #[error("unknown client, or wrong secret ({0})")]
    UnknownClient(String),
    /// The authorization server refused for another reason.
    #[error("the authorization server refused to issue a token: {0}")]
    Refused(String),
    /// dormouse cannot use the token.
    #[error("the authorization server issued an invalid token: {0}")]
    InvalidToken(String),
    /// dormouse cannot prove that it is the client.
    #[error("cannot authenticate the client: {0}")]
    NoProof(String),
    /// A failure that may be temporary.
    #[error("{0}")]
    Failed(String),
    /// The answer is not from an authorization server; it may be from a proxy in front of it.
    #[error("the token response is not valid")]
    NotAToken,
}

impl TokenError {
    /// Reads the error of a token request. `secrets`: the secrets that were sent and that the
    /// answer may repeat.
    pub(super) fn of<T: ErrorResponseType + std::fmt::Display + 'static>(
        error: &RequestTokenError<GuardedClientError, StandardErrorResponse<T>>,
        secrets: &[&str],
    ) -> Self {
        match error {
            RequestTokenError::ServerResponse(response) => {
                let code = code(response.error());
                let about = response.error_description().map(|about| format!(": {about}"));
                let said = scrubbed(&(code.clone() + &about.unwrap_or_default()), secrets);
                match code.as_str() {
                    // The device code has expired (RFC 8628 section 3.5).
                    "expired_token" => Self::Refused("the code was not entered in time".to_owned()),
                    "invalid_grant" => Self::Rejected(said),
                    "invalid_client" | "unauthorized_client" => Self::UnknownClient(said),
                    "temporarily_unavailable" | "server_error" | "slow_down" => Self::Failed(said),
                    _ => Self::Refused(said),
                }
            }
            RequestTokenError::Request(error) => Self::Failed(error.to_string()),
            // Some authorization servers report an error with a success status.
            RequestTokenError::Parse(_, body) => {
                error_in(body).map_or(Self::NotAToken, Self::Refused)
            }
            RequestTokenError::Other(_) => Self::NotAToken,
        }
    }
}

/// Reads the error code from a body. The rest is not shown, because it may contain a token.
fn error_in(body: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(scrubbed(answer["error"].as_str()?, &[]))
}

/// Returns the error code as it was sent.
fn code(error: &impl ErrorResponseType) -> String {
    let code = serde_json::to_value(error).ok();
    code.and_then(|code| Some(code.as_str()?.to_owned())).unwrap_or_default()
}

/// Puts the text of a server on one short line, without secrets and invisible characters.
pub(super) fn scrubbed(said: &str, secrets: &[&str]) -> String {
    const MAX_CHARS: usize = 300;
    let secrets = secrets.iter().filter(|secret| secret.len() > 3);
    // Invisible characters go first, since they could hide a secret from the comparison.
    let said = secrets.fold(on_one_line(said), |said, secret| {
        // Secrets are sent in forms, and an answer may repeat them in that encoding.
        let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let forms = [on_one_line(secret), encoded];
        forms.iter().filter(|it| !it.is_empty()).fold(said, |said, it| said.replace(it, "…"))
    });
    said.chars().take(MAX_CHARS).collect()
}

/// Returns the visible words of a text on one line.
fn on_one_line(text: &str) -> String {
    let is_shown = |c: &char| c.is_whitespace() || !is_invisible(*c);
    let shown: String = text.chars().filter(is_shown).collect();
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Builds the error for a failed discovery from rmcp's error and its causes.
pub(super) fn discovery_error(error: &AuthError) -> LoginError {
    let mut said = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        let more = deeper.to_string();
        if !said.contains(&more) {
            said = format!("{said}: {more}");
        }
        cause = deeper.source();
    }
    LoginError::Discovery(scrubbed(&said, &[]))
}
