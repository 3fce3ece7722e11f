//! A person, as an access token describes it.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Maximum number of groups and scopes that are read from a token.
const MAX_NAMES: usize = 1000;

/// Tolerated difference of clocks, in seconds.
pub(super) const LEEWAY: u64 = 30;

/// The owner of an access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    /// The identity provider that knows the person.
    pub issuer: String,
    /// The name of the person there, which never changes.
    pub subject: String,
    pub groups: Vec<String>,
    pub scopes: Vec<String>,
    /// The time at which the token expires, in seconds since 1970.
    pub expires: u64,
}

impl Person {
    /// Reads the claims of a token: `sub`, `exp`, `scope` (RFC 8693) or `scp`, and the groups at a
    /// path of members (`realm_access.roles`). `None` without a subject or an expiry.
    pub(super) fn of(issuer: &str, claims: &Value, groups_claim: &str) -> Option<Self> {
        let groups = groups_claim.split('.').try_fold(claims, |value, member| value.get(member));
        let scopes = claims.get("scope").or_else(|| claims.get("scp"));
        Some(Self {
            issuer: issuer.to_owned(),
            subject: claims["sub"].as_str()?.to_owned(),
            groups: groups.map(names).unwrap_or_default(),
            scopes: scopes.map(words).unwrap_or_default(),
            expires: seconds(&claims["exp"])?,
        })
    }

    /// Returns a value that all tokens of the person have in common, and no other token has.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        person_fingerprint(&self.issuer, &self.subject)
    }
}

/// Returns the [`fingerprint`](Person::fingerprint) of the person whom an identity provider knows
/// under this subject.
pub(crate) fn person_fingerprint(issuer: &str, subject: &str) -> [u8; 32] {
    let digest = Sha256::new().chain_update("person").chain_update([0]);
    let digest = digest.chain_update(issuer).chain_update([0]);
    digest.chain_update(subject).finalize().into()
}

/// Returns a time of a token (RFC 7519, section 2, `NumericDate`), without its fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time beyond the range is the last or the first one"
)]
pub(super) fn seconds(time: &Value) -> Option<u64> {
    time.as_u64().or_else(|| time.as_f64().map(|time| time as u64))
}

/// Returns the names in an array of texts, or the one name.
fn names(value: &Value) -> Vec<String> {
    let texts = match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text.as_str()],
        _ => Vec::new(),
    };
    texts.into_iter().take(MAX_NAMES).map(str::to_owned).collect()
}

/// Returns the words of a text, or of an array of texts.
fn words(value: &Value) -> Vec<String> {
    let texts = names(value);
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    words.take(MAX_NAMES).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_of_several_providers_are_read() {
        let person = |claims: Value, groups| Person::of("https://i", &claims, groups);
        let read = person(
            json!({"sub": "7", "exp": 9, "scope": "a b", "groups": ["x", 1, "y"]}),
            "groups",
        );
        let read = read.unwrap();
        assert_eq!(
            (read.groups, read.scopes),
            (vec!["x".into(), "y".into()], vec!["a".into(), "b".into()])
        );
        let nested = json!({"sub": "7", "exp": 9, "scp": ["a"], "realm": {"roles": "x"}});
        let read = person(nested, "realm.roles").unwrap();
        assert_eq!((read.groups, read.scopes), (vec!["x".to_owned()], vec!["a".to_owned()]));
        assert_eq!(person(json!({"sub": "7"}), "groups"), None);
        assert_eq!(person(json!({"exp": 7}), "groups"), None);
        assert_eq!(person(json!({"sub": 7, "exp": 7}), "groups"), None);
    }

    #[test]
    fn fingerprint_is_that_of_the_issuer_and_the_subject() {
        let person = |issuer: &str, subject: &str, expires| {
            let claims = json!({"sub": subject, "exp": expires});
            Person::of(issuer, &claims, "groups").unwrap().fingerprint()
        };
        assert_eq!(person("i", "s", 1), person("i", "s", 2));
        assert_ne!(person("i", "s", 1), person("j", "s", 1));
        assert_ne!(person("is", "", 1), person("i", "s", 1));
    }
}
