//! Finds secrets that appear in plain text in entries and files, masks them, and moves them to
//! `.env`.

use std::path::Path;

use serde_json::{Map, Value};

use super::variables::variable_name;
use crate::config::{
    ConfigFile, Format, Mask,
    secrecy::{defaults, named, of_arguments, of_url, replaced},
};

/// A secret in plain text, and the variable that can replace it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaintextSecret {
    pub location: SecretLocation,
    pub value: String,
    pub variable: String,
}

/// The location of a secret in the entry of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretLocation {
    Env(String),
    Header(String),
    /// A member of `oauth`, by its key.
    Login(String),
    Argument(usize),
    Url,
    /// Any other location in a file.
    Elsewhere,
}

impl std::fmt::Display for SecretLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env.{name}"),
            Self::Header(name) => write!(f, "headers.{name}"),
            Self::Login(name) => write!(f, "oauth.{name}"),
            Self::Argument(index) => write!(f, "args[{index}]"),
            Self::Url => f.write_str("url"),
            Self::Elsewhere => f.write_str("elsewhere"),
        }
    }
}

/// Returns the secrets in the entry of a server.
pub(crate) fn find_secrets(server: &str, entry: &Map<String, Value>) -> Vec<PlaintextSecret> {
    let mut found = Vec::new();
    let mut push = |location: SecretLocation, value: Option<&str>, variable: &str| {
        if let Some(value) = value.filter(|value| !value.contains("${")) {
            let variable = variable_name(variable);
            found.push(PlaintextSecret { location, value: value.to_owned(), variable });
        }
    };
    for (name, value) in members(entry, "env") {
        push(SecretLocation::Env(name.to_owned()), named(name, value), name);
    }
    for (name, value) in members(entry, "headers") {
        push(
            SecretLocation::Header(name.to_owned()),
            named(name, value),
            &format!("{server}_{name}"),
        );
    }
    for (name, value) in members(entry, "oauth") {
        let is_elsewhere = value.starts_with("keychain:");
        let value = named(name, value).filter(|_| !is_elsewhere);
        push(SecretLocation::Login(name.to_owned()), value, &format!("{server}_{name}"));
    }
    let args = entry.get("args").and_then(Value::as_array);
    let args: Vec<&str> =
        args.into_iter().flatten().map(|arg| arg.as_str().unwrap_or("")).collect();
    let by_name = of_arguments(&args);
    for (position, (name, value)) in &by_name {
        push(SecretLocation::Argument(*position), Some(value), &format!("{server}_{name}"));
    }
    for (position, argument) in args.iter().enumerate() {
        if by_name.iter().all(|(known, _)| *known != position) {
            for (name, value) in of_url(argument) {
                push(SecretLocation::Argument(position), Some(&value), &format!("{server}_{name}"));
            }
        }
    }
    let url = entry.get("url").and_then(Value::as_str).unwrap_or_default();
    for (name, value) in of_url(url) {
        push(SecretLocation::Url, Some(&value), &format!("{server}_{name}"));
    }
    found
}

fn members<'a>(
    entry: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let members = entry.get(key).and_then(Value::as_object).into_iter().flatten();
    members.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

/// Returns all values in a text that look like secrets, so that the text can be shown with these
/// masked. The text may be a file of any program.
pub(crate) fn find_secrets_in_text(path: &Path, text: &str) -> Vec<PlaintextSecret> {
    let mut found = Vec::new();
    if let Ok(root) = Format::of(path).value(text) {
        collect_secrets(&root, &mut found);
    }
    // A reference is not a secret. Secret defaults within references are found as values of their
    // own.
    found.retain(|value| !["${", "{env:", "{file:"].iter().any(|start| value.contains(start)));
    found.into_iter().map(bare_secret).collect()
}

/// Returns a secret that is only masked: it has no location and no variable.
pub(crate) fn bare_secret(value: String) -> PlaintextSecret {
    PlaintextSecret { location: SecretLocation::Elsewhere, value, variable: String::new() }
}

fn collect_secrets(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) => {
                        found.extend(named(name, text).map(str::to_owned));
                        found.extend(of_url(text).into_iter().map(|(_, value)| value));
                        found.extend(defaults(name, text));
                    }
                    // Lists of tokens, such as `authTokens` in dormouse's config.
                    Value::Array(elements) if name.to_lowercase().ends_with("tokens") => {
                        found.extend(elements.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    value => collect_secrets(value, found),
                }
            }
        }
        Value::Array(elements) => {
            let words: Vec<&str> = elements.iter().map(|one| one.as_str().unwrap_or("")).collect();
            found.extend(of_arguments(&words).into_iter().map(|(_, (_, value))| value.to_owned()));
            let mut name = "";
            for word in words {
                found.extend(of_url(word).into_iter().map(|(_, value)| value));
                found.extend(defaults(name, word));
                name = word;
            }
            for element in elements {
                collect_secrets(element, found);
            }
        }
        _ => {}
    }
}

