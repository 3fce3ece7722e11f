//! A client of an authorization server, and its authentication there.

use std::time::Duration;

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use ring::{rand::SystemRandom, signature};
use serde_json::json;

use super::auth_method::AuthMethod;
use crate::{
    base::{now_seconds, random_token},
    config::Secret,
};

/// A client with everything that it needs to request tokens.
#[derive(Clone, Debug)]
pub(super) struct AuthClient {
    pub(super) id: String,
    pub(super) method: AuthMethod,
    /// The client's secret, or its key for [`AuthMethod::PrivateKeyJwt`].
    pub(super) secret: Option<Secret>,
    /// The key's name.
    pub(super) key_id: Option<String>,
    /// Set only for a client that dormouse has registered.
    pub(super) redirect_uri: Option<String>,
    /// End of a registration made by dormouse, in seconds since 1970; `None` if it does not end.
    pub(super) expires_at: Option<u64>,
    /// The scopes that dormouse registered the client with; empty if they are unknown or all are
    /// allowed.
    pub(super) registered_scopes: Vec<String>,
}

/// Reason for which the client of the config cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("the keychain has no entry {0:?}, which \"clientSecret\" names")]
    NoSecret(String),
    #[error("cannot read the client's secret: {0}")]
    Unreadable(String),
    #[error("\"privateKey\" is not a PKCS #8 PEM for ES256 or RS256")]
    BadKey,
}

impl AuthClient {
    /// Returns whether the client may request these scopes: many authorization servers refuse
    /// scopes that the client did not name at its registration (RFC 7591 section 2, `scope`).
    pub(super) fn may_ask_for(&self, scopes: &[String]) -> bool {
        self.registered_scopes.is_empty()
            || scopes.iter().all(|scope| self.registered_scopes.contains(scope))
    }

    /// Returns the parameters with which a client authenticates by its key (RFC 7523 section 2.2);
    /// empty for other clients.
    ///
    /// # Errors
    /// When the key cannot be used.
    pub(super) fn assertion(
        &self,
        issuer: &str,
    ) -> Result<Vec<(&'static str, String)>, ClientError> {
        let (AuthMethod::PrivateKeyJwt, Some(key)) = (self.method, &self.secret) else {
            return Ok(Vec::new());
        };
        let signed = assertion(key, self.key_id.as_deref(), &self.id, issuer)?;
        Ok(vec![
            ("client_assertion_type", ASSERTION_TYPE.to_owned()),
            ("client_assertion", signed.expose().to_owned()),
        ])
    }
}

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Signs an assertion with which a client authenticates by its key (RFC 7523 section 3).
fn assertion(
    key: &Secret,
    key_id: Option<&str>,
    client: &str,
    audience: &str,
) -> Result<Secret, ClientError> {
    const ASSERTION_LIFETIME: Duration = Duration::from_mins(5);
    let key = SigningKey::from_pem(key.expose()).ok_or(ClientError::BadKey)?;
    let now = now_seconds();
    let claims = json!({
        "iss": client, "sub": client, "aud": audience, "jti": random_token::<16>(),
        "iat": now, "exp": now + ASSERTION_LIFETIME.as_secs(),
    });
    let mut header = json!({"alg": key.algorithm(), "typ": "JWT"});
    if let Some(key_id) = key_id {
        header["kid"] = key_id.into();
    }
    let encoded = |value: &serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encoded(&header), encoded(&claims));
    let signature = key.sign(signed.as_bytes()).ok_or(ClientError::BadKey)?;
    Ok(Secret::new(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))))
}

enum SigningKey {
    Es256(signature::EcdsaKeyPair),
    Rs256(signature::RsaKeyPair),
}

impl SigningKey {
    fn from_pem(pem: &str) -> Option<Self> {
        let lines = pem.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
        let der = BASE64_STANDARD.decode(lines.collect::<String>()).ok()?;
        let curve = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        if let Ok(key) = signature::EcdsaKeyPair::from_pkcs8(curve, &der, &SystemRandom::new()) {
            return Some(Self::Es256(key));
        }
        signature::RsaKeyPair::from_pkcs8(&der).ok().map(Self::Rs256)
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::Rs256(_) => "RS256",
        }
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Es256(key) => Some(key.sign(&random, message).ok()?.as_ref().to_vec()),
            Self::Rs256(key) => {
                let mut signed = vec![0; key.public().modulus_len()];
                key.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signed).ok()?;
                Some(signed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertion_is_signed_with_the_clients_key() {
        let curve = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let document =
            signature::EcdsaKeyPair::generate_pkcs8(curve, &SystemRandom::new()).unwrap();
        let text = BASE64_STANDARD.encode(document.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
        let assertion =
            assertion(&Secret::new(pem), Some("k1"), "c", "https://as.example").unwrap();
        let (signed, signature) = assertion.expose().rsplit_once('.').unwrap();
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
        let pair =
            signature::EcdsaKeyPair::from_pkcs8(curve, document.as_ref(), &SystemRandom::new());
        let pair = pair.unwrap();
        let public = signature::KeyPair::public_key(&pair);
        let public = signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, public);
        public.verify(signed.as_bytes(), &signature).unwrap();
        let header = BASE64_URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().0).unwrap();
        let header: serde_json::Value = serde_json::from_slice(&header).unwrap();
        assert_eq!(header, json!({"alg": "ES256", "typ": "JWT", "kid": "k1"}));
        let claims = BASE64_URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!((&claims["sub"], &claims["aud"]), (&json!("c"), &json!("https://as.example")));
        let error = super::assertion(&Secret::new("nonsense"), None, "c", "a").unwrap_err();
        assert!(matches!(error, ClientError::BadKey));
    }
}
