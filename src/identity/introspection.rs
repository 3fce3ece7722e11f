//! Tokens whose content only the identity provider knows, which is asked about each (RFC 7662).

use reqwest::Client;
use serde_json::Value;

use super::{
    Person, TokenProblem,
    issuer_metadata::read_json,
    person::{LEEWAY, seconds},
};
use crate::{
    base::{now_seconds, with_causes},
    config::IntrospectionEntry,
    config::IssuerEntry,
};

/// Asks an identity provider about a token.
pub(super) async fn introspect(
    client: &Client,
    issuer: &IssuerEntry,
    entry: &IntrospectionEntry,
    audiences: &[String],
    token: &str,
) -> Result<Person, TokenProblem> {
    let form = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("token", token), ("token_type_hint", "access_token")])
        .finish();
    let request = client
        .post(&entry.url)
        .basic_auth(&entry.client_id, Some(&entry.client_secret))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "application/json")
        .body(form);
    let answer = request.send().await;
    let answer = answer.map_err(|error| TokenProblem::Unavailable(with_causes(&error)))?;
    let claims: Value = read_json(answer).await.map_err(TokenProblem::Unavailable)?;
    person_of(issuer, audiences, claims)
}

/// Returns the owner of a token by the answer about it. A token that a client has got for itself
/// may have no subject, and is named after the client.
fn person_of(
    issuer: &IssuerEntry,
    audiences: &[String],
    mut claims: Value,
) -> Result<Person, TokenProblem> {
    let invalid = |why: &str| TokenProblem::Invalid(why.to_owned());
    let now = now_seconds();
    let is_early = seconds(&claims["nbf"]).is_some_and(|begin| begin > now + LEEWAY);
    let is_late = seconds(&claims["exp"]).is_some_and(|end| end + LEEWAY < now);
    if is_early || is_late {
        return Err(invalid("it has expired, or is not valid yet"));
    }
    if claims["active"] != true {
        return Err(invalid("it is not active"));
    }
    if claims.get("iss").is_some_and(|named| *named != issuer.issuer.as_str()) {
        return Err(invalid("it is of another issuer"));
    }
    let is_meant =
        |audience: &Value| audience.as_str().is_some_and(|it| audiences.iter().any(|a| a == it));
    let is_for_us = match &claims["aud"] {
        Value::Array(named) => named.iter().any(is_meant),
        named => is_meant(named),
    };
    if !is_for_us {
        return Err(invalid("it is for another audience"));
    }
    if claims.get("sub").is_none()
        && let Some(client) = claims["client_id"].as_str()
    {
        claims["sub"] = format!("client:{client}").into();
    }
    let person = Person::of(&issuer.issuer, &claims, &issuer.groups_claim);
    person.ok_or_else(|| invalid("it has no subject, or does not expire"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_active_token_for_us_has_an_owner() {
        let issuer = IssuerEntry { issuer: "https://i".to_owned(), ..IssuerEntry::default() };
        let of = |change: Value| {
            let mut claims =
                json!({"active": true, "sub": "7", "exp": 4_000_000_000_u64, "aud": ["x", "us"]});
            claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            person_of(&issuer, &["us".to_owned()], claims).is_ok()
        };
        assert!(of(json!({})) && of(json!({"iss": "https://i", "aud": "us"})));
        for change in [
            json!({"active": false}),
            json!({"active": "true"}),
            json!({"aud": "them"}),
            json!({"aud": null}),
            json!({"iss": "https://j"}),
            json!({"exp": null}),
            json!({"exp": 5}),
            json!({"nbf": 4_000_000_000_u64}),
        ] {
            assert!(!of(change.clone()), "{change}");
        }
    }

    #[test]
    fn token_without_a_subject_is_that_of_its_client() {
        let issuer = IssuerEntry { issuer: "https://i".to_owned(), ..IssuerEntry::default() };
        let subject = |named: Value| {
            let mut claims = json!({"active": true, "exp": 4_000_000_000_u64, "aud": "us"});
            claims.as_object_mut().unwrap().extend(named.as_object().unwrap().clone());
            person_of(&issuer, &["us".to_owned()], claims).ok().map(|person| person.subject)
        };
        assert_eq!(subject(json!({"client_id": "robot"})).as_deref(), Some("client:robot"));
        assert_eq!(subject(json!({"client_id": "app", "sub": "7"})).as_deref(), Some("7"));
        assert_eq!(subject(json!({"client_id": "app", "sub": null})), None);
        assert_eq!(subject(json!({})), None);
    }
}
