//! Secrets in a config, found by their names and forms, and masked in texts.

use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;

use super::{Launch, Remote, ServerConfig, Transport};

/// Parts of names that always mean a secret.
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
/// Words of names that may mean a secret.
const WORDS: [&str; 6] = ["key", "auth", "pat", "pwd", "pass", "bearer"];
/// Last words of names that only say where something is.
const PLACES: [&str; 8] = ["file", "path", "dir", "url", "uri", "id", "name", "host"];
/// Prefixes of secrets of widely used services.
const SECRET_PREFIXES: [&str; 16] = [
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
/// Words that precede a secret.
const SCHEMES: [&str; 4] = ["bearer", "basic", "digest", "token"];
/// Minimum length of a value that is a secret by its form, in bytes.
const MIN_SECRET_BYTES: usize = 8;
const MIN_RANDOM_BYTES: usize = 16;
const MIN_PATH_BYTES: usize = 20;
/// Minimum length of a value that is masked anywhere, in bytes: shorter ones occur in any text.
const MIN_VALUE_BYTES: usize = 6;

/// The replacement of a secret.
const HIDDEN: &str = "•••";

/// Removes secrets from texts by their values, since servers repeat them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mask {
    /// Masked wherever they occur.
    long: Vec<String>,
    /// Masked only as whole words, because a short secret can be a part of any word.
    short: Vec<String>,
}

impl Mask {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = Vec::new();
        for secret in secrets {
            // The forms in JSON, and in JSON that is a text of JSON, as in results of tools.
            let once = escaped(&secret);
            values.extend([escaped(&once), once.replace('/', "\\/"), once]);
            values.extend(password_of(&secret));
            values.extend(secret.lines().map(|line| line.trim().to_owned()));
            values.push(secret);
        }
        values.retain(|value| !value.is_empty());
        let (long, short) = values.into_iter().partition(|value| value.len() >= MIN_RANDOM_BYTES);
        Self { long, short }
    }

    /// Returns a mask for all possible secrets of a server's config.
    pub(crate) fn of(server: &ServerConfig) -> Self {
        match &server.transport {
            Ok(Transport::Stdio(launch)) => Self::new(of_launch(launch)),
            Ok(Transport::Http(remote)) => Self::new(of_remote(remote)),
            Err(_) => Self::default(),
        }
    }

    /// Returns a mask for the secrets of a request, since some servers repeat them. `headers` are
    /// their values.
    pub(crate) fn of_request(headers: impl Iterator<Item = String>, url: &Url) -> Self {
        Self::new(of_request(headers, url))
    }

    /// Returns the text without the secrets.
    pub(crate) fn masked(&self, text: &str) -> String {
        if !self.long.iter().chain(&self.short).any(|value| text.contains(value.as_str())) {
            return text.to_owned();
        }
        let hidden =
            |values: &[String]| values.iter().map(|v| (v.clone(), HIDDEN.to_owned())).collect();
        let text = replaced(text, hidden(&self.long), |_, _| true);
        let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && !"-_".contains(c));
        replaced(&text, hidden(&self.short), |before, behind| {
            is_end(before.chars().next_back()) && is_end(behind.chars().next())
        })
    }
}

/// Returns a text with the escapes of JSON.
fn escaped(text: &str) -> String {
    let written = Value::from(text).to_string();
    written[1..written.len() - 1].to_owned()
}

/// Returns the password in a URL, such as that of a database.
fn password_of(secret: &str) -> Option<String> {
    let url = Url::parse(secret).ok()?;
    Some(percent_decode_str(url.password()?).decode_utf8_lossy().into_owned())
}

/// Every variable of the environment may be secret; places, numbers, booleans and inherited
/// variables only by their names.
fn of_launch(launch: &Launch) -> Vec<String> {
    let is_setting = |value: &str| {
        value.len() < MIN_VALUE_BYTES
            || value.starts_with(['/', '~', '.', '\\'])
            || value.parse::<f64>().is_ok()
            || matches!(value, "true" | "false")
    };
    let is_secret =
        |(name, value): &(&String, &String)| !is_setting(value) || is_named_so(name, value);
    let variables = launch.env.iter().filter(is_secret).map(|(_, value)| value.clone());
    let inherited = launch.inherit_env.then(|| launch.inherited_variables()).into_iter().flatten();
    let inherited = inherited.filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let inherited = inherited
        .filter(|(name, value)| is_named_so(name, value))
        .map(|(_, value)| value.to_owned());
    let variables = variables.chain(inherited);
    let words: Vec<&str> = launch.args.iter().map(String::as_str).collect();
    let arguments = of_arguments(&words).into_iter().map(|(_, (_, value))| value.to_owned());
    let urls = words.iter().flat_map(|word| of_url(word)).map(|(_, value)| value);
    variables.chain(arguments).chain(urls).collect()
}

