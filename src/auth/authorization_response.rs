//! The response of an authorization server to a login in a browser: the query of the redirect URI
//! (RFC 6749 section 4.1.2).

use url::Url;

use super::login_error::scrubbed;

/// The response that a login waits for.
pub(super) struct ExpectedResponse<'a> {
    /// Distinguishes this login from others.
    pub(super) state: &'a str,
    /// The issuer in the metadata of the authorization server.
    pub(super) issuer: Option<&'a str>,
    /// True if the metadata announces that responses name the issuer.
    pub(super) names_issuer: bool,
}

/// A response with a code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AuthorizationResponse {
    pub(super) code: String,
    pub(super) state: String,
    pub(super) issuer: Option<String>,
}

/// The reason for which a response has no usable code.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InvalidResponse {
    /// The response does not belong to this login.
    Foreign,
    WrongIssuer,
    /// The authorization server refuses, for this reason.
    Refused(String),
}

impl ExpectedResponse<'_> {
    /// Reads the address at which a browser has returned.
    pub(super) fn read(&self, returned: &Url) -> Result<AuthorizationResponse, InvalidResponse> {
        let brought = |name: &str| {
            let mut pairs = returned.query_pairs();
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let state = brought("state").filter(|state| *state == self.state);
        let state = state.ok_or(InvalidResponse::Foreign)?;
        let issuer = brought("iss");
        if (issuer.is_some() || self.names_issuer) && issuer.as_deref() != self.issuer {
            // The response, even an error, may be from an attacker's server, and its code must not
            // go to this token endpoint (RFC 9207 section 2.4).
            return Err(InvalidResponse::WrongIssuer);
        }
        if let Some(error) = brought("error") {
            let about = brought("error_description").map(|about| format!(": {about}"));
            let reason = error + &about.unwrap_or_default();
            return Err(InvalidResponse::Refused(scrubbed(&reason, &[])));
        }
        let code = brought("code").ok_or(InvalidResponse::Foreign)?;
        Ok(AuthorizationResponse { code, state, issuer })
    }
}
