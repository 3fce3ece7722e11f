//! Why there is no token.

use oauth2::{ErrorResponseType, RequestTokenError, StandardErrorResponse};
use rmcp::transport::auth::AuthError;
use url::form_urlencoded;

use super::{guarded_client::GuardedClientError, store::StoreError};

/// Why a login does not come about.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("server {0:?} is no server behind a URL: there is nothing to log in to")]
    NotRemote(String),
    #[error(
        "the entry of server {0:?} has a header \"Authorization\": that is what it is shown; take it out to log in"
    )]
    HasHeader(String),
    #[error(
        "server {0:?} is for the machine alone (\"grant\": \"client_credentials\"): nobody has to log in"
    )]
    ForMachines(String),
    #[error("server {0:?} answers without a login")]
    NotWanted(String),
    #[error("the server cannot be asked: {0}")]
    Unreachable(String),
    #[error("it cannot be found out who gives tokens: {0}")]
    Discovery(String),
    #[error(
        "the authorization server registers no clients: have one registered there, and put its \"clientId\" into \"oauth\""
    )]
    NoRegistration,
    #[error("the authorization server does not register a client: {0}")]
    Registration(String),
    #[error(
        "the authorization server offers no device flow; without --device there is another way"
    )]
    NoDeviceFlow,
    #[error("the address at which to log in is refused: {0}")]
    BadAddress(String),
    #[error("cannot listen on {address} for the browser to come back: {cause}{}", hint(cause))]
    Callback { address: String, cause: std::io::Error },
    #[error("the authorization server has refused: {0}")]
    Refused(String),
    #[error("what came back is not from this login, or has been used before")]
    Foreign,
    #[error("another authorization server answers than the one that was asked, {0}")]
    WrongIssuer(String),
    #[error("the authorization server gave no token: {0}")]
    TokenExchange(String),
    #[error(
        "the authorization server does not know dormouse any more ({0}); say it again, and dormouse registers itself anew"
    )]
    ForgottenClient(String),
    #[error(
        "server {server:?} names another authorization server than before: {now}, where it was {before}; the client's secret is not sent there. If that is right, say `dormouse logout {server}`, or name it as \"authServer\""
    )]
    OtherAuthority { server: String, before: String, now: String },
    #[error("no token: {0}")]
    Token(TokenError),
    #[error(transparent)]
    Client(#[from] super::ClientError),
    #[error("the login cannot be kept: {0}")]
    Store(StoreError),
    #[error(transparent)]
    GuardedClient(GuardedClientError),
}

fn hint(cause: &std::io::Error) -> &'static str {
    match cause.kind() {
        std::io::ErrorKind::AddrInUse => "; another login may be waiting there",
        _ => "",
    }
}

// What they say is part of what it says, and is not to be said a second time as its cause.
impl From<TokenError> for LoginError {
    fn from(error: TokenError) -> Self {
        Self::Token(error)
    }
}

impl From<StoreError> for LoginError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<GuardedClientError> for LoginError {
    fn from(error: GuardedClientError) -> Self {
        Self::GuardedClient(error)
    }
}

/// Why a request for a token failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TokenError {
    /// The refresh token, or the code, is not good any more.
    #[error("what it was shown is not valid any more ({0})")]
    Rejected(String),
    /// The client is not one, or not any more.
    #[error("it does not know the client, or not with this secret ({0})")]
    UnknownClient(String),
    /// It has refused for another reason.
    #[error("the authorization server refuses: {0}")]
    Refused(String),
    /// It may work later.
    #[error("{0}")]
    Failed(String),
    /// Whoever has answered is no authorization server: something before it, perhaps.
    #[error("its answer is no token")]
    NotAToken,
}

impl TokenError {
    /// `secrets`: what it was sent, which it may repeat.
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
                    // RFC 8628 section 3.5.
                    "expired_token" => Self::Refused("nobody has typed the code in".to_owned()),
                    "invalid_grant" => Self::Rejected(said),
                    "invalid_client" | "unauthorized_client" => Self::UnknownClient(said),
                    "temporarily_unavailable" | "server_error" | "slow_down" => Self::Failed(said),
                    _ => Self::Refused(said),
                }
            }
            RequestTokenError::Request(error) => Self::Failed(error.to_string()),
            // Some say so in an answer that looks like a success.
            RequestTokenError::Parse(_, body) => {
                error_in(body).map_or(Self::NotAToken, Self::Refused)
            }
            RequestTokenError::Other(_) => Self::NotAToken,
        }
    }
}

/// What it sent may be anything, a token even: of that nothing is shown but the code of an error.
fn error_in(body: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(scrubbed(answer["error"].as_str()?, &[]))
}

/// The code of an error, as it came.
fn code(error: &impl ErrorResponseType) -> String {
    let code = serde_json::to_value(error).ok();
    code.and_then(|code| Some(code.as_str()?.to_owned())).unwrap_or_default()
}

/// What somebody else said, in one short line, and without what is nobody's business.
pub(super) fn scrubbed(said: &str, secrets: &[&str]) -> String {
    const MAX_CHARS: usize = 300;
    let secrets = secrets.iter().filter(|secret| secret.len() > 3);
    let said = secrets.fold(said.to_owned(), |said, secret| {
        // They are sent in forms, and may come back as they were sent.
        let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        said.replace(secret, "…").replace(&encoded, "…")
    });
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|c| !crate::config::is_invisible(*c)).take(MAX_CHARS).collect()
}

/// What rmcp says of finding out.
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
