//! The login settings of an entry: client, secret, scopes, and authorization server.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use url::{Host, Url};

use super::{
    Unavailable,
    keys::{Grant, OAuthEntry},
};

/// How tokens are obtained for a server that demands them. By default everything is discovered from
/// the server.
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

/// Returns the problems of `oauth`, as its keys and messages. `written` is the entry before its
/// variables were expanded.
pub(super) fn problems(written: &Value, entry: &OAuthEntry) -> Vec<(&'static str, String)> {
    let written = &written["oauth"];
    let has = |key: &str| !written[key].is_null();
    let mut problems = Vec::new();
    for key in ["clientSecret", "privateKey"].into_iter().filter(|key| has(key)) {
        if !has("clientId") {
            problems.push((key, "this key needs a \"clientId\"".to_owned()));
        }
    }
    if has("clientSecret") && has("privateKey") {
        problems.push((
            "privateKey",
            "a client has either a secret or a private key, not both".to_owned(),
        ));
    }
    if has("keyId") && !has("privateKey") {
        problems.push(("keyId", "this key needs a \"privateKey\"".to_owned()));
    }
    let has_proof = has("clientSecret") || has("privateKey");
    let is_machine = entry.grant == Grant::ClientCredentials;
    if is_machine && !(has("clientId") && has_proof) {
        let message = "\"client_credentials\" needs a \"clientId\", and a \"clientSecret\" or a \
            \"privateKey\"";
        problems.push(("grant", message.to_owned()));
    }
    if has("privateKey") && !is_machine {
        let message = "a private key requires \"grant\": \"client_credentials\"".to_owned();
        problems.push(("privateKey", message));
    }
    for (key, is_good, expected) in [
        ("redirectUri", is_redirect as fn(&Url) -> bool, REDIRECT),
        ("authServer", is_auth_server, AUTH_SERVER),
    ] {
        if let Some(text) = written[key].as_str().filter(|text| !text.contains("${"))
            && !Url::parse(text).is_ok_and(|url| is_good(&url))
        {
            problems.push((key, format!("expected {expected}")));
        }
    }
    problems
}

const REDIRECT: &str = "a URL on this machine with a port, such as http://127.0.0.1:8090/callback";
const AUTH_SERVER: &str = "a URL that begins with https://";

/// RFC 8252 sections 7.3 and 8.3. Port 0 stands for a free port.
fn is_redirect(url: &Url) -> bool {
    url.scheme() == "http" && is_loopback(url) && url.port().is_some() && url.fragment().is_none()
}

pub(super) fn is_redirect_uri(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| is_redirect(&url))
}

fn is_auth_server(url: &Url) -> bool {
    url.has_host() && (url.scheme() == "https" || url.scheme() == "http" && is_loopback(url))
}

/// Returns whether a URL leads to this machine, by its name alone.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Converts an entry that has no problems.
pub(super) fn oauth(entry: OAuthEntry) -> Result<OAuth, Unavailable> {
    let url = |key, text: Option<String>, is_good: fn(&Url) -> bool| {
        let Some(text) = text else { return Ok(None) };
        let url = Url::parse(text.trim()).ok().filter(is_good);
        url.map(Some).ok_or(Unavailable::BadOAuth(key))
    };
    let redirect_uri = url("redirectUri", entry.redirect_uri, is_redirect)?;
    let auth_server = url("authServer", entry.auth_server, is_auth_server)?;
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
