//! Secrets that stand in a text in plain.

use std::path::Path;

use serde_json::{Map, Value};

use super::variables::variable_name;
use crate::config::{ConfigFile, Format};

/// A secret, and the variable that may take its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    pub place: Place,
    pub value: String,
    pub variable: String,
}

/// Where in a server's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Env(String),
    Header(String),
    Argument(usize),
    Url,
    /// Somewhere else in a file.
    Elsewhere,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env.{name}"),
            Self::Header(name) => write!(f, "headers.{name}"),
            Self::Argument(index) => write!(f, "args[{index}]"),
            Self::Url => f.write_str("url"),
            Self::Elsewhere => f.write_str("elsewhere"),
        }
    }
}

/// Parts of names of what is secret, whatever it looks like.
const NAMES: [&str; 14] = [
    "token",
    "secret",
    "passw",
    "passphrase",
    "apikey",
    "api-key",
    "api_key",
    "accesskey",
    "access-key",
    "access_key",
    "privatekey",
    "private_key",
    "credential",
    "cookie",
];
/// Words of names of what may be secret.
const WORDS: [&str; 5] = ["key", "auth", "pat", "pwd", "pass"];
/// Last words of names of what only says where something is.
const PLACES: [&str; 8] = ["file", "path", "dir", "url", "uri", "id", "name", "host"];
/// What secrets of widely used services begin with.
const BEGINNINGS: [&str; 16] = [
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "hf_",
    "npm_",
    "eyJ",
    "ntn_",
    "-----BEGIN",
];
/// Shorter ones may be anything.
const SHORTEST: usize = 8;
const SHORTEST_BY_LOOK: usize = 16;

/// The secrets of a server's entry.
pub fn secrets(server: &str, entry: &Map<String, Value>) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut push = |place: Place, value: Option<&str>, variable: &str| {
        if let Some(value) = value.filter(|value| !value.contains("${")) {
            let variable = variable_name(variable);
            found.push(Secret { place, value: value.to_owned(), variable });
        }
    };
    for (name, value) in members(entry, "env") {
        push(Place::Env(name.to_owned()), secret(name, value), name);
    }
    for (name, value) in members(entry, "headers") {
        push(Place::Header(name.to_owned()), of_header(name, value), &format!("{server}_{name}"));
    }
    let args = entry.get("args").and_then(Value::as_array);
    let args: Vec<&str> =
        args.into_iter().flatten().map(|arg| arg.as_str().unwrap_or("")).collect();
    for (position, (name, value)) in of_arguments(&args) {
        push(Place::Argument(position), Some(value), &format!("{server}_{name}"));
    }
    let url = entry.get("url").and_then(Value::as_str).unwrap_or_default();
    for (name, value) in of_url(url) {
        push(Place::Url, Some(&value), &format!("{server}_{name}"));
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

/// What follows the scheme, if there is one.
fn of_header<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    if !name.to_lowercase().ends_with("authorization") {
        return secret(name, value);
    }
    let value = value.trim();
    let bare = value.split_once(' ').map_or(value, |(_, bare)| bare.trim());
    let is_scheme = ["bearer", "basic", "digest", "token"].contains(&bare.to_lowercase().as_str());
    (!bare.is_empty() && !is_scheme).then_some(bare)
}

/// By position, what each is called and the part of it that is secret.
fn of_arguments<'a>(args: &[&'a str]) -> Vec<(usize, (&'a str, &'a str))> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    let mut flag = "";
    let mut found = Vec::new();
    for (position, argument) in args.iter().copied().enumerate() {
        let assigned = argument.split_once('=').filter(|(name, _)| is_name(name));
        let header = argument.split_once(':').filter(|(name, _)| is_name(name));
        let (name, value) = match (assigned, header) {
            (Some((name, value)), _) => (name, secret(name, value)),
            (None, Some((name, value))) if of_header(name, value.trim()).is_some() => {
                (name, of_header(name, value.trim()))
            }
            _ => (flag, secret(flag, argument)),
        };
        if let Some(value) = value {
            let name = name.trim_start_matches('-');
            found.push((position, (if name.is_empty() { "secret" } else { name }, value)));
        }
        // What stands behind a value has no name.
        flag = if argument.starts_with('-') && !argument.contains('=') { argument } else { "" };
    }
    found
}

