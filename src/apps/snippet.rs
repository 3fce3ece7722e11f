//! Reads snippets with server entries, as READMEs and other documents show them.

use serde_json::Value;

use super::{
    app::UNKNOWN_APP,
    app_file::read_servers,
    entry::{TranslatedEntry, is_server_entry},
    variables::VariableContext,
};
use crate::config::Format;

/// Reads a pasted text: an entry, a name with an entry, or a whole file of an app. Each entry comes
/// with its name, if the text contains one.
///
/// # Errors
/// Returns the reason if the text is not valid JSON or does not have one of these forms.
pub(crate) fn parse_snippets(text: &str) -> Result<Vec<(Option<String>, TranslatedEntry)>, String> {
    let text = text.trim();
    let text = if text.starts_with('{') { text.to_owned() } else { format!("{{{text}}}") };
    let Value::Object(members) = Format::Json.value(&text)? else {
        return Err("expected an object".to_owned());
    };
    let variables = VariableContext::for_unknown_file();
    let read = |members| TranslatedEntry::read(members, UNKNOWN_APP.timeout, &variables);
    if is_server_entry(&members) {
        return Ok(vec![(None, read(members))]);
    }
    let root = Value::Object(members.clone());
    let found = read_servers(&root, UNKNOWN_APP.servers, None);
    let found = found.unwrap_or_else(|| members.into_iter().collect());
    let named = |(name, entry): (String, Value)| match entry {
        Value::Object(members) if is_server_entry(&members) => Ok((Some(name), read(members))),
        _ => Err(format!("{name:?} is not a server: it has neither a \"command\" nor a \"url\"")),
    };
    found.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn snippets_of_all_forms_are_read() {
        let entry = json!({"command": "npx", "args": ["-y", "x"]});
        for text in [
            r#"{"mcpServers": {"x": {"command": "npx", "args": ["-y", "x"]}}}"#,
            r#""x": { "command": "npx", "args": ["-y", "x"], }"#,
            r#"{"x": {"type": "local", "command": ["npx", "-y", "x"]}} // OpenCode"#,
            r#"{"servers": {"x": {"command": "npx", "args": ["-y", "x"], "disabled": false}}}"#,
        ] {
            let found = parse_snippets(text).unwrap();
            assert_eq!(found[0].0.as_deref(), Some("x"), "{text}");
            assert_eq!(Value::Object(found[0].1.members.clone()), entry, "{text}");
        }
        let found =
            parse_snippets(r#"{"serverUrl": "https://x", "autoApprove": [], "disabled": true}"#);
        let (name, entry) = found.unwrap().remove(0);
        assert_eq!((name, entry.is_enabled), (None, false));
        assert_eq!(Value::Object(entry.members), json!({"url": "https://x"}));
        insta::assert_snapshot!(entry.notes.join("\n"));
    }

    #[test]
    fn snippets_without_a_server_are_refused() {
        for text in ["{", "[]", "{}x", r#"{"x": 1}"#, r#"{"x": {"transport": "stdio"}}"#] {
            assert!(parse_snippets(text).is_err(), "{text}");
        }
    }
}
