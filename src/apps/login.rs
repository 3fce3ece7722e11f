//! Translates the OAuth settings of apps into the keys of dormouse's config.

use serde_json::{Map, Value, json};

/// Returns `oauth` for an entry of dormouse's config, and the keys that it does not support.
///
/// `oauth` is empty if discovery will find everything that the login needs.
pub(super) fn oauth(theirs: Map<String, Value>) -> (Map<String, Value>, Vec<String>) {
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
            ("redirectUri" | "redirect_uri", place) => {
                ours.insert("redirectUri".to_owned(), place);
            }
            ("callbackPort", Value::Number(port)) => {
                let place = format!("http://localhost:{port}/callback");
                ours.insert("redirectUri".to_owned(), json!(place));
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
    fn what_each_app_calls_it_is_called_as_here() {
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
            let (ours, left_out) = oauth(theirs);
            assert_eq!(Value::Object(ours), expected);
            assert!(left_out.iter().all(|key| key == "oauth.tokenParamName"));
        }
    }
}
