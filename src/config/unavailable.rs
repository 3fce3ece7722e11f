//! The reasons that a server's entry cannot be used although the file is valid.

/// The reason that a server's entry cannot be used although the file is valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unavailable {
    #[error("undefined variables: {}; set them in the environment or in .env", .0.join(", "))]
    Undefined(Vec<String>),
    #[error("`command` is blank after variable expansion")]
    BlankCommand,
    #[error("`url` is not valid after variable expansion; it must begin with http:// or https://")]
    BadUrl,
    #[error("the header {0:?} is not valid after variable expansion")]
    BadHeader(String),
    #[error("{0:?} of \"oauth\" is not valid after variable expansion")]
    BadOAuth(&'static str),
}
