//! The address at which hosts get an access token: the metadata of the endpoints (RFC 9728), and
//! the `WWW-Authenticate` header of a refusal (RFC 6750, section 3).

use axum::{
    Json,
    http::{HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use serde_json::json;

use crate::identity::{Issuers, TokenProblem};

/// The path of the metadata, which the path of the endpoint follows (RFC 9728, section 3.1).
pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The path of the endpoint of all servers.
const MCP_PATH: &str = "/mcp";

/// The identity providers, and the public address of the endpoints that their tokens open.
pub(crate) struct ProtectedResource {
    pub(crate) issuers: Issuers,
    /// Without a slash at its end; `None` if the config does not tell, and hosts have to know where
    /// to get a token.
    pub(crate) public_url: Option<String>,
}

impl ProtectedResource {
    /// Returns the metadata of the endpoint of all servers, or of the service as a whole, which all
    /// other endpoints belong to.
    pub(super) fn metadata(&self, path: &str) -> Response {
        let is_known = ["", MCP_PATH].contains(&path);
        let Some(public_url) = self.public_url.as_ref().filter(|_| is_known) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let metadata = json!({
            "resource": format!("{public_url}{path}"),
            "authorization_servers": self.issuers.names(),
            "scopes_supported": self.issuers.scopes(),
            "bearer_methods_supported": ["header"],
            "resource_name": "dormouse",
        });
        ([("access-control-allow-origin", "*")], Json(metadata)).into_response()
    }

    /// Returns the value of `WWW-Authenticate` for a request to this path. `problem`: that of the
    /// token that was shown, if one was.
    pub(super) fn challenge(&self, path: &str, problem: Option<&TokenProblem>) -> HeaderValue {
        let mut parts = Vec::new();
        if let Some(public_url) = &self.public_url {
            let path = if path == MCP_PATH { MCP_PATH } else { "" };
            parts.push(format!("resource_metadata=\"{public_url}{METADATA_PATH}{path}\""));
        }
        let scopes = self.issuers.scopes();
        if !scopes.is_empty() {
            parts.push(format!("scope=\"{}\"", scopes.join(" ")));
        }
        match problem {
            Some(TokenProblem::MissingScopes(_)) => {
                parts.push("error=\"insufficient_scope\"".to_owned());
            }
            Some(_) => parts.push("error=\"invalid_token\"".to_owned()),
            None => {}
        }
        let value = HeaderValue::try_from(format!("Bearer {}", parts.join(", ")).trim_end());
        // A path with other characters was percent-encoded.
        value.unwrap_or(HeaderValue::from_static("Bearer"))
    }

    /// Returns the status of a refusal.
    pub(super) fn status(problem: &TokenProblem) -> StatusCode {
        match problem {
            TokenProblem::MissingScopes(_) => StatusCode::FORBIDDEN,
            TokenProblem::UnknownIssuer
            | TokenProblem::Invalid(_)
            | TokenProblem::Unavailable(_) => StatusCode::UNAUTHORIZED,
        }
    }
}
