//! An identity provider: it publishes keys, and signs access tokens.

use std::{
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::remote::{RecordedRequest, Remote, json_text};

pub struct IdentityProvider {
    remote: Remote,
    keys: Arc<Mutex<Vec<SigningKey>>>,
    /// The answers about opaque tokens.
    known: Arc<Mutex<Value>>,
    /// The person who has signed in with a browser.
    signed_in: Arc<Mutex<Value>>,
}

#[derive(Clone)]
struct SigningKey {
    id: String,
    pair: Arc<EcdsaKeyPair>,
}

impl IdentityProvider {
    pub async fn start() -> Self {
        let keys: Arc<Mutex<Vec<SigningKey>>> = Arc::new(Mutex::new(vec![SigningKey::new("1")]));
        let known = Arc::new(Mutex::new(json!({})));
        let signed_in: Arc<Mutex<Value>> = Arc::default();
        let (published, told, present) = (keys.clone(), known.clone(), signed_in.clone());
        let remote = Remote::start(move |asked: RecordedRequest| {
            let answer = match asked.path.as_str() {
                "/authorize" => authorize(&asked, &present.lock().unwrap()),
                "/token" => give_token(&asked, &published),
                _ => answer(&asked, &published, &told),
            };
            async move { Some(answer) }
        });
        Self { remote: remote.await, keys, known, signed_in }
    }

    pub fn issuer(&self) -> String {
        self.remote.url.trim_end_matches("/mcp").to_owned()
    }

    /// Has a person sign in: the next browser is theirs.
    pub fn sign_in(&self, person: &str) {
        self.sign_in_with(person, &json!({}));
    }

    /// As [`sign_in`](Self::sign_in), with more claims in the token.
    pub fn sign_in_with(&self, person: &str, claims: &Value) {
        let mut all = claims.clone();
        all["sub"] = json!(person);
        *self.signed_in.lock().unwrap() = all;
    }

    /// Replaces the key that signs. The former one is not published any more.
    pub fn replace_key(&self) {
        let mut keys = self.keys.lock().unwrap();
        let next = SigningKey::new(&format!("{}x", keys[0].id));
        *keys = vec![next];
    }

    /// Sets the answer about an opaque token.
    pub fn know(&self, token: &str, answer: Value) {
        self.known.lock().unwrap()[token] = answer;
    }

    /// Returns how often the keys were requested.
    pub fn key_requests(&self) -> usize {
        self.remote.requests().iter().filter(|asked| asked.path == "/jwks").count()
    }

    /// Returns how often codes were exchanged for tokens.
    pub fn exchanges(&self) -> usize {
        self.remote.requests().iter().filter(|asked| asked.path == "/token").count()
    }

    /// Returns a token with these claims in addition to those that every token has. A claim that is
    /// `null` is left out.
    pub fn token(&self, claims: &Value) -> String {
        let key = self.keys.lock().unwrap()[0].clone();
        key.token(&self.issuer(), &json!({"alg": "ES256", "kid": key.id, "typ": "at+jwt"}), claims)
    }

    /// Returns a token with this header, whatever it says.
    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        let key = self.keys.lock().unwrap()[0].clone();
        key.token(&self.issuer(), header, claims)
    }

    /// Returns a token that is signed with a key which the provider does not have.
    pub fn forged_token(&self, claims: &Value) -> String {
        let id = self.keys.lock().unwrap()[0].id.clone();
        let header = json!({"alg": "ES256", "kid": id});
        SigningKey::new(&id).token(&self.issuer(), &header, claims)
    }
}

impl SigningKey {
    fn token(&self, issuer: &str, header: &Value, claims: &Value) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut all = json!({
            "iss": issuer, "aud": "https://mcp.example.com/mcp", "sub": "ada",
            "exp": now + 600, "iat": now,
        });
        let all_members = all.as_object_mut().unwrap();
        all_members.extend(claims.as_object().unwrap().clone());
        all_members.retain(|_, value| !value.is_null());
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(&all));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    fn new(id: &str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self { id: id.to_owned(), pair: Arc::new(pair) }
    }

    fn published(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let encoded = |part| BASE64_URL_SAFE_NO_PAD.encode(part);
        json!({
            "kty": "EC", "crv": "P-256", "kid": self.id, "use": "sig", "x": encoded(x),
            "y": encoded(y),
        })
    }
}

fn answer(
    asked: &RecordedRequest,
    keys: &Mutex<Vec<SigningKey>>,
    known: &Mutex<Value>,
) -> Response {
    let origin = format!("http://{}", asked.header("host").expect("a host"));
    let answer = match asked.path.as_str() {
        "/.well-known/oauth-authorization-server" => {
            json!({
                "issuer": origin, "jwks_uri": format!("{origin}/jwks"),
                "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"),
            })
        }
        "/jwks" => {
            let keys = keys.lock().unwrap();
            json!({"keys": keys.iter().map(SigningKey::published).collect::<Vec<_>>()})
        }
        _ => {
            let form = super::form(&asked.body);
            let is_ours = asked.header("authorization") == Some("Basic dXM6c2VjcmV0");
            let known = known.lock().unwrap();
            known
                .get(&form["token"])
                .filter(|_| is_ours)
                .cloned()
                .unwrap_or(json!({"active": false}))
        }
    };
    json_text(&answer.to_string())
}

/// Sends a browser back with a code, which tells the person and the challenge.
fn authorize(asked: &RecordedRequest, person: &Value) -> Response {
    let wanted = super::form(&asked.query);
    let is_valid = wanted["client_id"] == "dormouse"
        && wanted["response_type"] == "code"
        && wanted["code_challenge_method"] == "S256"
        && wanted["resource"] == "https://mcp.example.com/mcp";
    assert!(is_valid, "{wanted:?}");
    let mut back = url::Url::parse(&wanted["redirect_uri"]).unwrap();
    let mut claims = person.clone();
    claims["scope"] = json!(wanted["scope"]);
    let code = format!("{} {claims}", wanted["code_challenge"]);
    back.query_pairs_mut().extend_pairs([("code", code.as_str()), ("state", &wanted["state"])]);
    (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response()
}

/// Exchanges such a code.
fn give_token(asked: &RecordedRequest, keys: &Mutex<Vec<SigningKey>>) -> Response {
    let form = super::form(&asked.body);
    let (challenge, claims) = form["code"].split_once(' ').unwrap();
    let claims: Value = serde_json::from_str(claims).unwrap();
    let verifier = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
    // Of "dormouse" and "canary secret".
    let is_client = asked.header("authorization") == Some("Basic ZG9ybW91c2U6Y2FuYXJ5K3NlY3JldA==");
    if verifier != challenge || !is_client {
        return (StatusCode::BAD_REQUEST, json_text(r#"{"error": "invalid_grant"}"#))
            .into_response();
    }
    let origin = format!("http://{}", asked.header("host").expect("a host"));
    let key = keys.lock().unwrap()[0].clone();
    let header = json!({"alg": "ES256", "kid": key.id});
    let token = key.token(&origin, &header, &claims);
    json_text(&json!({"access_token": token, "token_type": "Bearer"}).to_string())
}