/// A password, and what the query says.
fn of_url(url: &str) -> Vec<(String, String)> {
    let Ok(url) = url::Url::parse(url) else { return Vec::new() };
    let password = url.password().map(|password| ("password".to_owned(), password.to_owned()));
    let pairs = url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let named =
        pairs.filter_map(|(name, value)| Some((name.to_owned(), secret(name, value)?.to_owned())));
    password.into_iter().chain(named).collect()
}

/// The part of the value that is secret, by its name or by its look.
fn secret<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    let name = name.to_lowercase();
    let words: Vec<&str> = name.split(['_', '-', '.', ' ']).collect();
    let is_place = words.last().is_some_and(|last| PLACES.contains(last));
    let is_plain = value.len() >= SHORTEST && !value.contains(['/', '\\', ' ']);
    let is_setting = matches!(value, "" | "true" | "false") || value.parse::<f64>().is_ok();
    let is_named = !is_place && NAMES.iter().any(|part| name.contains(part)) && !is_setting
        || !is_place && words.iter().any(|word| WORDS.contains(word)) && is_plain
        || words.last() == Some(&"pass") && !is_setting;
    let has_look = BEGINNINGS.iter().any(|beginning| value.starts_with(beginning))
        && value.len() >= SHORTEST_BY_LOOK;
    if is_named || has_look {
        return Some(value);
    }
    // `postgres://user:password@host/`
    let (_, rest) = value.split_once("://")?;
    let (user, _) = rest.split_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty() && !password.contains('/')).then_some(password)
}

/// All that looks secret in a file, whoever wrote it: to be hidden where the file is shown.
pub fn secrets_in(path: &Path, text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    if let Ok(root) = Format::of(path).value(text) {
        visit(&root, &mut found);
    }
    // References are none.
    found.retain(|value| !["${", "{env:", "{file:"].iter().any(|start| value.contains(start)));
    found.into_iter().map(hidden).collect()
}

/// A secret of which only its value matters.
pub fn hidden(value: String) -> Secret {
    Secret { place: Place::Elsewhere, value, variable: String::new() }
}

fn visit(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) => {
                        found.extend(of_header(name, text).map(str::to_owned));
                        found.extend(of_url(text).into_iter().map(|(_, value)| value));
                    }
                    // Lists of tokens, as ours are.
                    Value::Array(elements) if name.to_lowercase().ends_with("tokens") => {
                        found.extend(elements.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    value => visit(value, found),
                }
            }
        }
        Value::Array(elements) => {
            let words: Vec<&str> = elements.iter().map(|one| one.as_str().unwrap_or("")).collect();
            found.extend(of_arguments(&words).into_iter().map(|(_, (_, value))| value.to_owned()));
            for element in elements {
                visit(element, found);
            }
        }
        _ => {}
    }
}

/// The entry with a reference in the place of each secret.
fn with_references(entry: &Map<String, Value>, secrets: &[Secret]) -> Map<String, Value> {
    let mut entry = entry.clone();
    for Secret { place, value, variable } in secrets {
        let at = match place {
            Place::Env(name) => entry.get_mut("env").and_then(|env| env.get_mut(name)),
            Place::Header(name) => entry.get_mut("headers").and_then(|all| all.get_mut(name)),
            Place::Argument(index) => entry.get_mut("args").and_then(|args| args.get_mut(index)),
            Place::Url => entry.get_mut("url"),
            Place::Elsewhere => None,
        };
        if let Some(Value::String(text)) = at {
            *text = text.replace(value.as_str(), &format!("${{{variable}}}"));
        }
    }
    entry
}

