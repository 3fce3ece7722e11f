//! Discovers the authorization server of a server, its endpoints and the resource to request tokens
//! for (RFC 9728, RFC 8414, `OpenID` Connect Discovery). rmcp does the discovery; the config takes
//! precedence.

use std::sync::Arc;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig,
};
use url::Url;

use super::{
    LoginTarget,
    auth_method::AuthMethod,
    guarded_client::GuardedClient,
    login_error::{self, LoginError},
    scopes::{self, OFFLINE_ACCESS},
};
use crate::config::ClientProof;

pub(super) struct AuthServer {
    /// rmcp's state, which also performs the rest of a login by code.
    pub(super) manager: AuthorizationManager,
    pub(super) metadata: AuthorizationMetadata,
    /// The issuer of the tokens. If the metadata names none, the origin of the token endpoint.
    pub(super) issuer: String,
    /// The resource that tokens are requested for (RFC 8707).
    pub(super) resource: String,
    pub(super) http: GuardedClient,
    /// True if the server or its authorization server publishes metadata; if not, these are the
    /// default endpoints of 2025-03-26.
    pub(super) is_published: bool,
}

/// Discovers the authorization server of a server that has sent this challenge.
pub(super) async fn discover(
    target: &LoginTarget,
    challenge: &str,
) -> Result<AuthServer, LoginError> {
    let (server, named) = (&target.remote.url, target.oauth.auth_server.as_ref());
    let http = target.http()?;
    let client = Arc::new(http.clone());
    let manager = AuthorizationManager::new_with_oauth_http_client(without_secrets(server), client)
        .await
        .map_err(|error| login_error::discovery_error(&error))?;
    let challenge = Some(challenge).filter(|challenge| !challenge.is_empty());
    // Runs even if the config names the authorization server, because the server determines the
    // resource and its scopes.
    let resolved = manager.resolve_metadata_from_challenge(challenge).await;
    let (metadata, is_published) = match (named, resolved) {
        (Some(named), _) => (configured_metadata(named, &http).await?, true),
        (None, Ok(resolved)) => (resolved.metadata, resolved.source.is_discovered()),
        // A server of 2025-03-26 is its own authorization server, and its issuer may have another
        // path.
        (None, Err(AuthError::AuthorizationServerMismatch { received_issuer, .. }))
            if origin(&received_issuer) == server.origin().ascii_serialization() =>
        {
            (fetch_metadata(&root_url(server), &http).await?, true)
        }
        (None, Err(error)) => return Err(login_error::discovery_error(&error)),
    };
    AuthServer::of(manager, metadata, http, is_published).await
}

/// Checks that a server has not switched to another authorization server while the config has a
/// client secret and no `authServer`: the secret is meant for one authorization server, and a
/// server could otherwise have it sent to any other.
pub(super) fn check_same_authority(
    target: &LoginTarget,
    before: &str,
    auth_server: &AuthServer,
) -> Result<(), LoginError> {
    let has_secret = target.oauth.client.as_ref().is_some_and(|client| {
        matches!(client.proof, Some(ClientProof::Secret(_) | ClientProof::Keychain(_)))
    });
    if !has_secret || target.oauth.auth_server.is_some() || before == auth_server.issuer {
        return Ok(());
    }
    let (server, before, now) =
        (target.name.clone(), before.to_owned(), auth_server.issuer.clone());
    Err(LoginError::OtherAuthority { server, before, now })
}

fn root_url(server: &Url) -> Url {
    let mut root = without_secrets(server);
    root.set_path("/");
    root
}

/// Fetches the metadata of an authorization server that the config names: by its issuer, which the
/// metadata must repeat (RFC 8414 section 3.3), or by the URL of the document.
async fn configured_metadata(
    named: &Url,
    http: &GuardedClient,
) -> Result<AuthorizationMetadata, LoginError> {
    let metadata = fetch_metadata(named, http).await?;
    let is_document = named.path().contains("/.well-known/");
    let is_it = |issuer: &str| issuer.trim_end_matches('/') == named.as_str().trim_end_matches('/');
    match &metadata.issuer {
        Some(issuer) if !is_document && !is_it(issuer) => {
            let reason =
                format!("\"authServer\" is {named}, but its metadata name the issuer {issuer}");
            Err(LoginError::Discovery(login_error::scrubbed(&reason, &[])))
        }
        _ => Ok(metadata),
    }
}

async fn fetch_metadata(
    named: &Url,
    http: &GuardedClient,
) -> Result<AuthorizationMetadata, LoginError> {
    for place in metadata_urls(named) {
        if let Some(document) = http.get_json(&place).await?
            && let Ok(metadata) = serde_json::from_value(document)
        {
            return Ok(metadata);
        }
    }
    Err(LoginError::Discovery(format!("no metadata found for {named}")))
}

/// Removes the parts of a server's URL that may be secret. The result appears in errors, and is the
/// resource to request tokens for if the server names none.
fn without_secrets(server: &Url) -> Url {
    let mut bare = server.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    // The URL has a host, so that removing the user name and password cannot fail.
    let _ = bare.set_username("").and_then(|()| bare.set_password(None));
    bare
}

/// Returns the URLs at which an issuer's metadata may be found (RFC 8414 section 3, `OpenID`
/// Connect Discovery section 4).
pub(super) fn metadata_urls(issuer: &Url) -> Vec<Url> {
    if issuer.path().contains("/.well-known/") {
        return vec![issuer.clone()];
    }
    let path = issuer.path().trim_matches('/');
    let under = |known: &str| match path {
        "" => format!("/.well-known/{known}"),
        path => format!("/.well-known/{known}/{path}"),
    };
    let mut paths = vec![under("oauth-authorization-server"), under("openid-configuration")];
    if !path.is_empty() {
        paths.push(format!("/{path}/.well-known/openid-configuration"));
    }
    let at = |path: String| {
        let mut place = issuer.clone();
        place.set_path(&path);
        place.set_query(None);
        place
    };
    paths.into_iter().map(at).collect()
}

