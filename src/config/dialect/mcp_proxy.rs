//! mcp-proxy (TBXark/mcp-proxy, with the `lazyLoad` of its fork): one HTTP endpoint for each
//! server.

use serde_json::{Map, Value};
use url::Url;

use super::{
    entries::servers,
    members::{Members, Written},
    notes::Notes,
};
use crate::config::format::{Content, Member, Node};
use crate::config::reading_rules::{ReadingRules, Variables};

/// The options for all servers, which an entry can override.
#[derive(Clone, Default)]
struct Inherited {
    lazy_load: bool,
    auth_tokens: Option<Node>,
}

pub(super) fn translate(mut root: Members, notes: &mut Notes) -> (Written, ReadingRules) {
    let mut written = Written::default();
    let mut proxy = root.mapping("mcpProxy", notes);
    written.set(root.at, "surface", "direct");
    let mut options = proxy.mapping("options", notes);
    let inherited = Inherited {
        lazy_load: options.flag("lazyLoad", notes).is_some_and(|(_, is_lazy)| is_lazy),
        auth_tokens: tokens(&mut options, notes),
    };
    give_up(&mut options, notes);
    // Filters are for servers.
    options.take("toolFilter");
    options.take("disabled");
    options.end_leniently(notes);
    if let Some((at, url)) = proxy.text("baseURL", notes) {
        base_url(at, &url, &mut written, notes);
    }
    if let Some((at, address)) = proxy.text("addr", notes) {
        written.set(at, "listen", listen(at, &address, &inherited, notes));
    }
    // The name that hosts see, and the transport of its endpoints: dormouse serves both transports.
    for key in ["name", "version", "type"] {
        proxy.take(key);
    }
    proxy.end_leniently(notes);
    let entries = root.take("mcpServers");
    let mut inherited = inherited;
    // If no server has its own tokens, the tokens for all open `/mcp` as well.
    if !entries.as_ref().is_some_and(|entries| have_own_tokens(&entries.node))
        && let Some(tokens) = inherited.auth_tokens.take()
    {
        written.set_node(tokens.at, "authTokens", tokens);
    }
    written.push(servers(entries, notes, |entry, notes| server(entry, &inherited, notes)));
    root.end_leniently(notes);
    let rules = ReadingRules {
        variables: Variables::Process,
        serves_at_root: true,
        ..ReadingRules::default()
    };
    (written, rules)
}

/// Returns whether a server has other tokens than the common ones.
fn have_own_tokens(entries: &Node) -> bool {
    let entries = entries.to_value();
    let mut entries = entries.as_object().into_iter().flatten();
    entries.any(|(_, entry)| !entry["options"]["authTokens"].is_null())
}

/// Converts the name under which hosts connect.
fn base_url(at: usize, url: &str, written: &mut Written, notes: &mut Notes) {
    let Ok(url) = Url::parse(url) else { return };
    if let Some(host) = url.host_str() {
        written.set(at, "allowedHosts", vec![host.to_owned()]);
    }
    if url.path() != "/" {
        notes.warn(
            at,
            "the path of baseURL is not part of dormouse's endpoints: they are at /<name>/",
        );
    }
}

/// Returns a list of strings, if the value is one.
fn tokens(options: &mut Members, notes: &mut Notes) -> Option<Node> {
    let member = options.take("authTokens")?;
    let is_text = |node: &Node| node.to_value().is_string();
    match &member.node.content {
        Content::Sequence(tokens) if tokens.iter().all(is_text) => Some(member.node),
        _ => {
            notes.problem(member.at, "expected a list of strings");
            None
        }
    }
}

/// `:9090` means every address of the machine in mcp-proxy. Without a token, other machines must
/// not connect.
fn listen(at: usize, address: &str, inherited: &Inherited, notes: &mut Notes) -> String {
    match address.strip_prefix(':') {
        Some(port) if inherited.auth_tokens.is_some() => format!("0.0.0.0:{port}"),
        Some(port) => {
            notes.warn(
                at,
                "without authTokens dormouse listens on loopback only; to be reachable \
                from other machines, set an address and authTokens",
            );
            format!("127.0.0.1:{port}")
        }
        None => address.to_owned(),
    }
}

