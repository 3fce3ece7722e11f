//! Secrets that stand in an entry in plain text.

use serde_json::{Map, Value};

use super::variables::variable_name;
use crate::config::ConfigFile;

/// A secret, and the variable that may take its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// As in `env.GITHUB_TOKEN`.
    pub place: String,
    pub value: String,
    pub variable: String,
}

/// Names of what is secret.
const NAMES: [&str; 12] = [
    "token",
    "secret",
    "passw",
    "apikey",
    "api-key",
    "api_key",
    "accesskey",
    "access-key",
    "access_key",
    "privatekey",
    "credential",
    "cookie",
];
/// What secrets of widely used services begin with.
const BEGINNINGS: [&str; 14] = [
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
];
/// What stands in a header before the secret.
const SCHEMES: [&str; 4] = ["Bearer ", "bearer ", "Basic ", "token "];
const SHORTEST: usize = 8;

/// The secrets of a server's entry.
pub fn secrets(server: &str, entry: &Map<String, Value>) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut push = |place: String, value: Option<&str>, variable: &str| {
        if let Some(value) = value.filter(|value| !value.contains("${")) {
            let variable = variable_name(variable);
            found.push(Secret { place, value: value.to_owned(), variable });
        }
    };
    for (name, value) in members(entry, "env") {
        push(format!("env.{name}"), secret(name, value), name);
    }
    for (name, value) in members(entry, "headers") {
        let bare = SCHEMES.iter().find_map(|scheme| value.strip_prefix(scheme));
        let is_secret = bare.is_some() || name.eq_ignore_ascii_case("authorization");
        let value = if is_secret { Some(bare.unwrap_or(value)) } else { secret(name, value) };
        push(format!("headers.{name}"), value, &format!("{server}_{name}"));
    }
    let mut before = "";
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    for (position, argument) in args.filter_map(Value::as_str).enumerate() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (name, value),
            _ => (before, argument),
        };
        let named = if name.starts_with('-') { secret(name, value) } else { secret("", value) };
        let variable = format!("{server}_{}", name.trim_start_matches('-'));
        push(format!("args[{position}]"), named, &variable);
        before = argument;
    }
    let url = entry.get("url").and_then(Value::as_str).and_then(|url| url::Url::parse(url).ok());
    if let Some(url) = url {
        let password = url.password().map(str::to_owned);
        push("url".to_owned(), password.as_deref(), &format!("{server}_password"));
        for pair in url.query().unwrap_or_default().split('&') {
            if let Some((name, value)) = pair.split_once('=') {
                push("url".to_owned(), secret(name, value), &format!("{server}_{name}"));
            }
        }
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

/// The part of the value that is secret, by its name or by its look.
fn secret<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    let name = name.to_lowercase();
    // `KEY`, but neither `KEYBOARD` nor `MONKEY`.
    let is_named = NAMES.iter().any(|part| name.contains(part))
        || name.split(['_', '-']).any(|word| matches!(word, "key" | "auth" | "pat" | "pwd"));
    let has_look =
        BEGINNINGS.iter().any(|beginning| value.starts_with(beginning)) && value.len() >= 16;
    let is_plain = value.len() >= SHORTEST && !value.contains(['/', '\\', ' ']);
    if is_named && is_plain || has_look {
        return Some(value);
    }
    // `postgres://user:password@host/`
    let (_, rest) = value.split_once("://")?;
    let (user, _) = rest.split_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty() && !password.contains('/')).then_some(password)
}

/// The entry with a reference in the place of each secret.
fn with_references(entry: &Map<String, Value>, secrets: &[Secret]) -> Map<String, Value> {
    let mut entry = Value::Object(entry.clone());
    for Secret { place, value, variable } in secrets {
        let reference = format!("${{{variable}}}");
        let at = match place.split_once('.') {
            Some((key, name)) => entry.get_mut(key).and_then(|members| members.get_mut(name)),
            None => match place.split_once('[') {
                Some((key, index)) => {
                    let index = index.trim_end_matches(']').parse::<usize>().ok();
                    index.and_then(|index| entry.get_mut(key)?.get_mut(index))
                }
                None => entry.get_mut(place),
            },
        };
        if let Some(Value::String(text)) = at {
            *text = text.replace(value.as_str(), &reference);
        }
    }
    match entry {
        Value::Object(entry) => entry,
        _ => Map::new(),
    }
}

/// Keeps the secrets of an entry in `.env` beside the config: the config with them, and the entry with references.
pub fn keep_secrets(
    file: &ConfigFile,
    server: &str,
    entry: &Map<String, Value>,
    secrets: &[Secret],
) -> (ConfigFile, Map<String, Value>) {
    let mut file = file.clone();
    let mut kept = Vec::new();
    for secret in secrets {
        let of_server = variable_name(&format!("{server}_{}", secret.variable));
        let numbered = (2..).map(|number| format!("{of_server}_{number}"));
        let mut names = [secret.variable.clone(), of_server.clone()].into_iter().chain(numbered);
        let is_free = |name: &String| file.variable(name).is_none_or(|value| value == secret.value);
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
    secrets.iter().fold(text.to_owned(), |text, secret| {
        // As it stands in a file.
        let written = Value::from(secret.value.as_str()).to_string();
        text.replace(written.trim_matches('"'), "•••").replace(&secret.value, "•••")
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
