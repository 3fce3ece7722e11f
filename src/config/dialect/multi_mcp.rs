//! multi-mcp (itstanner5216/multi-mcp): `servers` with `always_on` and the tools that it has found.

use super::{
    entries::servers,
    members::{Members, Written},
    notes::Notes,
};
use crate::config::format::{Content, Member, Node};
use crate::config::reading_rules::{ReadingRules, Variables};

pub(super) fn translate(mut root: Members, notes: &mut Notes) -> (Written, ReadingRules) {
    let mut written = Written::default();
    written.set(root.at, "surface", "direct");
    written.keep(&mut root, &["profiles"]);
    written.push(servers(root.take("servers"), notes, server));
    let sources =
        "dormouse does not read servers of other programs while it runs: add them to the config";
    root.give_up(&["sources", "exclude_sources", "exclude_servers"], sources, notes);
    if root.mapping("retrieval", notes).flag("enabled", notes).is_some_and(|(_, is_on)| is_on) {
        notes
            .warn(root.at, "retrieval: every surface of dormouse supports search without settings");
    }
    root.give_up(&["backup_dir"], "dormouse edits the config in place, without a copy", notes);
    root.end_leniently(notes);
    (written, ReadingRules { variables: Variables::Nowhere, ..ReadingRules::default() })
}

fn server(mut entry: Members, notes: &mut Notes) -> Written {
    let mut written = Written::default();
    let is_remote = entry.has("url");
    if is_remote {
        // multi-mcp writes every key, also those of other transports.
        for key in ["command", "args", "env"] {
            entry.take(key);
        }
    } else {
        command(&mut entry, &mut written, notes);
        written.keep(&mut entry, &["env"]);
        // Its servers inherit its whole environment.
        written.set(entry.at, "inheritEnv", true);
    }
    written.keep(&mut entry, &["description", "enabled", "url", "headers"]);
    if let Some((at, kind)) = entry.text("type", notes) {
        match kind.as_str() {
            "sse" if is_remote => written.set(at, "type", "sse"),
            "streamablehttp" | "streamable-http" if is_remote => written.set(at, "type", "http"),
            // `http` falls back to SSE in multi-mcp, as an unset type does in dormouse.
            "stdio" | "sse" | "http" | "streamablehttp" | "streamable-http" => {}
            _ => notes.problem(at, "expected \"stdio\", \"sse\", \"http\" or \"streamablehttp\""),
        }
    }
    let (at, always_on) = entry.flag("always_on", notes).unwrap_or((entry.at, false));
    written.set(at, "startup", if always_on { "eager" } else { "hybrid" });
    if let Some((at, minutes)) = entry.number("idle_timeout_minutes", notes) {
        written.set(at, "idleTimeout", minutes * 60.0);
    }
    let mut tools = Written::default();
    let all = entry.mapping("tools", notes);
    let at = all.at;
    for tool in all.into_all() {
        tools.push(switch(tool, notes));
    }
    written.set_node(at, "tools", tools.node(at));
    let triggers = "words in calls wake no server: a server wakes when one of its tools is called";
    entry.give_up(&["triggers"], triggers, notes);
    entry.end_leniently(notes);
    written
}

/// Splits a command that is written with its arguments.
fn command(entry: &mut Members, written: &mut Written, notes: &mut Notes) {
    let mut args = Vec::new();
    if let Some((at, command)) = entry.text("command", notes) {
        match shlex::split(&command) {
            Some(words) => {
                let mut words = words.into_iter();
                written.set(at, "command", words.next().unwrap_or_default());
                args.extend(words.map(|word| Node::of_value(at, word.into())));
            }
            None => notes.problem(at, "unclosed quotation mark"),
        }
    }
    let own = entry.take("args");
    let at = own.as_ref().map_or(entry.at, |member| member.at);
    match own.map(|member| member.node.content) {
        None => {}
        Some(Content::Sequence(own)) => args.extend(own),
        Some(_) => notes.problem(at, "expected a list"),
    }
    if !args.is_empty() {
        written.set_node(at, "args", Node { at, content: Content::Sequence(args) });
    }
}

/// Converts the switch of a tool. Its description is learned again; the user's choice stays.
fn switch(tool: Member, notes: &mut Notes) -> Member {
    let Member { key, at, node } = tool;
    if !matches!(node.content, Content::Mapping(_)) {
        let is_empty = matches!(&node.content, Content::Scalar(value) if value.is_null());
        let node = if is_empty { Node::of_value(at, true.into()) } else { node };
        return Member { key, at, node };
    }
    let mut members = Members::of(node, notes);
    let mut switch = Written::default();
    switch.keep(&mut members, &["enabled", "stale"]);
    members.take("description");
    members.take("input_schema");
    members.end_leniently(notes);
    Member { key, at, node: switch.node(at) }
}
