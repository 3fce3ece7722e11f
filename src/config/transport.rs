//! The transport of a server's entry: a command, or a URL.

use std::path::Path;

use serde_json::Value;
use url::Url;

use super::{
    Framing, Launch, Remote, Transport, Unavailable,
    keys::{ServerEntry, TransportKind},
};

/// Returns the problems of an entry, each with its key and message. `written` is the entry before
/// its variables were expanded; the expanded values are checked by [`transport`].
pub(super) fn problems(
    written: &Value,
    entry: &ServerEntry,
) -> Vec<(Option<&'static str>, String)> {
    let mut problems = Vec::new();
    let has = |key: &str| !written[key].is_null();
    let is_remote = has("url");
    match (has("command"), is_remote) {
        (false, false) => {
            problems.push((None, "a server needs a \"command\" or a \"url\"".to_owned()));
        }
        (true, true) => {
            let message = "a server has either a \"command\" or a \"url\"".to_owned();
            problems.push((Some("url"), message));
        }
        _ => {}
    }
    for key in ["command", "url"] {
        if written[key].as_str().is_some_and(is_blank) {
            problems.push((Some(key), format!("a server's {key:?} must not be blank")));
        }
    }
    if let Some(url) = written["url"].as_str().filter(|url| !url.contains("${") && !is_blank(url))
        && remote_url(url).is_none()
    {
        let message = "expected a URL that begins with http:// or https://".to_owned();
        problems.push((Some("url"), message));
    }
    match entry.kind {
        Some(TransportKind::Stdio) if is_remote => {
            problems.push((
                Some("type"),
                "a server with a \"url\" cannot have the type \"stdio\"".to_owned(),
            ));
        }
        Some(TransportKind::Http | TransportKind::Sse) if !is_remote && has("command") => {
            problems.push((Some("type"), "a server of this type needs a \"url\"".to_owned()));
        }
        _ => {}
    }
    let misplaced: &[&'static str] =
        if is_remote { &["args", "env", "cwd", "inheritEnv"] } else { &["headers", "oauth"] };
    let other = if is_remote { "command" } else { "url" };
    for key in misplaced.iter().filter(|key| has(key) && !has(other)) {
        problems.push((Some(key), format!("this key is for servers with a {other:?}")));
    }
    for name in entry.headers.keys().filter(|name| !is_header_name(name)) {
        problems.push((Some("headers"), format!("{name:?} is not a valid header name")));
    }
    if entry.oauth.is_some() && has_authorization(entry.headers.keys()) {
        let message = "a server has either a header \"Authorization\" or \"oauth\"".to_owned();
        problems.push((Some("oauth"), message));
    }
    problems
}

/// Returns the transport of an entry that has no problems. A relative `cwd` starts from
/// `directory`.
pub(super) fn transport(
    entry: &mut ServerEntry,
    directory: &Path,
) -> Result<Transport, Unavailable> {
    if let Some(url) = entry.url.take() {
        let has_authorization = has_authorization(entry.headers.keys());
        let headers = std::mem::take(&mut entry.headers);
        let is_sendable = |value: &String| {
            value.bytes().all(|byte| byte == b'\t' || (byte >= 0x20 && byte != 0x7f))
        };
        if let Some((name, _)) = headers.iter().find(|(_, value)| !is_sendable(value)) {
            return Err(Unavailable::BadHeader(name.clone()));
        }
        let framing = match entry.kind {
            Some(TransportKind::Http) => Framing::Streamable,
            Some(TransportKind::Sse) => Framing::Sse,
            Some(TransportKind::Stdio) | None => Framing::Either,
        };
        let url = remote_url(&url).ok_or(Unavailable::BadUrl)?;
        let oauth = match entry.oauth.take() {
            None if has_authorization => None,
            oauth => Some(Box::new(super::oauth::oauth(oauth.unwrap_or_default())?)),
        };
        return Ok(Transport::Http(Remote { url, headers, framing, oauth }));
    }
    let command = entry.command.take().unwrap_or_default();
    if is_blank(&command) {
        return Err(Unavailable::BlankCommand);
    }
    let env = std::mem::take(&mut entry.env);
    Ok(Transport::Stdio(Launch {
        command,
        args: std::mem::take(&mut entry.args),
        env: env.into_iter().map(|(key, value)| (key, value.to_string())).collect(),
        cwd: entry.cwd.take().map(|cwd| directory.join(cwd)),
        inherit_env: entry.inherit_env,
    }))
}

/// Returns whether these headers contain the authorization.
pub(crate) fn has_authorization<'a>(mut names: impl Iterator<Item = &'a String>) -> bool {
    names.any(|name| name.eq_ignore_ascii_case("authorization"))
}

fn remote_url(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// RFC 9110 section 5.1: a header's name is a token.
fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
