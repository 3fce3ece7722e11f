//! The metadata of an identity provider: where its keys are, and where people log in.

use reqwest::Client;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use url::Url;

use crate::base::with_causes;

/// Maximum size of an answer, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// The metadata of an issuer (RFC 8414, section 2).
#[derive(Clone, Debug, Deserialize)]
pub(super) struct IssuerMetadata {
    issuer: String,
    pub(super) jwks_uri: Option<String>,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    /// The ways in which a client may show its secret; `client_secret_basic` if it is missing.
    #[serde(default)]
    token_endpoint_auth_methods_supported: Value,
    /// True if responses to browsers name the issuer (RFC 9207, section 3).
    #[serde(default)]
    authorization_response_iss_parameter_supported: Value,
}

impl IssuerMetadata {
    /// Requests the first document that is sufficient: not each has everything.
    ///
    /// # Errors
    /// The reason that there is no sufficient metadata of this issuer.
    pub(super) async fn request(
        client: &Client,
        issuer: &str,
        is_sufficient: impl Fn(&Self) -> bool,
    ) -> Result<Self, String> {
        let mut problem = String::new();
        for url in metadata_addresses(issuer) {
            match get_json::<Self>(client, &url).await {
                // Another issuer could be impersonated otherwise (RFC 8414, section 3.3).
                Ok(metadata) if metadata.issuer != issuer => {
                    problem = format!("{url} is the metadata of another issuer");
                }
                Ok(metadata) if is_sufficient(&metadata) => return Ok(metadata),
                Ok(_) => problem = format!("{url} lacks an address that is needed"),
                Err(why) => problem = why,
            }
        }
        Err(problem)
    }

    /// Returns whether a client may show its secret in the header of a request.
    pub(super) fn accepts_basic_authentication(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_array();
        methods.is_none_or(|all| all.iter().any(|method| method == "client_secret_basic"))
    }

    /// Returns whether a response to a browser has to name the issuer.
    pub(super) fn names_issuer(&self) -> bool {
        self.authorization_response_iss_parameter_supported == true
    }
}

/// Returns the addresses of the metadata of an issuer (RFC 8414, section 3.1, and `OpenID Connect
/// Discovery`, section 4).
fn metadata_addresses(issuer: &str) -> Vec<String> {
    let Ok(url) = Url::parse(issuer) else { return Vec::new() };
    let path = url.path().trim_end_matches('/').to_owned();
    let at = |path: String| {
        let mut url = url.clone();
        url.set_path(&path);
        url.to_string()
    };
    vec![
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("{path}/.well-known/openid-configuration")),
    ]
}

pub(super) async fn get_json<T: DeserializeOwned>(client: &Client, url: &str) -> Result<T, String> {
    let failed = |why: String| format!("{url}: {why}");
    let answer = client.get(url).send().await.map_err(|error| failed(with_causes(&error)))?;
    read_json(answer).await.map_err(failed)
}

/// Reads an answer of bounded size.
pub(super) async fn read_json<T: DeserializeOwned>(
    mut answer: reqwest::Response,
) -> Result<T, String> {
    if !answer.status().is_success() {
        return Err(format!("status {}", answer.status().as_u16()));
    }
    let mut text = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(|error| with_causes(&error))? {
        text.extend_from_slice(&part);
        if text.len() > MAX_BYTES {
            return Err(format!("the answer has more than {MAX_BYTES} bytes"));
        }
    }
    serde_json::from_slice(&text).map_err(|error| format!("the answer is invalid: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_where_the_standards_say() {
        assert_eq!(
            metadata_addresses("https://i.example.com/tenant/"),
            [
                "https://i.example.com/.well-known/oauth-authorization-server/tenant",
                "https://i.example.com/tenant/.well-known/openid-configuration",
            ]
        );
    }
}
