//! The parts of a translation that several systems share.

use serde_json::Value;

use super::{
    members::{Members, Written},
    notes::Notes,
};
use crate::config::format::{Content, Member, Node};

/// Translates each server's entry, under its name.
pub(super) fn servers(
    servers: Option<Member>,
    notes: &mut Notes,
    mut translate: impl FnMut(Members, &mut Notes) -> Written,
) -> Member {
    let at = servers.as_ref().map_or(0, |member| member.at);
    let entries = servers.map(|member| Members::of(member.node, notes).into_all());
    let translated = entries.into_iter().flatten().map(|Member { key, at, node }| {
        let node_at = node.at;
        let members = Members::of(node, notes);
        let node = translate(members, notes).node(node_at);
        Member { key, at, node }
    });
    let content = Content::Mapping(translated.collect());
    Member { key: "mcpServers".to_owned(), at, node: Node { at, content } }
}

/// Escapes every string, so that no part of it reads as a variable.
pub(in crate::config) fn literal_strings(value: &mut Value) {
    match value {
        Value::String(text) => *text = literal(text),
        Value::Array(values) => values.iter_mut().for_each(literal_strings),
        Value::Object(members) => members.values_mut().for_each(literal_strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Escapes a text, so that no part of it reads as a variable.
pub(crate) fn literal(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let length = rest[start..].find('}').map_or("${".len(), |closing| closing + 1);
        let end = start + length;
        escaped.push_str(&rest[..start]);
        escaped.push('$');
        escaped.push_str(&rest[start..end]);
        rest = &rest[end..];
    }
    escaped.push_str(rest);
    escaped
}