/// Checks that dormouse may contact all endpoints of the authorization server.
fn check_endpoints(
    metadata: &AuthorizationMetadata,
    http: &GuardedClient,
) -> Result<(), LoginError> {
    let known = ["registration_endpoint", "revocation_endpoint", "device_authorization_endpoint"];
    let others = known.iter().filter_map(|name| string_field(metadata, name));
    for endpoint in others.chain([metadata.token_endpoint.clone()]) {
        let url = Url::parse(&endpoint).map_err(|_| {
            LoginError::Discovery(format!("the metadata contain {endpoint:?}, which is not a URL"))
        })?;
        http.check(&url)?;
    }
    Ok(())
}

/// Returns the resource that rmcp will request tokens for. rmcp reveals it only as a parameter of
/// the authorization URL.
async fn find_resource(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
) -> Result<String, LoginError> {
    let failed = |error| login_error::discovery_error(&error);
    // An authorization server may offer no codes, which does not matter here.
    let mut asked = metadata.clone();
    asked.response_types_supported = None;
    asked.code_challenge_methods_supported = Some(vec!["S256".to_owned()]);
    manager.set_metadata(asked);
    let nobody = OAuthClientConfig::new("nobody", "http://127.0.0.1/");
    manager.configure_client(nobody).map_err(failed)?;
    let address = manager.get_authorization_url(&[]).await.map_err(failed)?;
    let address = Url::parse(&address).ok();
    let pairs = address.iter().flat_map(Url::query_pairs);
    let resource = pairs.filter(|(name, _)| name == "resource").last();
    let resource = resource.map(|(_, resource)| resource.into_owned());
    resource.ok_or_else(|| LoginError::Discovery("the metadata name no resource".to_owned()))
}

fn origin(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.origin().ascii_serialization())
}

fn string_field(metadata: &AuthorizationMetadata, name: &str) -> Option<String> {
    if name == "registration_endpoint" {
        return metadata.registration_endpoint.clone();
    }
    Some(metadata.additional_fields.get(name)?.as_str()?.to_owned())
}

impl AuthServer {
    /// Checks the metadata of an authorization server, and finds out the resource.
    pub(super) async fn of(
        mut manager: AuthorizationManager,
        metadata: AuthorizationMetadata,
        http: GuardedClient,
        is_published: bool,
    ) -> Result<Self, LoginError> {
        check_endpoints(&metadata, &http)?;
        let resource = find_resource(&mut manager, &metadata).await?;
        manager.set_metadata(metadata.clone());
        let issuer = match &metadata.issuer {
            Some(issuer) => issuer.clone(),
            None => origin(&metadata.token_endpoint),
        };
        Ok(Self { manager, metadata, issuer, resource, http, is_published })
    }

    /// Returns a member of the metadata that is a string.
    pub(super) fn string_field(&self, name: &str) -> Option<String> {
        string_field(&self.metadata, name)
    }

    pub(super) fn supports(&self, flag: &str) -> bool {
        self.metadata.additional_fields.get(flag).and_then(serde_json::Value::as_bool) == Some(true)
    }

    /// Returns the client authentication methods; `None` if the metadata names none.
    pub(super) fn auth_methods(&self) -> Option<Vec<AuthMethod>> {
        let methods =
            self.metadata.additional_fields.get("token_endpoint_auth_methods_supported")?;
        let names = methods.as_array()?.iter().filter_map(serde_json::Value::as_str);
        Some(names.filter_map(AuthMethod::from_name).collect())
    }

    /// Returns how a client with a secret authenticates: in a header, unless only the body is
    /// supported (RFC 6749 section 2.3.1).
    pub(super) fn secret_auth_method(&self) -> AuthMethod {
        let auth_methods = self.auth_methods().unwrap_or_default();
        let has = |method| auth_methods.contains(&method);
        if has(AuthMethod::ClientSecretPost) && !has(AuthMethod::ClientSecretBasic) {
            AuthMethod::ClientSecretPost
        } else {
            AuthMethod::ClientSecretBasic
        }
    }

    /// Returns the scopes to request: those of the config or, if it has none, those that the server
    /// names; and `more`.
    pub(super) async fn scopes(&self, configured: &[String], more: &[String]) -> Vec<String> {
        let mut scopes = if configured.is_empty() {
            let known = self.manager.select_initial_scopes(&[]).await;
            scopes::valid_scopes(known.iter().map(String::as_str))
        } else {
            configured.to_vec()
        };
        for scope in more {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        let offline = OFFLINE_ACCESS.to_owned();
        let supported = self.metadata.scopes_supported.as_ref();
        // Without this scope the login would end when its first token expires.
        if !configured.is_empty()
            && !scopes.contains(&offline)
            && supported.is_some_and(|supported| supported.contains(&offline))
        {
            scopes.push(offline);
        }
        scopes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_urls_follow_the_specifications() {
        let root = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
        for (issuer, expected) in [
            ("https://as.example", &root[..]),
            (
                "https://as.example/tenant/?x",
                &[
                    "/.well-known/oauth-authorization-server/tenant",
                    "/.well-known/openid-configuration/tenant",
                    "/tenant/.well-known/openid-configuration",
                ],
            ),
            ("https://as.example/a/.well-known/b", &["/a/.well-known/b"]),
        ] {
            let found = metadata_urls(&Url::parse(issuer).unwrap());
            let paths: Vec<&str> = found.iter().map(Url::path).collect();
            assert_eq!(paths, expected, "{issuer}");
        }
    }
}
