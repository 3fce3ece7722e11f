//! Translates the OAuth settings of apps into the keys of dormouse's config.

use serde_json::{Map, Value, json};

/// Returns `oauth` for an entry of dormouse's config, and the keys that it does not support.
///
/// `oauth` is empty if discovery will find everything that the login needs.
pub(super) fn translate_oauth(theirs: Map<String, Value>) -> (Map<String, Value>, Vec<String>) {
    let (mut ours, mut left_out) = (Map::new(), Vec::new());
    for (key, value) in theirs {
        match (key.as_str(), value) {
            // dormouse learns from the server itself whether it requires a login.
            (_, Value::Null) | ("enabled", _) => {}
            ("clientId" | "client_id" | "CLIENT_ID", id) => {
                ours.insert("clientId".to_owned(), id);
            }
            ("clientSecret" | "client_secret" | "CLIENT_SECRET", secret) => {
                ours.insert("clientSecret".to_owned(), secret);
            }
            ("scope" | "scopes", Value::String(scopes)) => {
                let scopes: Vec<&str> = scopes.split_whitespace().collect();
                ours.insert("scopes".to_owned(), json!(scopes));
            }
            ("scopes", scopes @ Value::Array(_)) => {
                ours.insert("scopes".to_owned(), scopes);
            }
            ("redirectUri" | "redirect_uri", uri) => {
                ours.insert("redirectUri".to_owned(), uri);
            }
            ("callbackPort", Value::Number(port)) => {
                let uri = format!("http://localhost:{port}/callback");
                ours.insert("redirectUri".to_owned(), json!(uri));
            }
            ("authServerMetadataUrl", address) => {
                ours.insert("authServer".to_owned(), address);
            }
            (other, _) => left_out.push(format!("oauth.{other}")),
        }
    }
    (ours, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_each_app_are_translated() {
        for (theirs, expected) in [
            (json!({}), json!({})),
            (
                json!({"clientId": "c", "callbackPort": 8080}),
                json!({"clientId": "c", "redirectUri": "http://localhost:8080/callback"}),
            ),
            (
                json!({"CLIENT_ID": "c", "CLIENT_SECRET": "s", "scopes": ["a"]}),
                json!({"clientId": "c", "clientSecret": "s", "scopes": ["a"]}),
            ),
            (
                json!({"enabled": true, "scope": "a b", "tokenParamName": "t"}),
                json!({"scopes": ["a", "b"]}),
            ),
        ] {
            let Value::Object(theirs) = theirs else { unreachable!() };
            let (ours, left_out) = translate_oauth(theirs);
            assert_eq!(Value::Object(ours), expected);
            assert!(left_out.iter().all(|key| key == "oauth.tokenParamName"));
        }
    }
}