/// Returns whether a variable is secret by its name, whatever its value.
fn is_named_so(name: &str, value: &str) -> bool {
    let name = name.to_lowercase();
    let last = name.rsplit('_').next().unwrap_or_default();
    value.len() >= MIN_VALUE_BYTES
        && !PLACES.contains(&last)
        && NAMES.iter().any(|part| name.contains(part))
}

fn of_remote(remote: &Remote) -> Vec<String> {
    of_request(remote.headers.values().cloned(), &remote.url)
}

/// Returns the secrets of a request to a URL. `headers` are the values of all headers that may be
/// secret.
fn of_request(headers: impl Iterator<Item = String>, url: &Url) -> Vec<String> {
    let queried = url.query_pairs().map(|(_, value)| value.into_owned());
    let values: Vec<String> =
        headers.chain(queried).filter(|value| value.len() >= MIN_VALUE_BYTES).collect();
    // The secret follows the scheme.
    let bare = values.iter().filter_map(|value| Some(value.rsplit_once(' ')?.1.to_owned()));
    let in_url = of_url(url.as_str()).into_iter().map(|(_, value)| value);
    values.iter().cloned().chain(bare).chain(in_url).collect()
}

/// Returns the secret part of a value with this name.
pub(crate) fn named<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    let trimmed = value.trim();
    let scheme = trimmed.split_once(' ').filter(|(word, _)| is_scheme(word));
    if let Some((_, bare)) = scheme {
        return Some(bare.trim()).filter(|bare| !bare.is_empty());
    }
    if name.to_lowercase().ends_with("authorization") {
        return Some(trimmed).filter(|bare| !bare.is_empty() && !is_scheme(bare));
    }
    secret(name, value)
}

fn is_scheme(word: &str) -> bool {
    SCHEMES.contains(&word.to_lowercase().as_str())
}

/// Returns the secret arguments by position, each with its name and its secret part.
pub(crate) fn of_arguments<'a>(args: &[&'a str]) -> Vec<(usize, (&'a str, &'a str))> {
    let mut flag = "";
    let mut found = Vec::new();
    for (position, argument) in args.iter().copied().enumerate() {
        let (name, value) = of_argument(flag, argument);
        if let Some(value) = value {
            let name = name.trim_start_matches('-');
            found.push((position, (if name.is_empty() { "secret" } else { name }, value)));
        }
        // An argument after a value has no name.
        flag = if argument.starts_with('-') && !argument.contains('=') { argument } else { "" };
    }
    found
}

/// Returns the name of an argument after this flag, and its secret part: `NAME=value`, `Name:
/// value`, or all of it.
fn of_argument<'a>(flag: &'a str, argument: &'a str) -> (&'a str, Option<&'a str>) {
    of_argument_at(0, flag, argument)
}

fn of_argument_at<'a>(
    depth: usize,
    flag: &'a str,
    argument: &'a str,
) -> (&'a str, Option<&'a str>) {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    if let Some((name, value)) = argument.split_once('=').filter(|(name, _)| is_name(name)) {
        // `--env=NAME=value`, `--header=Name: value`; deeper nesting has no meaning.
        if depth < 2
            && let (inner, Some(value)) = of_argument_at(depth + 1, name, value)
        {
            return (inner, Some(value));
        }
        return (name, named(name, value));
    }
    if let Some((name, value)) = argument.split_once(':').filter(|(name, _)| is_name(name))
        && let Some(value) = named(name, value.trim())
    {
        return (name, Some(value));
    }
    (flag, named(flag, argument))
}

/// Returns the password, the values of the query, and tokens in the path.
pub(crate) fn of_url(url: &str) -> Vec<(String, String)> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    // A name without a password is often a token.
    let token = Some(url.username()).filter(|name| name.len() >= MIN_RANDOM_BYTES);
    let password = url.password().or(token);
    let password = password.map(|password| ("password".to_owned(), password.to_owned()));
    let pairs = url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let named =
        pairs.filter_map(|(name, value)| Some((name.to_owned(), secret(name, value)?.to_owned())));
    let in_path = url.path_segments().into_iter().flatten().filter(|part| is_random(part));
    let in_path = in_path.map(|part| ("path".to_owned(), part.to_owned()));
    password.into_iter().chain(named).chain(in_path).collect()
}

/// Returns whether a part of a path is long and mixes letters and digits, as only generated tokens
/// do.
fn is_random(part: &str) -> bool {
    let changes = part
        .as_bytes()
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit());
    part.len() >= MIN_PATH_BYTES
        && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        && changes.count() >= 4
}

