//! The identity of a login.

use sha2::{Digest as _, Sha256};

use crate::{
    base::hex,
    config::{Grant, OAuth, Remote},
};

/// Identifies a login. Entries with the same URL, client, authorization server and grant share one;
/// with the client credentials grant, also with the same scopes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LoginKey(String);

impl LoginKey {
    pub(super) fn of(remote: &Remote, oauth: &OAuth) -> Self {
        let mut url = remote.url.clone();
        url.set_fragment(None);
        let client = oauth.client.as_ref().map(|client| &client.id);
        let authority = oauth.auth_server.as_ref().map(url::Url::as_str);
        // A user's login gains scopes that the server demands; the client credentials grant
        // requests those of the entry.
        let scopes = (oauth.grant == Grant::ClientCredentials).then_some(&oauth.scopes);
        let decisive =
            serde_json::json!([url.as_str(), client, authority, oauth.grant.name(), scopes]);
        Self(hex(&Sha256::digest(decisive.to_string())[..16]))
    }

    #[cfg(test)]
    pub(super) fn of_test(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Returns the name of the entry in the keychain.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the stored login.
    pub(super) fn stored_name(&self) -> String {
        format!("{}.json", self.0)
    }

    /// Returns the name of the lease of the login.
    pub(super) fn lease_name(&self) -> String {
        format!("{}.lock", self.0)
    }
}
