//! The public keys of an identity provider (RFC 7517), which it may replace at any time.

use std::{sync::Arc, time::Duration};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use jsonwebtoken::jwk::{Jwk, JwkSet};
use reqwest::Client;
use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::issuer_metadata::{IssuerMetadata, get_json};
use crate::base::Lock;

/// Minimum interval between two requests because of unknown keys, so that tokens with invented keys
/// cannot cause many.
const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// Age at which keys are requested again, so that a key that was withdrawn is forgotten.
const MAX_AGE: Duration = Duration::from_hours(1);

/// The keys of one identity provider, requested when a token names an unknown one.
pub(super) struct KeySet {
    issuer: String,
    /// The address of the keys; `None` for the one in the metadata of the issuer.
    url: Option<String>,
    client: Client,
    known: Lock<KnownKeys>,
}

#[derive(Default)]
struct KnownKeys {
    keys: Option<(JwkSet, Instant)>,
    /// The time of the last request that was made because there was no key, or has failed.
    last_attempt: Option<Instant>,
    /// The reason that the last request has failed.
    failure: Option<String>,
    /// The request in progress, for which all tokens without a key wait.
    running: Option<SharedRequest>,
}

type SharedRequest = Shared<BoxFuture<'static, ()>>;

/// The keys of a provider as published (RFC 7517, section 5).
#[derive(Deserialize)]
struct PublishedKeys {
    keys: Vec<serde_json::Value>,
}

impl KeySet {
    pub(super) fn new(issuer: String, url: Option<String>, client: Client) -> Arc<Self> {
        Arc::new(Self { issuer, url, client, known: Lock::default() })
    }

    /// Returns the key of this id; without an id the only key. `None` if there is no such key.
    ///
    /// # Errors
    /// The reason that the keys cannot be requested, while none are known.
    pub(super) async fn key(self: &Arc<Self>, id: Option<&str>) -> Result<Option<Jwk>, String> {
        let (found, request) = self.look(id);
        let (None, Some(request)) = (&found, request) else { return self.outcome(found) };
        request.await;
        let found = self.known.lock().find(id);
        self.outcome(found)
    }

    fn outcome(&self, found: Option<Jwk>) -> Result<Option<Jwk>, String> {
        let known = self.known.lock();
        match &known.failure {
            Some(why) if known.keys.is_none() => Err(why.clone()),
            _ => Ok(found),
        }
    }

    /// Returns a known key, and the request for the keys if one is due.
    fn look(self: &Arc<Self>, id: Option<&str>) -> (Option<Jwk>, Option<SharedRequest>) {
        let mut known = self.known.lock();
        let found = known.find(id);
        if let Some(running) = &known.running {
            return (found, Some(running.clone()));
        }
        let is_young = |(_, requested): &(JwkSet, Instant)| requested.elapsed() < MAX_AGE;
        let is_wanted = found.is_none() || !known.keys.as_ref().is_some_and(is_young);
        let may_ask = known.last_attempt.is_none_or(|last| last.elapsed() >= MIN_INTERVAL);
        if !is_wanted || !may_ask {
            return (found, None);
        }
        if known.keys.is_some() {
            known.last_attempt = Some(Instant::now());
        }
        // The request goes on without the token that has caused it.
        let requesting = AbortOnDropHandle::new(tokio::spawn(self.clone().request()));
        let request = requesting.map(|_| ()).boxed().shared();
        known.running = Some(request.clone());
        (found, Some(request))
    }

    async fn request(self: Arc<Self>) {
        let keys = self.requested_keys().await;
        let mut known = self.known.lock();
        known.running = None;
        match keys {
            Ok(keys) => {
                known.keys = Some((keys, Instant::now()));
                known.failure = None;
            }
            Err(why) => {
                tracing::warn!(issuer = self.issuer, why, "cannot request the keys of an issuer");
                known.last_attempt = Some(Instant::now());
                known.failure = Some(why);
            }
        }
    }

    async fn requested_keys(&self) -> Result<JwkSet, String> {
        let url = if let Some(url) = &self.url {
            url.clone()
        } else {
            let has_keys = |metadata: &IssuerMetadata| metadata.jwks_uri.is_some();
            let metadata = IssuerMetadata::request(&self.client, &self.issuer, has_keys).await?;
            metadata.jwks_uri.unwrap_or_default()
        };
        let PublishedKeys { keys } = get_json(&self.client, &url).await?;
        // A key of an unknown form does not hide the others.
        let keys = keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        Ok(JwkSet { keys: keys.collect() })
    }
}

impl KnownKeys {
    fn find(&self, id: Option<&str>) -> Option<Jwk> {
        let (keys, _) = self.keys.as_ref()?;
        match id {
            Some(id) => keys.find(id).cloned(),
            None => keys.keys.first().filter(|_| keys.keys.len() == 1).cloned(),
        }
    }
}
