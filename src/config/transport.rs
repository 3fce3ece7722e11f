//! The transport of a server's entry: a command, or a URL.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use url::Url;

use super::{
    LaunchContext, OAuth, Unavailable,
    header_names::has_authorization,
    keys::{ServerEntry, TransportKind},
    oauth::oauth,
    urls::remote_url,
};

/// The transport of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    Stdio(Launch),
    Http(Remote),
}

/// A server behind a URL.
#[derive(Clone, PartialEq)]
pub struct Remote {
    /// `http` or `https`.
    pub url: Url,
    /// Sent with every request; the names are valid, the values may be secret.
    pub headers: BTreeMap<String, String>,
    pub framing: Framing,
    /// The login settings; `None` if `headers` contain the authorization.
    pub oauth: Option<Box<OAuth>>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("Remote")
            .field("origin", &self.url.origin().ascii_serialization())
            .field("headers", &headers)
            .field("framing", &self.framing)
            .field("oauth", &self.oauth)
            .finish()
    }
}

/// The framing of messages over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Streamable HTTP, or HTTP+SSE if the server refuses that.
    Either,
    Streamable,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// A child process that speaks MCP on its standard streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
    /// True if the server inherits all variables, not only those without which programs do not run.
    pub inherit_env: bool,
    pub context: Arc<LaunchContext>,
}

impl Launch {
    /// Returns a command without arguments, whose process inherits from `context`.
    pub fn new(command: impl Into<String>, context: Arc<LaunchContext>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            inherit_env: false,
            context,
        }
    }

    /// Returns the directory to change to before the process starts, if it has to be changed.
    pub(crate) fn changed_directory(&self) -> Option<&PathBuf> {
        self.cwd.as_ref().or_else(|| self.context.changed_directory())
    }

    /// Returns the directory in which the process starts; `None` if it cannot be determined.
    pub(crate) fn starting_directory(&self) -> Option<PathBuf> {
        self.cwd.clone().or_else(|| self.context.directory())
    }

    /// Returns whether a child process that is given no variables inherits those that this one
    /// should.
    pub(crate) fn inherits_from_this_process(&self) -> bool {
        self.inherit_env && self.context.is_of_this_process()
    }

    /// Returns the variables that the process inherits; those of `env` take precedence.
    pub(crate) fn inherited_variables(&self) -> Vec<(&OsStr, &OsStr)> {
        if self.inherit_env {
            self.context.variables().collect()
        } else {
            self.context.needed_variables().collect()
        }
    }
}

/// Returns the transport of an entry that has no problems. A relative `cwd` starts from
/// `directory`.
pub(super) fn transport(
    entry: &mut ServerEntry,
    directory: &Path,
    context: &Arc<LaunchContext>,
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
            entry => Some(Box::new(oauth(entry.unwrap_or_default())?)),
        };
        return Ok(Transport::Http(Remote { url, headers, framing, oauth }));
    }
    let command = entry.command.take().unwrap_or_default();
    if command.trim().is_empty() {
        return Err(Unavailable::BlankCommand);
    }
    let env = std::mem::take(&mut entry.env);
    Ok(Transport::Stdio(Launch {
        command,
        args: std::mem::take(&mut entry.args),
        env: env.into_iter().map(|(key, value)| (key, value.to_string())).collect(),
        cwd: entry.cwd.take().map(|cwd| directory.join(cwd)),
        inherit_env: entry.inherit_env,
        context: context.clone(),
    }))
}
