//! dynmcp (brandonburrus/dynamic-discovery-mcp): `mcp`, each entry with its `transport`.

use super::{
    entries::servers,
    members::{Members, Written},
    notes::Notes,
};
use crate::config::reading_rules::{ReadingRules, Variables};

pub(super) fn translate(mut root: Members, notes: &mut Notes) -> (Written, ReadingRules) {
    let mut written = Written::default();
    root.take("$schema");
    let variables = match root.text("env", notes) {
        None => Variables::default(),
        Some((at, mode)) => match mode.as_str() {
            "enable" => Variables::FileAndProcess,
            "dotenv" => Variables::File,
            "process" => Variables::Process,
            "disable" => Variables::Nowhere,
            _ => {
                notes.problem(at, "expected \"enable\", \"dotenv\", \"process\" or \"disable\"");
                Variables::default()
            }
        },
    };
    written.set(root.at, "surface", "discover");
    // Servers that it has connected stay connected.
    written.set(root.at, "idleTimeout", 0);
    written.push(servers(root.take("mcp"), notes, server));
    root.end(notes);
    (written, ReadingRules { variables, ..ReadingRules::default() })
}

fn server(mut entry: Members, notes: &mut Notes) -> Written {
    let mut written = Written::default();
    match entry.text("transport", notes) {
        None => notes.problem(entry.at, "a server of dynmcp needs a \"transport\""),
        Some((at, transport)) => match transport.as_str() {
            "streamable-http" => written.set(at, "type", "http"),
            "stdio" | "sse" => written.set(at, "type", transport),
            _ => notes.problem(at, "expected \"stdio\", \"streamable-http\" or \"sse\""),
        },
    }
    written.keep(&mut entry, &["description", "command", "args", "env", "url", "headers"]);
    login(&mut entry, &mut written, notes);
    entry.end(notes);
    written
}

fn login(entry: &mut Members, written: &mut Written, notes: &mut Notes) {
    let mut auth = entry.mapping("auth", notes);
    let (at, mut own) = (auth.at, Written::default());
    own.rename(&mut auth, "client_id", "clientId");
    own.rename(&mut auth, "client_secret", "clientSecret");
    if let Some((at, scope)) = auth.text("scope", notes) {
        let scopes: Vec<&str> = scope.split_whitespace().collect();
        own.set(at, "scopes", scopes);
    }
    auth.end(notes);
    written.set_login(at, own, notes);
}