/// Returns the secrets in the defaults of references such as `${TOKEN:-value}`.
pub(crate) fn defaults(name: &str, text: &str) -> Vec<String> {
    let references = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    let defaults = references.filter_map(|(reference, _)| reference.split_once(":-"));
    let secret = |(variable, default): (&str, &str)| {
        named(variable, default).or(named(name, default)).map(str::to_owned)
    };
    defaults.filter_map(secret).collect()
}

/// Returns the part of the value that is secret by its name or by its form.
fn secret<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    let name = name.to_lowercase();
    let words: Vec<&str> = name.split(['_', '-', '.', ' ']).collect();
    let is_place = words.last().is_some_and(|last| PLACES.contains(last));
    let is_plain = value.len() >= MIN_SECRET_BYTES
        && !value.contains(' ')
        && !value.starts_with(['/', '~', '.', '\\']);
    let is_setting = matches!(value, "" | "true" | "false") || value.parse::<f64>().is_ok();
    let is_named = !is_place && NAMES.iter().any(|part| name.contains(part)) && !is_setting
        || !is_place && words.iter().any(|word| WORDS.contains(word)) && is_plain
        || words.last() == Some(&"pass") && !is_setting;
    let has_look = SECRET_PREFIXES.iter().any(|prefix| value.starts_with(prefix))
        && value.len() >= MIN_RANDOM_BYTES;
    if is_named || has_look {
        return Some(value);
    }
    // `postgres://user:password@host/`
    let (_, rest) = value.split_once("://")?;
    let (user, _) = rest.split_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty() && !password.contains('/')).then_some(password)
}

/// Returns the text with each of the values replaced, the longest first, and without replacing
/// inside replacements. `fits` judges the text before and after a match.
pub(crate) fn replaced(
    text: &str,
    mut values: Vec<(String, String)>,
    fits: impl Fn(&str, &str) -> bool,
) -> String {
    values.retain(|(value, _)| !value.is_empty());
    values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
    let mut written = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let found = values.iter().find(|(value, _)| {
            text[at..].starts_with(value.as_str()) && fits(&text[..at], &text[at + value.len()..])
        });
        if let Some((value, instead)) = found {
            written.push_str(instead);
            at += value.len();
        } else {
            written.push(next);
            at += next.len_utf8();
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn secrets_of_a_server_are_masked_in_its_texts() {
        let launch = Launch {
            args: ["--api-key", "arg-secret-1", "https://u:password-1@h/"].map(String::from).into(),
            env: [
                ("LEVEL", "debug"),
                ("HOME", "/home/ana"),
                ("ANY", "env-secret-1"),
                ("DB_PASSWORD", "/12345"),
                ("PIN_TOKEN", "20263112"),
                ("PORT_NUMBER", "45678912"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
            ..Launch::new("x", Arc::default())
        };
        let mask = Mask::of(&ServerConfig::new("s", Transport::Stdio(launch)));
        let said = "debug: /home/ana env-secret-1 [arg-secret-1] password-1 xenv-secret-1x";
        assert_eq!(mask.masked(said), "debug: /home/ana ••• [•••] ••• xenv-secret-1x");
        let said = "env-secret-1. https://h/env-secret-1/x at /12345, 20263112, 45678912";
        assert_eq!(mask.masked(said), "•••. https://h/•••/x at •••, •••, 45678912");
    }

    #[test]
    fn tokens_in_paths_and_defaults_are_secret() {
        let url = "https://h/v1/a1b2c3d4e5f6a7b8c9d0e1f2/mcp-server-with-a-long-name-2024";
        let found: Vec<String> = of_url(url).into_iter().map(|(_, value)| value).collect();
        assert_eq!(found, ["a1b2c3d4e5f6a7b8c9d0e1f2"]);
        assert_eq!(defaults("env", "${API_TOKEN:-abcdefgh1}"), ["abcdefgh1"]);
        assert!(defaults("cwd", "${PLACE:-here}").is_empty());
    }

    #[test]
    fn secret_is_masked_however_json_writes_it() {
        let secret = "pa\"ss/word\\0123456789";
        let mask = Mask::new([secret.to_owned(), "db://me:sw0rdfish-4711@h/x".to_owned()]);
        let once = Value::from(secret).to_string();
        let twice = Value::from(once.as_str()).to_string();
        let slashes = once.replace('/', "\\/");
        for text in [secret, &once, &twice, &slashes, "the code is sw0rdfish-4711"] {
            let masked = mask.masked(text);
            assert!(!masked.contains("word") && !masked.contains("4711"), "{text}: {masked}");
        }
    }
}
