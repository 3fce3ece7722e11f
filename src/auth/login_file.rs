//! The format of a stored login.

use secrecy::zeroize::Zeroizing;
use serde::{Deserialize, Serialize};

use super::credential::{Credential, LoginFacts, Tokens};
use crate::config::Secret;

/// The content of a login's file.
#[derive(Serialize, Deserialize)]
pub(super) struct LoginFile {
    version: u8,
    #[serde(flatten)]
    pub(super) facts: LoginFacts,
    /// `None` if the keychain has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secrets: Option<StoredSecrets>,
}

const FORMAT_VERSION: u8 = 1;

impl LoginFile {
    /// Returns the content for a login. `secrets` are those that the keychain does not have.
    pub(super) fn new(facts: LoginFacts, secrets: Option<StoredSecrets>) -> Self {
        Self { version: FORMAT_VERSION, facts, secrets }
    }

    /// Reads the content of a file; `None` if it has another form.
    pub(super) fn decode(text: &[u8]) -> Option<Self> {
        let kept: Self = serde_json::from_slice(text).ok()?;
        (kept.version == FORMAT_VERSION).then_some(kept)
    }

    /// Returns the content of the file.
    ///
    /// # Errors
    /// Never in practice: all members can be JSON.
    pub(super) fn encode(&self) -> serde_json::Result<Zeroizing<Vec<u8>>> {
        serde_json::to_vec_pretty(self).map(Zeroizing::new)
    }

    /// Returns the login. `in_keychain` reads its secrets if they are not in the file.
    ///
    /// # Errors
    /// The error of `in_keychain`.
    pub(super) fn into_login<E>(
        self,
        in_keychain: impl FnOnce() -> Result<StoredSecrets, E>,
    ) -> Result<Credential, E> {
        let Self { facts, secrets, .. } = self;
        let is_in_file = secrets.is_some();
        let secrets = secrets.map_or_else(in_keychain, Ok)?;
        let StoredSecrets { access_token, refresh_token, client_secret } = secrets;
        let tokens = access_token.map(|access| Tokens { access, refresh: refresh_token });
        Ok(Credential { facts, client_secret, tokens, is_in_file })
    }
}

/// The secrets of a login, in its file or in the keychain.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredSecrets {
    #[serde(default, with = "exposed", skip_serializing_if = "Option::is_none")]
    access_token: Option<Secret>,
    #[serde(default, with = "exposed", skip_serializing_if = "Option::is_none")]
    refresh_token: Option<Secret>,
    #[serde(default, with = "exposed", skip_serializing_if = "Option::is_none")]
    client_secret: Option<Secret>,
}

impl StoredSecrets {
    pub(super) fn of(login: &Credential) -> Self {
        Self {
            access_token: login.tokens.as_ref().map(|tokens| tokens.access.clone()),
            refresh_token: login.tokens.as_ref().and_then(|tokens| tokens.refresh.clone()),
            client_secret: login.client_secret.clone(),
        }
    }
}

/// Serialization of secrets as text, which happens nowhere else.
mod exposed {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::config::Secret;

    #[expect(clippy::ref_option, reason = "as serde wants it")]
    pub(super) fn serialize<S: Serializer>(
        secret: &Option<Secret>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        secret.as_ref().map(Secret::expose).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Secret>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(Secret::new))
    }
}
