//! Who gives tokens for a server, for what and where (RFC 9728, RFC 8414, `OpenID` Connect Discovery). rmcp finds it out;
//! what the config says of it wins.

use std::sync::Arc;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig,
};
use url::Url;

use super::{
    Site,
    credential::AuthMethod,
    error::{self, LoginError},
    guard::Guard,
    scopes::{self, OFFLINE_ACCESS},
};

pub(super) struct Discovered {
    /// rmcp's state, which makes the rest of a login by code.
    pub(super) manager: AuthorizationManager,
    pub(super) metadata: AuthorizationMetadata,
    /// Whose tokens these are. Of a server that names none, the origin of its token endpoint.
    pub(super) issuer: String,
    /// What tokens are asked for (RFC 8707).
    pub(super) resource: String,
    pub(super) guard: Guard,
    /// Whether anybody has said any of this; else it is what a server of 2025-03-26 may have.
    pub(super) is_published: bool,
}

/// Finds out who gives tokens for a server that has sent this challenge.
pub(super) async fn discover(site: &Site, challenge: &str) -> Result<Discovered, LoginError> {
    let (server, named) = (&site.remote.url, site.oauth.auth_server.as_ref());
    let guard = site.guard()?;
    let client = Arc::new(guard.clone());
    let mut manager = AuthorizationManager::new_with_oauth_http_client(bare(server), client)
        .await
        .map_err(|error| error::discovery(&error))?;
    let challenge = Some(challenge).filter(|challenge| !challenge.is_empty());
    // Also where the config names somebody else: what is asked for is the server's to say.
    let resolved = manager.resolve_metadata_from_challenge(challenge).await;
    let (metadata, is_published) = match (named, resolved) {
        (Some(named), _) => (metadata_of(named, &guard).await?, true),
        (None, Ok(resolved)) => (resolved.metadata, resolved.source.is_discovered()),
        // A server of 2025-03-26 is its own authorization server, and may call that part of it by another path.
        (None, Err(AuthError::AuthorizationServerMismatch { received_issuer, .. }))
            if origin(&received_issuer) == server.origin().ascii_serialization() =>
        {
            (document_of(&root(server), &guard).await?, true)
        }
        (None, Err(error)) => return Err(error::discovery(&error)),
    };
    check(&metadata, &guard)?;
    let resource = resource(&mut manager, &metadata).await?;
    manager.set_metadata(metadata.clone());
    let issuer = match &metadata.issuer {
        Some(issuer) => issuer.clone(),
        None => origin(&metadata.token_endpoint),
    };
    Ok(Discovered { manager, metadata, issuer, resource, guard, is_published })
}

fn root(server: &Url) -> Url {
    let mut root = bare(server);
    root.set_path("/");
    root
}

/// The metadata of an authorization server that the config names: by its issuer, which it has to be then (RFC 8414 section
/// 3.3), or by where the document is.
async fn metadata_of(named: &Url, guard: &Guard) -> Result<AuthorizationMetadata, LoginError> {
    let metadata = document_of(named, guard).await?;
    let is_document = named.path().contains("/.well-known/");
    let is_it = |issuer: &str| issuer.trim_end_matches('/') == named.as_str().trim_end_matches('/');
    match &metadata.issuer {
        Some(issuer) if !is_document && !is_it(issuer) => {
            let said = format!("\"authServer\" is {named}, and calls itself {issuer}");
            Err(LoginError::Discovery(error::scrubbed(&said, &[])))
        }
        _ => Ok(metadata),
    }
}

async fn document_of(named: &Url, guard: &Guard) -> Result<AuthorizationMetadata, LoginError> {
    for place in places(named) {
        if let Some(document) = guard.get_json(&place).await?
            && let Ok(metadata) = serde_json::from_value(document)
        {
            return Ok(metadata);
        }
    }
    Err(LoginError::Discovery(format!("there is no metadata of {named}")))
}

/// A server's URL without what may be secret in it: it becomes what tokens are asked for, where the server says nothing
/// else, and stands in errors.
fn bare(server: &Url) -> Url {
    let mut bare = server.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    // It has a host, so that it can be without these.
    let _ = bare.set_username("").and_then(|()| bare.set_password(None));
    bare
}

/// Where the metadata of an issuer may be (RFC 8414 section 3, `OpenID` Connect Discovery section 4).
fn places(issuer: &Url) -> Vec<Url> {
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

/// Whether all that will be asked may be.
fn check(metadata: &AuthorizationMetadata, guard: &Guard) -> Result<(), LoginError> {
    let known = ["registration_endpoint", "revocation_endpoint", "device_authorization_endpoint"];
    let others = known.iter().filter_map(|name| text(metadata, name));
    for endpoint in others.chain([metadata.token_endpoint.clone()]) {
        let url = Url::parse(&endpoint).map_err(|_| {
            LoginError::Discovery(format!("it names {endpoint:?}, which is no URL"))
        })?;
        guard.check(&url)?;
    }
    Ok(())
}

/// What rmcp will ask tokens for. It keeps that to itself, but for the address at which to log in.
async fn resource(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
) -> Result<String, LoginError> {
    let failed = |error| error::discovery(&error);
    // Some give no codes, which is of no concern here.
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
    resource.ok_or_else(|| LoginError::Discovery("it names no resource".to_owned()))
}

fn origin(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.origin().ascii_serialization())
}

fn text(metadata: &AuthorizationMetadata, name: &str) -> Option<String> {
    if name == "registration_endpoint" {
        return metadata.registration_endpoint.clone();
    }
    Some(metadata.additional_fields.get(name)?.as_str()?.to_owned())
}

impl Discovered {
    /// A member of the metadata that is a text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        text(&self.metadata, name)
    }

    pub(super) fn supports(&self, flag: &str) -> bool {
        self.metadata.additional_fields.get(flag).and_then(serde_json::Value::as_bool) == Some(true)
    }

    /// The ways in which clients show that they are the ones; `None` where nothing is said.
    pub(super) fn methods(&self) -> Option<Vec<AuthMethod>> {
        let said = self.metadata.additional_fields.get("token_endpoint_auth_methods_supported")?;
        let names = said.as_array()?.iter().filter_map(serde_json::Value::as_str);
        Some(names.filter_map(AuthMethod::of_name).collect())
    }

    /// How a client with a secret shows it: in a header, unless only the body will do (RFC 6749 section 2.3.1).
    pub(super) fn secret_method(&self) -> AuthMethod {
        let methods = self.methods().unwrap_or_default();
        let has = |method| methods.contains(&method);
        if has(AuthMethod::ClientSecretPost) && !has(AuthMethod::ClientSecretBasic) {
            AuthMethod::ClientSecretPost
        } else {
            AuthMethod::ClientSecretBasic
        }
    }

    /// The scopes to ask for: those of the config, else those that the server has named; and what was missing.
    pub(super) async fn scopes(&self, configured: &[String], more: &[String]) -> Vec<String> {
        let mut scopes = if configured.is_empty() {
            let known = self.manager.select_initial_scopes(&[]).await;
            scopes::named(known.iter().map(String::as_str))
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
        // Without it the login would end with its first token.
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
    fn metadata_is_looked_for_where_the_specifications_put_it() {
        for (issuer, expected) in [
            (
                "https://as.example",
                &["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"][..],
            ),
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
            let found = places(&Url::parse(issuer).unwrap());
            let paths: Vec<&str> = found.iter().map(Url::path).collect();
            assert_eq!(paths, expected, "{issuer}");
        }
    }
}
