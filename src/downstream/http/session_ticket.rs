//! The ids of sessions that every replica can read: sealed, with what is needed to open the session
//! again at another replica.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::token_hash::TokenHash;
use crate::{
    base::{SealUse, SealingKeys, random_token},
    proxy::Endpoint,
    wire::{Raw, edit},
};

/// Maximum size of the parameters of `initialize` in an id, in bytes. Longer ones are left out, so
/// that the id fits into a header.
const MAX_PARAMS_BYTES: usize = 1500;
/// Maximum length of an id.
const MAX_ID_BYTES: usize = 4096;

/// The content of the id of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SessionTicket {
    /// The mark of the replica that has opened the session.
    #[serde(rename = "m")]
    pub(super) mark: String,
    /// A random text that no other session has.
    #[serde(rename = "k")]
    pub(super) key: String,
    /// The parameters of `initialize`; `None` if they are too long, and the session cannot be
    /// opened again.
    #[serde(rename = "i", skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<String>,
    /// True if the host can read an event that carries only an id.
    #[serde(rename = "p")]
    pub(super) is_primed: bool,
    /// The digest of the endpoint, which requests of the session have to name.
    #[serde(rename = "e")]
    pub(super) endpoint: [u8; 8],
}

impl SessionTicket {
    /// Makes the ticket of a new session.
    pub(super) fn new(
        mark: &str,
        endpoint: &Endpoint,
        params: Option<&Raw>,
        is_primed: bool,
    ) -> Self {
        let params = params.map(|params| edit::without(params, &["_meta"]));
        let params = params.map(|params| params.text().to_owned());
        let params = params.filter(|params| params.len() <= MAX_PARAMS_BYTES);
        Self {
            mark: mark.to_owned(),
            key: random_token::<12>(),
            params,
            is_primed,
            endpoint: digest(endpoint),
        }
    }

    /// Returns whether a session was opened at this endpoint.
    pub(super) fn is_for(&self, endpoint: &Endpoint) -> bool {
        self.endpoint == digest(endpoint)
    }

    /// Returns the id. Only requests with the same token can use it.
    pub(super) fn seal(&self, keys: &SealingKeys, token_hash: TokenHash) -> String {
        let text = serde_json::to_vec(self).expect("a ticket has a JSON form");
        let sealed = keys.seal(SealUse::SessionId, &context(token_hash), &text);
        BASE64_URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Reads an id; `None` if no replica has made it for this token.
    pub(super) fn open(keys: &SealingKeys, token_hash: TokenHash, id: &str) -> Option<Self> {
        if id.len() > MAX_ID_BYTES {
            return None;
        }
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(id).ok()?;
        let text = keys.open(SealUse::SessionId, &context(token_hash), &sealed)?;
        serde_json::from_slice(&text).ok()
    }
}

/// Returns the digest of an endpoint, equal at all replicas with the same config.
fn digest(endpoint: &Endpoint) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::digest(format!("{endpoint:?}")).into();
    digest[..8].try_into().expect("a digest has 32 bytes")
}

fn context(token_hash: TokenHash) -> Vec<u8> {
    token_hash.user().0.map(Vec::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Surface;

    #[test]
    fn id_opens_for_its_token_only_and_fits_into_a_header() {
        let keys = SealingKeys::new(["a key with at least thirty-two bytes"]).unwrap();
        let params = |length: usize| {
            Raw::encode(&serde_json::json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "n".repeat(length)}, "_meta": {"progressToken": 1},
            }))
        };
        let endpoint = Endpoint { surface: Surface::Discover, only: None, profile: None };
        let (none, token) = (TokenHash::default(), TokenHash::of("t"));
        let ticket = SessionTicket::new("mark", &endpoint, Some(&params(1000)), true);
        let id = ticket.seal(&keys, token);
        assert!(id.len() < 2000, "{}", id.len());
        assert_eq!(SessionTicket::open(&keys, token, &id), Some(ticket.clone()));
        assert_eq!(SessionTicket::open(&keys, none, &id), None);
        assert!(ticket.params.is_some_and(|params| !params.contains("_meta")));
        assert_eq!(SessionTicket::new("mark", &endpoint, Some(&params(2000)), true).params, None);
        for invalid in ["", "?", "AAAA", &"A".repeat(10_000)] {
            assert_eq!(SessionTicket::open(&keys, none, invalid), None);
        }
    }
}
