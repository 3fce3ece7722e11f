//! The steps of a login of a person to a server. A sealed cookie carries the state from one step to
//! the next. It also proves that the same browser goes on, so that an attacker cannot have a victim
//! complete the login of the attacker.

use std::{sync::Arc, time::Duration};

use axum::http::{HeaderMap, header};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

use super::protected_resource::ProtectedResource;
use crate::{
    auth::{Auth, PublicLogins, RETURN_TIMEOUT},
    base::{SealUse, SealingKeys, now_seconds},
};

/// Maximum length of a sealed cookie.
const MAX_COOKIE_BYTES: usize = 4096;

/// The dependencies of the pages at which people log in.
pub(crate) struct PersonLogins {
    pub(crate) resource: Arc<ProtectedResource>,
    pub(crate) logins: PublicLogins,
    pub(crate) auth: Auth,
    /// Seal the cookies. Replicas of a service have the same ones.
    pub(crate) keys: SealingKeys,
}

/// The state of a sign-in at an identity provider.
#[derive(Serialize, Deserialize)]
pub(super) struct BegunSignIn {
    pub(super) server: String,
    pub(super) issuer: String,
    /// The verifier of the code (RFC 7636).
    pub(super) verifier: String,
    pub(super) state: String,
}

/// The state of a login at the authorization server of a server.
#[derive(Serialize, Deserialize)]
pub(super) struct BegunLogin {
    pub(super) id: String,
}

impl PersonLogins {
    /// Returns the cookie that carries a step of a login to the next one. `of`: the random name of
    /// the step.
    pub(super) fn cookie(&self, of: &str, step: &impl Serialize) -> String {
        let until = now_seconds() + RETURN_TIMEOUT.as_secs();
        let step = serde_json::to_vec(&(until, step)).expect("texts can be encoded");
        let sealed = self.keys.seal(SealUse::LoginStep, of.as_bytes(), &step);
        let sealed = BASE64_URL_SAFE_NO_PAD.encode(sealed);
        self.set_cookie(of, &sealed, RETURN_TIMEOUT)
    }

    /// Returns the cookie that removes the one of a step.
    pub(super) fn expired_cookie(&self, of: &str) -> String {
        self.set_cookie(of, "", Duration::ZERO)
    }

    fn set_cookie(&self, of: &str, value: &str, age: Duration) -> String {
        let secure = if self.is_secure() { "; Secure" } else { "" };
        let (name, age) = (self.cookie_name(of), age.as_secs());
        format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}")
    }

    /// Opens the cookie of a step that is not too old.
    pub(super) fn opened<T: DeserializeOwned>(&self, headers: &HeaderMap, of: &str) -> Option<T> {
        let name = self.cookie_name(of);
        let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            all.flat_map(|text| text.split(';')).filter_map(|pair| pair.split_once('='));
        let (_, sealed) = pairs.find(|(other, _)| other.trim() == name)?;
        let sealed = Some(sealed.trim()).filter(|sealed| sealed.len() <= MAX_COOKIE_BYTES)?;
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let step = self.keys.open(SealUse::LoginStep, of.as_bytes(), &sealed)?;
        let (until, step): (u64, T) = serde_json::from_slice(&step).ok()?;
        (now_seconds() <= until).then_some(step)
    }

    /// Returns the name of a cookie. Browsers take one with `__Host-` only from this very host.
    fn cookie_name(&self, of: &str) -> String {
        let hash = BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(of)[..9]);
        let prefix = if self.is_secure() { "__Host-" } else { "" };
        format!("{prefix}dormouse-login-{hash}")
    }

    fn is_secure(&self) -> bool {
        self.logins.address().with("").scheme() == "https"
    }
}