/// Returns the entry with each secret replaced by a reference to its variable.
fn replace_secrets(entry: &Map<String, Value>, secrets: &[PlaintextSecret]) -> Map<String, Value> {
    let mut entry = entry.clone();
    for PlaintextSecret { location, .. } in secrets {
        let at = match location {
            SecretLocation::Env(name) => entry.get_mut("env").and_then(|env| env.get_mut(name)),
            SecretLocation::Header(name) => {
                entry.get_mut("headers").and_then(|all| all.get_mut(name))
            }
            SecretLocation::Login(name) => entry.get_mut("oauth").and_then(|all| all.get_mut(name)),
            SecretLocation::Argument(index) => {
                entry.get_mut("args").and_then(|args| args.get_mut(index))
            }
            SecretLocation::Url => entry.get_mut("url"),
            SecretLocation::Elsewhere => None,
        };
        // All secrets of one location are replaced together, at the first of them.
        if let Some(Value::String(text)) = at.filter(|text| !text.to_string().contains("${")) {
            let here = secrets.iter().filter(|other| other.location == *location);
            let here: Vec<(String, String)> =
                here.map(|s| (s.value.clone(), format!("${{{}}}", s.variable))).collect();
            // A reference behind a `$` would be literal text.
            *text = replaced(text, here, |before, _| !before.ends_with('$'));
        }
    }
    entry
}

/// Moves the secrets of an entry to the `.env` file next to the config.
///
/// Returns the config with the new variables, and the entry with references to them. `others` is
/// the text of all other entries that will be added to the config: a variable that the config or
/// `others` refers to is not given another value.
pub(crate) fn move_secrets(
    file: &ConfigFile,
    server: &str,
    entry: &Map<String, Value>,
    secrets: &[PlaintextSecret],
    others: &str,
) -> (ConfigFile, Map<String, Value>) {
    let mut file = file.clone();
    let environment = file.environment();
    let mut kept = Vec::new();
    for secret in secrets {
        let of_server = variable_name(&format!("{server}_{}", secret.variable));
        let numbered = (2..).map(|number| format!("{of_server}_{number}"));
        let mut names = [secret.variable.clone(), of_server.clone()].into_iter().chain(numbered);
        let is_free = |name: &String| {
            if let Some(value) = file.env_file().value(name) {
                return value == secret.value;
            }
            let is_meant = environment.get(name).is_none_or(|value| value == secret.value);
            let reference = format!("${{{name}");
            is_meant && !file.text().contains(&reference) && !others.contains(&reference)
        };
        let variable = names.find(is_free).expect("there is no end to numbers");
        if file.env_file().value(&variable).is_none() {
            file = file.with_variables(&env_line(&variable, &secret.value));
        }
        kept.push(PlaintextSecret { variable, ..secret.clone() });
    }
    let entry = replace_secrets(entry, &kept);
    (file, entry)
}

/// Returns the text with all secrets masked.
pub(crate) fn mask_secrets(text: &str, secrets: &[PlaintextSecret]) -> String {
    Mask::new(secrets.iter().map(|secret| secret.value.clone())).masked(text)
}

