//! dynamic-mcp (asyrjasalo/dynamic-mcp), with the additions of its proposal for a lazy start.

use serde_json::Value;

use super::{
    entries::{literal, servers},
    members::{Members, Written},
    notes::Notes,
};
use crate::config::reading_rules::{ReadingRules, Variables};
use crate::config::{key_path::Step, schema};

/// Returns whether an entry has a key of dynamic-mcp that dormouse lacks, or one that both have.
pub(super) fn has_own_keys(entry: &Value) -> bool {
    let keys = ["lazy_startup", "idle_timeout", "oauth_client_id", "oauth_scopes", "features"];
    // Other systems have a number here.
    keys.iter().any(|key| entry.get(key).is_some()) || entry["timeout"].is_object()
}

/// The timeout of dynamic-mcp for tools, and for resources and prompts, if the config has none.
const TOOLS: &str = "30s";
const RESOURCES: &str = "10s";

/// Returns whether a config has a key that only dormouse has.
pub(super) fn has_keys_of_ours(value: &Value) -> bool {
    let shared = |key: &String| {
        let theirs = ["mcpServers", "description", "enabled", "features", "type", "command"];
        theirs.contains(&key.as_str()) || ["args", "env", "url", "headers"].contains(&key.as_str())
    };
    let has = |value: &Value, known: &[String]| {
        let keys = value.as_object().into_iter().flat_map(serde_json::Map::keys);
        keys.filter(|key| !shared(key)).any(|key| known.contains(key))
    };
    let of_entries = [Step::Key("mcpServers".to_owned()), Step::Key("any".to_owned())];
    let of_entries = schema::known_keys(&of_entries);
    let mut entries = value["mcpServers"].as_object().into_iter().flat_map(|all| all.values());
    has(value, &schema::known_keys(&[])) || entries.any(|entry| has(entry, &of_entries))
}

pub(super) fn translate(mut root: Members, notes: &mut Notes) -> (Written, ReadingRules) {
    let mut written = Written::default();
    root.take("$schema");
    written.set(root.at, "surface", "groups");
    written.push(servers(root.take("mcpServers"), notes, server));
    root.end(notes);
    let rules = ReadingRules {
        variables: Variables::Process,
        keeps_undefined: true,
        // The flag of dynamic-mcp is for servers that have no timeout of their own.
        keeps_idle_timeouts: true,
        ..ReadingRules::default()
    };
    (written, rules)
}

fn server(mut entry: Members, notes: &mut Notes) -> Written {
    let mut written = Written::default();
    // All other texts of the config may hold variables.
    if let Some((at, command)) = entry.text("command", notes) {
        written.set(at, "command", literal(&command));
        // Its servers inherit its whole environment.
        written.set(at, "inheritEnv", true);
    }
    let kept = ["type", "description", "args", "env", "url", "headers", "features", "enabled"];
    written.keep(&mut entry, &kept);
    let startup = match entry.take("lazy_startup") {
        None => (entry.at, "hybrid"),
        Some(member) => match member.node.to_value() {
            Value::Bool(false) => (member.at, "eager"),
            Value::String(mode) if mode == "false" => (member.at, "eager"),
            Value::String(mode) if mode == "pure" => (member.at, "lazy"),
            Value::String(mode) if mode == "hybrid" => (member.at, "hybrid"),
            _ => {
                notes.problem(member.at, "expected false, \"pure\" or \"hybrid\"");
                (member.at, "hybrid")
            }
        },
    };
    written.set(startup.0, "startup", startup.1);
    if let Some(member) = entry.take("idle_timeout") {
        written.set_node(member.at, "idleTimeout", member.node);
    }
    timeouts(&mut entry, &mut written, notes);
    login(&mut entry, &mut written, notes);
    entry.end(notes);
    written
}

/// The redirect URI under which its clients are registered, on any port.
const REDIRECT: &str = "http://localhost:0/oauth/callback";

/// dynamic-mcp logs in only with a client id; scopes alone have no effect.
fn login(entry: &mut Members, written: &mut Written, notes: &mut Notes) {
    let (at, scopes) = (entry.at, entry.take("oauth_scopes"));
    let Some(client) = entry.take("oauth_client_id") else { return };
    let mut own = Written::default();
    own.set_node(client.at, "clientId", client.node);
    if let Some(scopes) = scopes {
        own.set_node(scopes.at, "scopes", scopes.node);
    }
    own.set(at, "redirectUri", REDIRECT);
    written.set_login(client.at, own, notes);
}

fn timeouts(entry: &mut Members, written: &mut Written, notes: &mut Notes) {
    let mut timeouts = entry.mapping("timeout", notes);
    let mut own = Written::default();
    match timeouts.take("tools") {
        Some(member) => own.set_node(member.at, "call", member.node),
        None => own.set(timeouts.at, "call", TOOLS),
    }
    let others = [timeouts.take("resources"), timeouts.take("prompts")];
    match others {
        [None, None] => own.set(timeouts.at, "request", RESOURCES),
        [Some(resources), Some(prompts)]
            if resources.node.to_value() != prompts.node.to_value() =>
        {
            let instead = "dormouse has one timeout for resources and prompts: that of resources";
            notes.warn(prompts.at, instead);
            own.set_node(resources.at, "request", resources.node);
        }
        [Some(either), _] | [None, Some(either)] => {
            own.set_node(either.at, "request", either.node);
        }
    }
    let at = timeouts.at;
    timeouts.end(notes);
    written.set_node(at, "timeouts", own.node(at));
}
