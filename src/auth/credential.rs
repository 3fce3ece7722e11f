//! One login: its tokens, their issuer and resource, and the client that they were issued to.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{
    auth_client::AuthClient, auth_method::AuthMethod, discovery::AuthServer, redaction::redacted,
};
use crate::{
    base::{now_seconds, unix_seconds},
    config::Secret,
    wire::credentials::Authorization,
};

/// A login as it is stored. It is for one resource, and its secrets are sent to one issuer only.
#[derive(Clone, Debug)]
pub(super) struct Credential {
    pub(super) facts: LoginFacts,
    pub(super) client_secret: Option<Secret>,
    /// `None` if no token is valid any more.
    pub(super) tokens: Option<Tokens>,
    /// True if the secrets are in the file. They stay there, for processes that cannot access a
    /// keychain.
    pub(super) is_in_file: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tokens {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
}

/// The parts of a login that are not secret. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoginFacts {
    /// The server's URL from the config, without its query.
    pub(super) server: String,
    pub(super) issuer: String,
    /// The resource that the tokens are for (RFC 8707).
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation_endpoint: Option<String>,
    #[serde(flatten)]
    pub(super) client: LoginClient,
    #[serde(flatten)]
    pub(super) grant: LoginGrant,
    #[serde(flatten)]
    pub(super) lifetime: LoginLifetime,
}

/// The client that a login was issued to, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoginClient {
    #[serde(rename = "clientId")]
    pub(super) id: String,
    pub(super) method: AuthMethod,
    /// Set only for a client that dormouse has registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) redirect_uri: Option<String>,
    /// The scopes that dormouse registered the client with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) registered_scopes: Vec<String>,
    /// End of a registration made by dormouse; `None` if it does not end.
    #[serde(default, rename = "clientExpiresAt", skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
}

/// The scopes of a login, and the act of the user that granted them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoginGrant {
    /// The scopes that were requested at the login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) asked: Vec<String>,
    /// The granted scopes.
    pub(super) scopes: Vec<String>,
    /// The scopes that the server demanded beyond the granted ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) wanted: Vec<String>,
    /// Distinguishes this login from earlier and later ones; a renewal keeps it. `None` if the user
    /// has never logged in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) login_id: Option<String>,
}

/// The time for which the tokens are valid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoginLifetime {
    /// Zero if no token was ever granted.
    pub(super) obtained_at: u64,
    /// `None` if the authorization server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    /// True if dormouse can get a new token without the user.
    pub(super) is_renewable: bool,
    pub(super) is_usable: bool,
    /// The number of renewals since the user has logged in.
    #[serde(default)]
    pub(super) renewals: u64,
    /// True if another replica may have a newer state: the store had lost the login and got it
    /// again, or a renewal has begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) may_be_older: bool,
}

impl LoginFacts {
    /// Returns whether the login is usable, includes all that the server has demanded, and was
    /// requested with these scopes or has them.
    pub(super) fn satisfies(&self, scopes: &[String]) -> bool {
        let LoginGrant { asked, scopes: granted, wanted, .. } = &self.grant;
        let is_asked = |scope: &String| asked.contains(scope) || granted.contains(scope);
        self.lifetime.is_usable && wanted.is_empty() && scopes.iter().all(is_asked)
    }
}

impl Credential {
    /// Builds an entry for a registered client that has no tokens yet.
    pub(super) fn from_client(server: &Url, auth_server: &AuthServer, client: AuthClient) -> Self {
        let facts = LoginFacts {
            server: redacted(server),
            issuer: auth_server.issuer.clone(),
            resource: auth_server.resource.clone(),
            token_endpoint: auth_server.metadata.token_endpoint.clone(),
            revocation_endpoint: auth_server.string_field("revocation_endpoint"),
            client: LoginClient {
                id: client.id,
                method: client.method,
                redirect_uri: client.redirect_uri,
                registered_scopes: client.registered_scopes,
                expires_at: client.expires_at,
            },
            grant: LoginGrant::default(),
            lifetime: LoginLifetime::default(),
        };
        // A secret from the config is not stored a second time.
        let is_ours = facts.client.redirect_uri.is_some();
        let client_secret = client.secret.filter(|_| is_ours);
        Self { facts, client_secret, tokens: None, is_in_file: false }
    }

    /// Returns whether the user has ever logged in.
    pub(super) fn was_granted(&self) -> bool {
        self.facts.lifetime.obtained_at > 0
    }

    /// Removes a client that its authorization server does not know any more, and its tokens.
    pub(super) fn without_client(self) -> Self {
        let mut lost = self.without_tokens();
        (lost.facts.client.redirect_uri, lost.client_secret) = (None, None);
        lost
    }

    /// Removes tokens that are not valid any more.
    pub(super) fn without_tokens(mut self) -> Self {
        self.tokens = None;
        (self.facts.lifetime.is_renewable, self.facts.lifetime.is_usable) = (false, false);
        self
    }

    /// Removes the refresh token, so that the login ends when the access token expires.
    pub(super) fn without_refresh_token(mut self) -> Self {
        if let Some(tokens) = &mut self.tokens {
            tokens.refresh = None;
        }
        self.facts.lifetime.is_renewable = false;
        self
    }

    /// Returns the `Authorization` header for requests; `None` if there is no token, or none that a
    /// header can carry.
    pub(super) fn authorization(&self) -> Option<Authorization> {
        Authorization::bearer(self.tokens.as_ref()?.access.expose())
    }