fn server(mut entry: Members, inherited: &Inherited, notes: &mut Notes) -> Written {
    let mut written = Written::default();
    match entry.text("transportType", notes) {
        None => {}
        Some((at, kind)) => match kind.as_str() {
            "streamable-http" => written.set(at, "type", "http"),
            "stdio" | "sse" => written.set(at, "type", kind),
            _ => notes.problem(at, "expected \"stdio\", \"sse\" or \"streamable-http\""),
        },
    }
    if entry.has("command") {
        entry.take("url");
        entry.take("headers");
        // Its servers inherit its whole environment.
        written.set(entry.at, "inheritEnv", true);
    }
    written.keep(&mut entry, &["command", "args", "env", "url", "headers"]);
    if let Some((at, nanoseconds)) = entry.number("timeout", notes) {
        let mut timeouts = Written::default();
        for key in ["call", "request"] {
            timeouts.set(at, key, nanoseconds / 1e9);
        }
        written.set_node(at, "timeouts", timeouts.node(at));
    }
    login(&mut entry, &mut written, notes);
    let mut options = entry.mapping("options", notes);
    entry.end_leniently(notes);

    let (at, is_lazy) =
        options.flag("lazyLoad", notes).unwrap_or((options.at, inherited.lazy_load));
    written.set(at, "startup", if is_lazy { "lazy" } else { "eager" });
    written.set(at, "surface", if is_lazy { "activate" } else { "direct" });
    if let Some(tokens) = tokens(&mut options, notes).or_else(|| inherited.auth_tokens.clone()) {
        written.set_node(tokens.at, "authTokens", tokens);
    }
    if let Some((at, is_disabled)) = options.flag("disabled", notes) {
        written.set(at, "enabled", !is_disabled);
    }
    tool_filter(&mut options, &mut written, notes);
    give_up(&mut options, notes);
    options.end_leniently(notes);
    written
}

/// The redirect URI under which its clients are registered, unless they name another.
const REDIRECT: &str = "http://localhost:8090/oauth/callback";

fn login(entry: &mut Members, written: &mut Written, notes: &mut Notes) {
    if !entry.has("oauth") {
        entry.take("oauth");
        return;
    }
    let mut oauth = entry.mapping("oauth", notes);
    let (at, mut own) = (oauth.at, Written::default());
    own.keep(&mut oauth, &["clientId", "clientSecret", "scopes"]);
    match oauth.take("redirectUri") {
        Some(member) => own.set_node(member.at, "redirectUri", member.node),
        None => own.set(at, "redirectUri", REDIRECT),
    }
    own.rename(&mut oauth, "authServerMetadataUrl", "authServer");
    if let Some((at, true)) = oauth.flag("pkceDisabled", notes) {
        notes.warn(at, "dormouse always uses PKCE; servers without PKCE ignore it");
    }
    oauth.end_leniently(notes);
    written.set_login(at, own, notes);
}

fn tool_filter(options: &mut Members, written: &mut Written, notes: &mut Notes) {
    let Some(member) = options.take("toolFilter") else { return };
    let at = member.at;
    let mut filter = Members::of(member.node, notes);
    let allows = match filter.text("mode", notes) {
        Some((_, mode)) if mode.eq_ignore_ascii_case("allow") => true,
        Some((_, mode)) if mode.eq_ignore_ascii_case("block") => false,
        Some((at, _)) => return notes.problem(at, "expected \"allow\" or \"block\""),
        None => return notes.warn(at, "a filter without a \"mode\" has no effect"),
    };
    let names = filter.take("list");
    filter.end_leniently(notes);
    let mut tools = Map::new();
    match names.map(|Member { at, node, .. }| (at, node.content)) {
        None => {}
        Some((_, Content::Sequence(names))) => {
            for name in names {
                match name.to_value() {
                    Value::String(name) => {
                        tools.insert(name, allows.into());
                    }
                    _ => notes.problem(name.at, "expected a string"),
                }
            }
        }
        Some((at, _)) => notes.problem(at, "expected a list"),
    }
    // An empty list filters nothing.
    if allows && !tools.is_empty() {
        tools.insert("*".to_owned(), false.into());
    }
    written.set(at, "tools", Value::Object(tools));
}

fn give_up(options: &mut Members, notes: &mut Notes) {
    options.take("logEnabled");
    if let Some((at, true)) = options.flag("panicIfInvalid", notes) {
        notes.warn(at, "an unreachable server does not end dormouse; it is retried");
    }
}
