//! The keys about the store that several machines share.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::{KeyGroup, KeyProblem, key_class::AT_NEXT_START};
use crate::{
    base::{MIN_KEY_BYTES, SealingKeys},
    config::key_path::Step,
};

/// The settings for a store that several machines share.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StoreSettings {
    /// The address of a Redis or Valkey server that keeps logins, catalogs and loads for several
    /// machines, in place of files: `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `rediss://` for
    /// TLS.
    #[schemars(extend("x-class" = AT_NEXT_START.secret().expanded()))]
    pub store: Option<String>,
    /// Keys with which everything in `store` is sealed, so that the server cannot read it: texts of
    /// at least 32 bytes, which `dormouse store key` makes. The first one seals, and all of them
    /// open.
    #[schemars(extend("x-class" = AT_NEXT_START.secret().expanded()))]
    pub store_keys: Vec<String>,
    /// The first part of all names in `store`.
    #[schemars(extend("x-class" = AT_NEXT_START))]
    pub store_prefix: String,
    /// A file with the certificates that sign that of `store`, in PEM, in place of those of the
    /// system.
    #[schemars(extend("x-class" = AT_NEXT_START.expanded()))]
    pub store_certificates: Option<PathBuf>,
    /// The address at which other machines with the same `store` reach this one, such as
    /// `http://10.0.0.5:8080`; by default the one that it listens on, unless it has a
    /// `certificate`. Requests that only this machine can answer are forwarded there.
    #[schemars(extend("x-class" = AT_NEXT_START.expanded()))]
    pub replica_url: Option<String>,
}

impl Default for StoreSettings {
    fn default() -> Self {
        let (store, store_keys, store_certificates, replica_url) = Default::default();
        let store_prefix = "dormouse".to_owned();
        Self { store, store_keys, store_prefix, store_certificates, replica_url }
    }
}

impl std::fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.fmt_without_secrets("StoreSettings", f)
    }
}

impl StoreSettings {
    /// Returns the keys that all replicas share; `None` without a store or a key.
    pub(crate) fn sealing_keys(&self) -> Option<SealingKeys> {
        let keys = SealingKeys::new(self.store_keys.iter().map(String::as_str));
        keys.filter(|_| self.store.is_some())
    }
}

impl KeyGroup for StoreSettings {
    fn problems(&self, written: &Value) -> Vec<KeyProblem> {
        let key = |name: &str| Step::Key(name.to_owned());
        let is_open = |text: &str| text.contains("${");
        let mut problems = Vec::new();
        if let Some(store) = self.store.as_deref().filter(|text| !is_open(text)) {
            if !is_store(store) {
                let message = "expected \"redis://HOST:PORT\", or \"rediss://\" for TLS".to_owned();
                problems.push((vec![key("store")], message));
            }
            if self.store_keys.is_empty() && !written["storeKeys"].is_array() {
                let message = "storeKeys needs a key: run `dormouse store key`".to_owned();
                problems.push((vec![key("store")], message));
            }
        }
        for (at, text) in self.store_keys.iter().enumerate() {
            if text.len() < MIN_KEY_BYTES && !is_open(text) {
                let message = format!(
                    "expected at least {MIN_KEY_BYTES} bytes: `dormouse store key` makes a key"
                );
                problems.push((vec![key("storeKeys"), Step::Index(at)], message));
            }
        }
        if let Some(url) = self.replica_url.as_deref().filter(|text| !is_open(text))
            && !is_http(url)
        {
            let message = "expected \"http://HOST:PORT\", or https".to_owned();
            problems.push((vec![key("replicaUrl")], message));
        }
        if !is_prefix(&self.store_prefix) {
            let message = "expected letters, digits, \"-\", \"_\", \".\" and \":\"".to_owned();
            problems.push((vec![key("storePrefix")], message));
        }
        problems
    }
}

fn is_store(text: &str) -> bool {
    let has_scheme = |url: &Url| matches!(url.scheme(), "redis" | "rediss");
    Url::parse(text).is_ok_and(|url| has_scheme(&url) && url.has_host())
}

fn is_http(text: &str) -> bool {
    let has_scheme = |url: &Url| matches!(url.scheme(), "http" | "https");
    Url::parse(text).is_ok_and(|url| has_scheme(&url) && url.has_host() && url.query().is_none())
}

fn is_prefix(text: &str) -> bool {
    let is_plain = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | ':')
    };
    !text.is_empty() && text.len() <= 100 && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn address_keys_and_prefix_are_checked() {
        let long = "a key with at least thirty-two bytes";
        for (written, expected) in [
            (json!({}), vec![]),
            (json!({"store": "redis://h:6379/1", "storeKeys": [long]}), vec![]),
            (json!({"store": "rediss://u:p@h", "storeKeys": [long, long]}), vec![]),
            (json!({"store": "redis://h"}), vec!["store"]),
            (json!({"store": "http://h", "storeKeys": [long]}), vec!["store"]),
            (json!({"store": "redis:", "storeKeys": [long]}), vec!["store"]),
            (json!({"storeKeys": ["short"]}), vec!["storeKeys", "0"]),
            (json!({"storePrefix": "a}b"}), vec!["storePrefix"]),
            (json!({"storePrefix": ""}), vec!["storePrefix"]),
            (json!({"replicaUrl": "http://10.0.0.5:8080"}), vec![]),
            (json!({"replicaUrl": "10.0.0.5:8080"}), vec!["replicaUrl"]),
        ] {
            let settings: StoreSettings = serde_json::from_value(written.clone()).unwrap();
            let problems = settings.problems(&written);
            let path = problems.first().map(|(path, _)| path.iter());
            let path: Vec<String> = path
                .into_iter()
                .flatten()
                .map(|step| match step {
                    Step::Key(key) => key.clone(),
                    Step::Index(at) => at.to_string(),
                })
                .collect();
            assert_eq!(path, expected, "{written}");
        }
    }
}
