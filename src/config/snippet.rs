//! Entries of servers as the documents of other programs show them, to be taken into a config of ours.

use serde_json::{Map, Value};

use super::{document::Step, format::Format, schema};

/// Where programs have their servers.
const PLACES: [&str; 3] = ["mcpServers", "servers", "context_servers"];

/// An entry that was read, in the keys of our config.
#[derive(Clone, Debug, PartialEq)]
pub struct Snippet {
    /// Where the text said it.
    pub name: Option<String>,
    pub entry: Value,
    /// Keys that mean nothing here.
    pub left_out: Vec<String>,
}

/// Reads what somebody has pasted: an entry, a name with an entry, or a whole file with `mcpServers`.
///
/// # Errors
/// When it is nothing of that, or no JSON at all; why.
pub fn snippets(text: &str) -> Result<Vec<Snippet>, String> {
    let text = text.trim();
    let text = if text.starts_with('{') { text.to_owned() } else { format!("{{{text}}}") };
    let value = Format::Json.read(&text).map_err(|error| error.message)?.to_value();
    let Value::Object(mut members) = value else { return Err("expected an object".to_owned()) };
    let place = PLACES.iter().find(|place| members.get(**place).is_some_and(Value::is_object));
    if let Some(Value::Object(servers)) = place.and_then(|place| members.remove(*place)) {
        members = servers;
    } else if is_entry(&members) {
        let (entry, left_out) = in_our_keys(members);
        return Ok(vec![Snippet { name: None, entry, left_out }]);
    }
    let snippet = |(name, entry): (String, Value)| match entry {
        Value::Object(members) if is_entry(&members) => {
            let (entry, left_out) = in_our_keys(members);
            Ok(Snippet { name: Some(name), entry, left_out })
        }
        _ => Err(format!("{name:?} is no server: it has neither a \"command\" nor a \"url\"")),
    };
    members.into_iter().map(snippet).collect()
}

fn is_entry(members: &Map<String, Value>) -> bool {
    ["command", "url", "serverUrl", "httpUrl"].iter().any(|key| members.contains_key(*key))
}

/// The entry with our names for what others call otherwise, and the keys that mean nothing here.
fn in_our_keys(members: Map<String, Value>) -> (Value, Vec<String>) {
    let path = [Step::Key("mcpServers".to_owned()), Step::Key("any".to_owned())];
    let known = schema::known_keys(&path);
    let (mut entry, mut left_out) = (Map::new(), Vec::new());
    for (key, value) in members {
        match (key.as_str(), value) {
            ("command", Value::Array(words)) => {
                let mut words = words.into_iter();
                entry.insert("command".to_owned(), words.next().unwrap_or_default());
                entry.insert("args".to_owned(), words.collect());
            }
            ("serverUrl" | "httpUrl", url) => drop(entry.insert("url".to_owned(), url)),
            ("environment", variables) => drop(entry.insert("env".to_owned(), variables)),
            ("disabled", Value::Bool(is_disabled)) => {
                if is_disabled {
                    entry.insert("enabled".to_owned(), Value::Bool(false));
                }
            }
            // Their words for what the other keys say anyway.
            ("type", Value::String(kind)) if matches!(kind.as_str(), "local" | "remote") => {}
            (key, value) if known.iter().any(|known| known == key) => {
                entry.insert(key.to_owned(), value);
            }
            (key, _) => left_out.push(key.to_owned()),
        }
    }
    (Value::Object(entry), left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_a_document_shows_is_understood() {
        let entry = json!({"command": "npx", "args": ["-y", "x"]});
        for text in [
            r#"{"mcpServers": {"x": {"command": "npx", "args": ["-y", "x"]}}}"#,
            r#""x": { "command": "npx", "args": ["-y", "x"], }"#,
            r#"{"x": {"type": "local", "command": ["npx", "-y", "x"]}} // OpenCode"#,
            r#"{"servers": {"x": {"command": "npx", "args": ["-y", "x"], "disabled": false}}}"#,
        ] {
            let found = snippets(text).unwrap();
            assert_eq!(found[0].name.as_deref(), Some("x"), "{text}");
            assert_eq!(found[0].entry, entry, "{text}");
        }
        let found = snippets(r#"{"serverUrl": "https://x", "autoApprove": [], "disabled": true}"#);
        let expected = Snippet {
            name: None,
            entry: json!({"url": "https://x", "enabled": false}),
            left_out: vec!["autoApprove".to_owned()],
        };
        assert_eq!(found, Ok(vec![expected]));
    }

    #[test]
    fn what_is_no_server_is_refused() {
        for text in ["{", "[]", "{}x", r#"{"x": 1}"#, r#"{"x": {"transport": "stdio"}}"#] {
            assert!(snippets(text).is_err(), "{text}");
        }
    }
}
