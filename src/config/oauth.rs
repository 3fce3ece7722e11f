//! The login settings of an entry: client, secret, scopes, and authorization server.

use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::{
    Unavailable,
    keys::{Grant, OAuthEntry},
    urls::{is_redirect, is_secure},
};

/// The settings by which tokens are obtained for a server that demands them. By default everything
/// is discovered from the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OAuth {
    pub grant: Grant,
    pub client: Option<OAuthClient>,
    /// Empty for the scopes that the server names.
    pub scopes: Vec<String>,
    /// The redirect URI on this machine; port 0 for a free one.
    pub redirect_uri: Option<Url>,
    /// The issuer, or its metadata document; `None` for the one that the server names.
    pub auth_server: Option<Url>,
}

/// A client that is registered at the authorization server.
#[derive(Clone, Debug, PartialEq)]
pub struct OAuthClient {
    pub id: String,
    pub proof: Option<ClientProof>,
    /// The name of the private key: the `kid` of its assertions (RFC 7515 section 4.1.4).
    pub key_id: Option<String>,
}

impl OAuthClient {
    /// Returns whether the id is the address of a Client ID Metadata Document (SEP-991): an https
    /// URL with a path.
    pub fn is_metadata_document(&self) -> bool {
        Url::parse(&self.id).is_ok_and(|url| url.scheme() == "https" && url.path() != "/")
    }
}

/// The way in which a client authenticates.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientProof {
    Secret(Secret),
    /// The name of the entry in the system's keychain that holds the secret.
    Keychain(String),
    /// A private key in PEM (PKCS #8), which signs an assertion (RFC 7523).
    PrivateKey(Secret),
}

/// A text that is never shown, and is wiped when it is dropped.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The prefix of a secret that is kept in the system's keychain.
const KEYCHAIN: &str = "keychain:";

/// Converts an entry that has no problems.
pub(super) fn oauth(entry: OAuthEntry) -> Result<OAuth, Unavailable> {
    let url = |key, text: Option<String>, is_good: fn(&Url) -> bool| {
        let Some(text) = text else { return Ok(None) };
        let url = Url::parse(text.trim()).ok().filter(is_good);
        url.map(Some).ok_or(Unavailable::BadOAuth(key))
    };
    let redirect_uri = url("redirectUri", entry.redirect_uri, is_redirect)?;
    let auth_server = url("authServer", entry.auth_server, is_secure)?;
    let proof = match (entry.client_secret, entry.private_key) {
        (Some(secret), _) => Some(match secret.strip_prefix(KEYCHAIN) {
            Some(name) => ClientProof::Keychain(name.to_owned()),
            None => ClientProof::Secret(Secret::new(secret)),
        }),
        (None, Some(key)) => Some(ClientProof::PrivateKey(Secret::new(key))),
        (None, None) => None,
    };
    let key_id = entry.key_id;
    Ok(OAuth {
        grant: entry.grant,
        client: entry.client_id.map(|id| OAuthClient { id, proof, key_id }),
        scopes: entry.scopes,
        redirect_uri,
        auth_server,
    })
}
