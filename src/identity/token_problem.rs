//! The reasons that an access token gives no access.

/// The reason that an access token gives no access.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenProblem {
    #[error("the token was not issued by an identity provider of the config")]
    UnknownIssuer,
    /// The token is damaged, has expired, or is for something else.
    #[error("the token is invalid: {0}")]
    Invalid(String),
    #[error("the token lacks the scopes {}", .0.join(" "))]
    MissingScopes(Vec<String>),
    /// The identity provider cannot be asked now.
    #[error("cannot check the token: {0}")]
    Unavailable(String),
}
