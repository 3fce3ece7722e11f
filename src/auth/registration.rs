//! Registers dormouse as a client of an authorization server (RFC 7591).

use oauth2::http::{Request, header};
use serde::Deserialize;
use serde_json::json;

use super::{
    auth_client::AuthClient,
    auth_method::AuthMethod,
    discovery::AuthServer,
    login_error::{LoginError, scrubbed},
};
use crate::config::Secret;

/// The response to a registration (RFC 7591 section 3.2.1).
#[derive(Deserialize)]
pub(super) struct RegistrationResponse {
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
    /// 0 if the secret does not expire.
    #[serde(default)]
    client_secret_expires_at: Option<u64>,
}

/// The grant that a client is registered for.
pub(super) struct RegisteredGrant {
    grant_type: &'static str,
    response_types: &'static [&'static str],
}

pub(super) const CODE_GRANT: RegisteredGrant =
    RegisteredGrant { grant_type: "authorization_code", response_types: &["code"] };
pub(super) const DEVICE_GRANT: RegisteredGrant = RegisteredGrant {
    grant_type: "urn:ietf:params:oauth:grant-type:device_code",
    response_types: &[],
};

/// Registers a client with this redirect URI.
pub(super) async fn register(
    auth_server: &AuthServer,
    redirect_uri: &str,
    grant: &RegisteredGrant,
    scopes: &[String],
) -> Result<AuthClient, LoginError> {
    let endpoint =
        auth_server.string_field("registration_endpoint").ok_or(LoginError::NoRegistration)?;
    let failed = |cause: String| LoginError::Registration(scrubbed(&cause, &[]));
    let method = preferred_auth_method(auth_server);
    let mut wanted = json!({
        "client_name": "dormouse",
        "client_uri": env!("CARGO_PKG_REPOSITORY"),
        "software_id": "dormouse",
        "software_version": env!("CARGO_PKG_VERSION"),
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": [grant.grant_type, "refresh_token"],
        "response_types": grant.response_types,
        "token_endpoint_auth_method": method.name(),
    });
    if !scopes.is_empty() {
        wanted["scope"] = scopes.join(" ").into();
    }
    let request = Request::post(&endpoint)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(wanted.to_string().into_bytes())
        .map_err(|error| failed(error.to_string()))?;
    let response = auth_server.http.execute(request).await?;
    let status = response.status();
    if !status.is_success() {
        let said = String::from_utf8_lossy(response.body());
        return Err(failed(format!("HTTP status {}: {said}", status.as_u16())));
    }
    let registered: RegistrationResponse = serde_json::from_slice(response.body())
        .map_err(|_| failed("the response is not a registration".to_owned()))?;
    let client = registered.into_client(redirect_uri, method);
    Ok(AuthClient { registered_scopes: scopes.to_vec(), ..client })
}

/// Returns the authentication method to register. A program on the user's machine cannot keep a
/// secret from the user, so that none is preferred. A secret in the body comes next: servers on the
/// Python SDK accept it there, but with a header they miss the client's id.
fn preferred_auth_method(auth_server: &AuthServer) -> AuthMethod {
    let supported = auth_server.auth_methods().unwrap_or_default();
    let known = [AuthMethod::None, AuthMethod::ClientSecretPost, AuthMethod::ClientSecretBasic];
    let first = known.into_iter().find(|method| supported.contains(method));
    first.unwrap_or(AuthMethod::None)
}

impl RegistrationResponse {
    /// Returns the registered client. `asked` is the requested authentication method.
    pub(super) fn into_client(self, redirect_uri: &str, asked: AuthMethod) -> AuthClient {
        let secret = self.client_secret.filter(|secret| !secret.is_empty());
        let said = self.token_endpoint_auth_method.as_deref().and_then(AuthMethod::from_name);
        let method = match (said.unwrap_or(asked), &secret) {
            (_, None) => AuthMethod::None,
            // The authorization server issued a secret that was not requested, and does not name a
            // method.
            (AuthMethod::None, Some(_)) if said.is_none() => AuthMethod::ClientSecretBasic,
            (method, Some(_)) => method,
        };
        let secret = secret.filter(|_| method != AuthMethod::None);
        AuthClient {
            id: self.client_id,
            method,
            secret: secret.map(Secret::new),
            key_id: None,
            redirect_uri: Some(redirect_uri.to_owned()),
            expires_at: self.client_secret_expires_at.filter(|at| *at > 0),
            registered_scopes: Vec::new(),
        }
    }
}