/// Returns the value with the secrets in all its strings masked. Keys are not masked.
pub(crate) fn mask_secrets_in_value(value: &Value, secrets: &[PlaintextSecret]) -> Value {
    match value {
        Value::String(text) => Value::String(mask_secrets(text, secrets)),
        Value::Array(elements) => {
            elements.iter().map(|element| mask_secrets_in_value(element, secrets)).collect()
        }
        Value::Object(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(key, value)| (key.clone(), mask_secrets_in_value(value, secrets)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// Returns the line of a `.env` file that sets this variable.
fn env_line(name: &str, value: &str) -> String {
    // dotenvy takes a backslash before the closing single quote for an escape.
    if value.contains(['\'', '\n']) || value.ends_with('\\') {
        let mut escaped = String::new();
        for c in value.chars() {
            match c {
                '\n' => escaped.push_str("\\n"),
                '"' | '\\' | '$' => escaped.extend(['\\', c]),
                c => escaped.push(c),
            }
        }
        format!("{name}=\"{escaped}\"\n")
    } else {
        format!("{name}='{value}'\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(entry: Value) -> Vec<String> {
        let Value::Object(entry) = entry else { panic!("no object") };
        let found = find_secrets("s", &entry).into_iter();
        found
            .map(|secret| format!("{} {} {}", secret.location, secret.value, secret.variable))
            .collect()
    }

    #[test]
    fn secrets_are_found_by_name_and_by_form() {
        let env = json!({
            "TOKEN": "abc", "DB_PASSWORD": "correct horse", "AWS_SECRET_ACCESS_KEY": "wJa/K7",
            "SSH_KEY_PATH": "/home/u/.ssh/id", "API_KEY": "true",
            "KEYBOARD_LAYOUT": "dvorak-programmer",
            "AUTH_MODE": "none", "PAT": "0123456789", "OTHER": "ghp_0123456789abcdef",
            "DSN": "postgres://u:pw@h/db", "REFERENCE_TOKEN": "${X}", "PASS": "hunter2",
            "AUTH_HEADER": "Bearer b1", "GH_PAT": "abc/defgh", "KEY_FILE": "/x/y",
            "SSH_KEY": "~/.ssh/id",
        });
        insta::assert_snapshot!(found(json!({"env": env})).join("\n"));
        let args = json!([
            "-y",
            "mcp-remote",
            "--header",
            "Authorization: Bearer abcdef",
            "-e",
            "TOKEN=xyz",
            "--api-key",
            "k1",
            "--password=k2",
            "--header=X-Api-Key: k5",
            "Authorization=Basic k6",
            "sk-0123456789abcdef",
            "--port",
            "8080",
            "x:y",
        ]);
        insta::assert_snapshot!(found(json!({"args": args})).join("\n"));
        let remote = json!({
            "url": "https://u:pw@h/mcp?api_key=k3&page=2&token=pwpw",
            "headers": {"Authorization": "Digest d1", "X-Api-Key": "k4",
            "Accept": "a", "Cookie": ""},
        });
        insta::assert_snapshot!(found(remote).join("\n"));
        assert_eq!(found(json!({"headers": {"Authorization": "Bearer "}})), [""; 0]);
    }

    #[test]
    fn all_secrets_in_a_file_are_masked() {
        let text = r#"{"globalApiKey": "sk-ant-0", "token": "${TOKEN}", "authTokens": ["t1-long"],
            "mcpServers": {"off": {
            "disabled": true, "env": {"API_KEY": "DISABLED"}, "args": ["--token", "a\"b"]}}}"#;
        let shown = mask_secrets(text, &find_secrets_in_text(Path::new("x.json"), text));
        for secret in ["sk-ant-0", "t1-long", "DISABLED", "a\\\"b"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        assert!(shown.contains("${TOKEN}"), "{shown}");
    }

    #[test]
    fn only_the_secret_parts_become_references() {
        let file = ConfigFile::in_memory("dormouse.json", "{}");
        let Value::Object(entry) = json!({"url": "https://u:abc@h/mcp?token=abcdef&api_key=S"})
        else {
            panic!("no object")
        };
        let (_, entry) = move_secrets(&file, "s", &entry, &find_secrets("s", &entry), "");
        let url = "https://u:${S_PASSWORD}@h/mcp?token=${S_TOKEN}&api_key=${S_API_KEY}";
        assert_eq!(entry["url"], url);
    }

    #[test]
    fn masking_leaves_similar_words() {
        let short = [bare_secret("postgres".to_owned()), bare_secret("e".to_owned())];
        assert_eq!(
            mask_secrets("postgres-mcp --env 'e' postgres", &short),
            "postgres-mcp --env '•••' •••"
        );
        let block = [bare_secret("-----BEGIN KEY-----\nMIIabc\n".to_owned())];
        let shown = mask_secrets("  KEY: |\n    -----BEGIN KEY-----\n    MIIabc\n", &block);
        assert_eq!(shown, "  KEY: |\n    •••\n    •••\n");
    }

    #[test]
    fn values_of_any_characters_are_read_back_from_the_variables() {
        let values = ["it's $x", "ends with \\", "C:\\new", "two\nlines", "'\"\\'", "# \t\\\\"];
        for value in values {
            let line = env_line("TOKEN", value) + &env_line("NEXT", "n");
            let file = ConfigFile::in_memory("dormouse.json", "{}").with_variables(&line);
            assert_eq!(file.env_file().value("TOKEN").as_deref(), Some(value), "{line}");
            assert_eq!(file.env_file().value("NEXT").as_deref(), Some("n"), "{line}");
        }
    }

    #[test]
    fn variable_that_is_referenced_keeps_its_value() {
        let file = ConfigFile::in_memory("dormouse.json", "{\"a\": \"${TOKEN}\"}");
        let Value::Object(entry) = json!({"env": {"TOKEN": "it's $x"}}) else {
            panic!("no object")
        };
        let (file, entry) = move_secrets(&file, "s", &entry, &find_secrets("s", &entry), "");
        assert_eq!(entry["env"]["TOKEN"], "${S_TOKEN}");
        assert_eq!(file.env_file().value("S_TOKEN").as_deref(), Some("it's $x"));
    }
}