/// Keeps the secrets of an entry in `.env` beside the config: the config with them, and the entry with references.
/// `others`: the text of what else comes into the config; no variable that it speaks of is given another value.
pub fn keep_secrets(
    file: &ConfigFile,
    server: &str,
    entry: &Map<String, Value>,
    secrets: &[Secret],
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
            if let Some(value) = file.variable(name) {
                return value == secret.value;
            }
            let is_meant = environment.get(name).is_none_or(|value| value == secret.value);
            let reference = format!("${{{name}");
            is_meant && !file.text().contains(&reference) && !others.contains(&reference)
        };
        let variable = names.find(is_free).expect("there is no end to numbers");
        if file.variable(&variable).is_none() {
            file = file.with_variables(&line(&variable, &secret.value));
        }
        kept.push(Secret { variable, ..secret.clone() });
    }
    let entry = with_references(entry, &kept);
    (file, entry)
}

/// A text in which no secret can be read.
pub fn masked(text: &str, secrets: &[Secret]) -> String {
    let mut values: Vec<&str> = secrets.iter().map(|secret| secret.value.as_str()).collect();
    values.retain(|value| !value.is_empty());
    // One may be a part of another.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values.into_iter().fold(text.to_owned(), |text, value| {
        // As it stands in a file.
        let written = Value::from(value).to_string();
        text.replace(written.trim_matches('"'), "•••").replace(value, "•••")
    })
}

/// The line of a `.env` file that says this.
fn line(name: &str, value: &str) -> String {
    if value.contains(['\'', '\n']) {
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
        let found = secrets("s", &entry).into_iter();
        found
            .map(|secret| format!("{} {} {}", secret.place, secret.value, secret.variable))
            .collect()
    }

    #[test]
    fn secrets_are_known_by_their_names_and_by_their_looks() {
        let env = json!({
            "TOKEN": "abc", "DB_PASSWORD": "correct horse", "AWS_SECRET_ACCESS_KEY": "wJa/K7",
            "SSH_KEY_PATH": "/home/u/.ssh/id", "API_KEY": "true", "KEYBOARD_LAYOUT": "dvorak-programmer",
            "AUTH_MODE": "none", "PAT": "0123456789", "OTHER": "ghp_0123456789abcdef",
            "DSN": "postgres://u:pw@h/db", "REFERENCE_TOKEN": "${X}", "PASS": "hunter2",
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
            "sk-0123456789abcdef",
            "--port",
            "8080",
            "x:y",
        ]);
        insta::assert_snapshot!(found(json!({"args": args})).join("\n"));
        let remote = json!({
            "url": "https://u:pw@h/mcp?api_key=k3&page=2",
            "headers": {"Authorization": "Digest d1", "X-Api-Key": "k4", "Accept": "a", "Cookie": ""},
        });
        insta::assert_snapshot!(found(remote).join("\n"));
        assert_eq!(found(json!({"headers": {"Authorization": "Bearer "}})), [""; 0]);
    }

    #[test]
    fn no_secret_of_a_file_can_be_read_where_it_is_shown() {
        let text = r#"{"globalApiKey": "sk-ant-0", "token": "${TOKEN}", "authTokens": ["t1-long"], "mcpServers": {"off": {
            "disabled": true, "env": {"API_KEY": "DISABLED"}, "args": ["--token", "a\"b"]}}}"#;
        let shown = masked(text, &secrets_in(Path::new("x.json"), text));
        for secret in ["sk-ant-0", "t1-long", "DISABLED", "a\\\"b"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        assert!(shown.contains("${TOKEN}"), "{shown}");
    }

    #[test]
    fn a_variable_that_others_speak_of_keeps_its_value() {
        let file = ConfigFile::unwritten("/nowhere/dormouse.json".into(), "{\"a\": \"${TOKEN}\"}");
        let Value::Object(entry) = json!({"env": {"TOKEN": "it's $x"}}) else {
            panic!("no object")
        };
        let (file, entry) = keep_secrets(&file, "s", &entry, &secrets("s", &entry), "");
        assert_eq!(entry["env"]["TOKEN"], "${S_TOKEN}");
        assert_eq!(file.variable("S_TOKEN").as_deref(), Some("it's $x"));
    }
}