    /// Returns the time since the token was granted; `None` if the clock was set back since then.
    pub(super) fn age(&self) -> Option<Duration> {
        let obtained_at =
            UNIX_EPOCH.checked_add(Duration::from_secs(self.facts.lifetime.obtained_at))?;
        SystemTime::now().duration_since(obtained_at).ok()
    }

    /// Returns whether this is a renewal of another state of the same login.
    pub(super) fn is_renewal_of(&self, other: &Self) -> bool {
        let (own, other) = (&self.facts, &other.facts);
        own.grant.login_id == other.grant.login_id
            && own.lifetime.renewals > other.lifetime.renewals
    }

    pub(super) fn is_expired(&self, now: SystemTime) -> bool {
        self.facts.lifetime.expires_at.is_some_and(|at| at <= unix_seconds(now))
    }

    pub(super) fn can_be_renewed(&self) -> bool {
        self.tokens.as_ref().is_some_and(|tokens| tokens.refresh.is_some())
    }

    /// Returns when to renew the token; `None` if its expiry is unknown. `random` in 0..1 keeps
    /// several processes from renewing it at the same moment.
    pub(super) fn renew_at(&self, random: f64) -> Option<SystemTime> {
        let LoginLifetime { obtained_at, expires_at, .. } = self.facts.lifetime;
        let lifetime = Duration::from_secs(expires_at?.saturating_sub(obtained_at));
        let expires_at = UNIX_EPOCH.checked_add(Duration::from_secs(expires_at?))?;
        let margin = (lifetime / 5).clamp(MIN_RENEWAL_MARGIN, MAX_RENEWAL_MARGIN).min(lifetime / 2);
        let margin = margin.mul_f64(0.75 + random / 4.0);
        expires_at.checked_sub(margin)
    }
}

/// Maximum time before its expiry at which a token is renewed; usually a fifth of its lifetime is
/// left.
const MAX_RENEWAL_MARGIN: Duration = Duration::from_mins(5);
/// Minimum time before its expiry at which a token is renewed: servers count in whole seconds, and
/// some end the whole login when they receive an expired token.
const MIN_RENEWAL_MARGIN: Duration = Duration::from_secs(2);

/// The part of a login that is not secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Login")]
pub(crate) struct LoginSummary {
    /// The authorization server.
    pub issuer: String,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// Scopes that the server demands in addition.
    pub wanted: Vec<String>,
    /// Seconds since 1970; `None` if the authorization server has not named an expiry.
    pub expires_at: Option<u64>,
    /// True if dormouse renews the login when it expires.
    #[serde(rename = "renewable")]
    pub is_renewable: bool,
    /// True if there is a token to send to the server.
    #[serde(rename = "usable")]
    pub is_usable: bool,
}

impl LoginSummary {
    pub(super) fn of(facts: &LoginFacts) -> Self {
        let LoginFacts { issuer, grant, lifetime, .. } = facts;
        let is_over =
            !lifetime.is_renewable && lifetime.expires_at.is_some_and(|at| at <= now_seconds());
        Self {
            issuer: issuer.clone(),
            scopes: grant.scopes.clone(),
            wanted: grant.wanted.clone(),
            expires_at: lifetime.expires_at,
            is_renewable: lifetime.is_renewable,
            is_usable: lifetime.is_usable && !is_over,
        }
    }
}

impl AuthClient {
    /// Builds the client that a login was issued to. A secret from the config is not stored with
    /// the login.
    pub(super) fn from_login(login: &Credential) -> Self {
        let client = login.facts.client.clone();
        Self {
            id: client.id,
            method: client.method,
            secret: login.client_secret.clone(),
            key_id: None,
            redirect_uri: client.redirect_uri,
            registered_scopes: client.registered_scopes,
            expires_at: client.expires_at,
        }
    }

    /// Returns the client that was registered for an earlier login, if its registration has not
    /// ended.
    pub(super) fn registered_for(login: &Credential) -> Option<Self> {
        let client = Self::from_login(login);
        let is_over = client.expires_at.is_some_and(|at| at <= now_seconds());
        (client.redirect_uri.is_some() && !is_over).then_some(client)
    }
}

/// Returns a login with this token, which has expired.
#[cfg(test)]
pub(super) fn login_of_test(access: &str) -> Credential {
    let facts = LoginFacts {
        server: "https://s.example/mcp".to_owned(),
        issuer: "https://as.example".to_owned(),
        resource: "https://s.example".to_owned(),
        token_endpoint: "https://as.example/token".to_owned(),
        revocation_endpoint: None,
        client: LoginClient {
            id: "c".to_owned(),
            method: AuthMethod::ClientSecretPost,
            redirect_uri: None,
            registered_scopes: Vec::new(),
            expires_at: None,
        },
        grant: LoginGrant {
            asked: Vec::new(),
            scopes: vec!["a".to_owned()],
            wanted: Vec::new(),
            login_id: Some("first".to_owned()),
        },
        lifetime: LoginLifetime {
            obtained_at: 1,
            expires_at: Some(2),
            is_renewable: true,
            is_usable: true,
            renewals: 0,
            may_be_older: false,
        },
    };
    let tokens = Tokens { access: Secret::new(access), refresh: Some(Secret::new("r")) };
    let client_secret = Some(Secret::new("s"));
    Credential { facts, client_secret, tokens: Some(tokens), is_in_file: false }
}
