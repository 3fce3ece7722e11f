//! The key `oauth` of a server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::KeyProblem;
use crate::config::{
    key_path::Step,
    urls::{is_redirect, is_secure},
};

/// The way in which dormouse gets tokens for a server (OAuth 2.1).
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
    /// The holder of the token: a user who logs in, or this machine.
    pub(in crate::config) grant: Grant,
    /// The URL of the authorization server, or of its metadata document. Default: the one that the
    /// server names.
    pub(in crate::config) auth_server: Option<String>,
}

impl OAuthEntry {
    /// Returns the problems of an entry. `written` has its keys before their variables were
    /// expanded.
    pub(super) fn problems(&self, written: &Value) -> Vec<KeyProblem> {
        let has = |key: &str| !written[key].is_null();
        let mut problems = Vec::new();
        let mut report = |key: &str, message: &str| {
            problems.push((vec![Step::Key(key.to_owned())], message.to_owned()));
        };
        for key in ["clientSecret", "privateKey"].into_iter().filter(|key| has(key)) {
            if !has("clientId") {
                report(key, "this key needs a \"clientId\"");
            }
        }
        if has("clientSecret") && has("privateKey") {
            report("privateKey", "a client has either a secret or a private key, not both");
        }
        if has("keyId") && !has("privateKey") {
            report("keyId", "this key needs a \"privateKey\"");
        }
        let has_proof = has("clientSecret") || has("privateKey");
        let is_machine = self.grant == Grant::ClientCredentials;
        if is_machine && !(has("clientId") && has_proof) {
            report("grant", MACHINE);
        }
        if has("privateKey") && !is_machine {
            report("privateKey", "a private key requires \"grant\": \"client_credentials\"");
        }
        for (key, is_valid, expected) in [
            ("redirectUri", is_redirect as fn(&Url) -> bool, REDIRECT),
            ("authServer", is_secure, AUTH_SERVER),
        ] {
            if let Some(text) = written[key].as_str().filter(|text| !text.contains("${"))
                && !Url::parse(text).is_ok_and(|url| is_valid(&url))
            {
                report(key, &format!("expected {expected}"));
            }
        }
        problems
    }
}

const MACHINE: &str = "\"client_credentials\" needs a \"clientId\", and a \"clientSecret\" or a \
    \"privateKey\"";
const REDIRECT: &str = "a URL on this machine with a port, such as http://127.0.0.1:8090/callback";
const AUTH_SERVER: &str = "a URL that begins with https://";

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
