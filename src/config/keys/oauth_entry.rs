//! The key `oauth` of a server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How dormouse gets tokens for a server (OAuth 2.1).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(in crate::config) struct OAuthEntry {
    /// The client's id at the authorization server, or the https URL of a client metadata document,
    /// for authorization servers that support it. By default dormouse registers itself.
    pub(in crate::config) client_id: Option<String>,
    /// The client's secret: `${VAR}`, or `keychain:NAME` for the entry of that name in the system's
    /// keychain.
    pub(in crate::config) client_secret: Option<String>,
    /// A private key in PEM (PKCS #8) instead of a secret, for `client_credentials`.
    pub(in crate::config) private_key: Option<String>,
    /// The name of the private key at the authorization server (`kid`), if it needs one.
    pub(in crate::config) key_id: Option<String>,
    /// The scopes to request. Default: those that the server names.
    pub(in crate::config) scopes: Vec<String>,
    /// The redirect URI, for clients that are registered with one, such as
    /// `http://127.0.0.1:8090/callback`. Default: a free port of this machine.
    pub(in crate::config) redirect_uri: Option<String>,
    /// Who gets the token: a user who logs in, or this machine.
    pub(in crate::config) grant: Grant,
    /// The URL of the authorization server, or of its metadata document. Default: the one that the
    /// server names.
    pub(in crate::config) auth_server: Option<String>,
}

/// The grant by which tokens are obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A user logs in: `dormouse login`.
    #[default]
    AuthorizationCode,
    /// The client has its own secret or key, and no user logs in.
    ClientCredentials,
}

impl Grant {
    /// Returns the name in the config.
    pub fn name(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::ClientCredentials => "client_credentials",
        }
    }
}
