//! The identity of a login.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::{
    base::hex,
    config::{Grant, OAuth, Remote},
};

/// A person with logins of their own, as a hash that identifies them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoginOwner(pub(crate) [u8; 32]);

/// Identifies a login. Entries with the same URL, client, authorization server and grant share one;
/// with the client credentials grant, also with the same scopes. A person may have a login of their
/// own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LoginKey(String);

impl LoginKey {
    /// `owner`: the person whose login it is; `None` for that of all hosts.
    pub(super) fn of(remote: &Remote, oauth: &OAuth, owner: Option<LoginOwner>) -> Self {
        match owner {
            None => Self::with(&decisive(remote, oauth)),
            Some(LoginOwner(person)) => {
                Self::with(&json!([decisive(remote, oauth), "person", hex(&person)]))
            }
        }
    }

    /// Returns the key of the client that is registered for the logins of people, who share it.
    pub(super) fn of_shared_client(remote: &Remote, oauth: &OAuth, redirect_uri: &Url) -> Self {
        Self::with(&json!([decisive(remote, oauth), "client", redirect_uri.as_str()]))
    }

    fn with(decisive: &Value) -> Self {
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

fn decisive(remote: &Remote, oauth: &OAuth) -> Value {
    let mut url = remote.url.clone();
    url.set_fragment(None);
    let client = oauth.client.as_ref().map(|client| &client.id);
    let authority = oauth.auth_server.as_ref().map(Url::as_str);
    // A user's login gains scopes that the server demands; the client credentials grant requests
    // those of the entry.
    let scopes = (oauth.grant == Grant::ClientCredentials).then_some(&oauth.scopes);
    json!([url.as_str(), client, authority, oauth.grant.name(), scopes])
}
