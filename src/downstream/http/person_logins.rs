//! The logins of people to servers with `"login": "user"`, between the requests of their browsers.
//!
//! What is between two steps is in a cookie that only replicas can read. It also proves that the
//! browser is the same one, so that nobody can have another person complete a login.

use std::{sync::Arc, time::Duration};

use axum::http::{HeaderMap, header};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

use super::protected_resource::ProtectedResource;
use crate::{
    auth::{Auth, PublicAddress, PublicLogins},
    base::{SealUse, SealingKeys, now_seconds},
};

/// Time for each of the steps.
const STEP_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum length of a sealed cookie.
const MAX_COOKIE_BYTES: usize = 4096;

/// What the pages need.
pub(crate) struct PersonLogins {
    pub(crate) resource: Arc<ProtectedResource>,
    pub(crate) address: PublicAddress,
    pub(crate) logins: PublicLogins,
    pub(crate) auth: Auth,
    /// Seal the cookies. All replicas have the same ones.
    pub(crate) keys: SealingKeys,
}

/// A person is proving who they are.
#[derive(Serialize, Deserialize)]
pub(super) struct BegunSignIn {
    pub(super) server: String,
    pub(super) issuer: String,
    /// The verifier of the code (RFC 7636).
    pub(super) verifier: String,
    pub(super) state: String,
}

/// A person is logging in to a server.
#[derive(Serialize, Deserialize)]
pub(super) struct BegunLogin {
    pub(super) id: String,
}

impl PersonLogins {
    /// Returns the cookie that carries a step of a login to the next one. `of`: the random name of
    /// the step.
    pub(super) fn cookie(&self, of: &str, step: &impl Serialize) -> String {
        let until = now_seconds() + STEP_TIMEOUT.as_secs();
        let step = serde_json::to_vec(&(until, step)).expect("texts can be encoded");
        let sealed = self.keys.seal(SealUse::LoginStep, of.as_bytes(), &step);
        let sealed = BASE64_URL_SAFE_NO_PAD.encode(sealed);
        let secure = if self.is_secure() { "; Secure" } else { "" };
        let (name, age) = (self.cookie_name(of), STEP_TIMEOUT.as_secs());
        format!("{name}={sealed}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}")
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
        self.address.with("").scheme() == "https"
    }
}
