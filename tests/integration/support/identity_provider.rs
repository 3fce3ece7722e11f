//! An identity provider: it publishes keys, and signs access tokens.

use std::{
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::response::Response;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};

use super::remote::{RecordedRequest, Remote, json_text};

pub struct IdentityProvider {
    remote: Remote,
    keys: Arc<Mutex<Vec<SigningKey>>>,
    /// The answers about opaque tokens.
    known: Arc<Mutex<Value>>,
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
        let (published, told) = (keys.clone(), known.clone());
        let remote = Remote::start(move |asked: RecordedRequest| {
            let answer = answer(&asked, &published, &told);
            async move { Some(answer) }
        });
        Self { remote: remote.await, keys, known }
    }

    pub fn issuer(&self) -> String {
        self.remote.url.trim_end_matches("/mcp").to_owned()
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

    /// Returns a token with these claims in addition to those that every token has. A claim that is
    /// `null` is left out.
    pub fn token(&self, claims: &Value) -> String {
        let key = self.keys.lock().unwrap()[0].clone();
        self.token_of(&key, &json!({"alg": "ES256", "kid": key.id, "typ": "at+jwt"}), claims)
    }

    /// Returns a token with this header, whatever it says.
    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        let key = self.keys.lock().unwrap()[0].clone();
        self.token_of(&key, header, claims)
    }

    /// Returns a token that is signed with a key which the provider does not have.
    pub fn forged_token(&self, claims: &Value) -> String {
        let id = self.keys.lock().unwrap()[0].id.clone();
        self.token_of(&SigningKey::new(&id), &json!({"alg": "ES256", "kid": id}), claims)
    }

    fn token_of(&self, key: &SigningKey, header: &Value, claims: &Value) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut all = json!({
            "iss": self.issuer(), "aud": "https://mcp.example.com/mcp", "sub": "ada",
            "exp": now + 600, "iat": now,
        });
        let all_members = all.as_object_mut().unwrap();
        all_members.extend(claims.as_object().unwrap().clone());
        all_members.retain(|_, value| !value.is_null());
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(&all));
        let signature = key.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }
}

impl SigningKey {
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
            json!({"issuer": origin, "jwks_uri": format!("{origin}/jwks")})
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
