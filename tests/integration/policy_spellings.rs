//! A denied tool is reached by no spelling of its name, on any surface.

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

use super::policy::called;
use crate::support::{Host, Program, Proxy, Server};

/// How a host is served.
const PLACES: [&str; 5] = ["discover", "activate", "groups", "direct", "endpoint of the server"];

/// A way to name a tool, in the JSON of a call: hosts may escape any character.
fn spelling() -> impl Strategy<Value = String> {
    let server = prop_oneof![
        4 => Just("a"),
        1 => prop_oneof![Just("A"), Just("b/../a"), Just("./a"), Just("\u{430}"), Just("")],
    ];
    let separator = prop_oneof![
        4 => prop_oneof![Just("/"), Just("__")],
        2 => prop_oneof![Just("/some/"), Just("/some__"), Just("__some/"), Just("/none/")],
        1 => prop_oneof![Just("//"), Just("/./"), Just("\\"), Just("."), Just("%2f"), Just(":")],
    ];
    let tool = prop_oneof![
        4 => Just("echo".to_owned()),
        1 => "[eE][cC][hH][oO]",
        1 => "[ \u{200b}]?e\u{301}?ch[o\u{43e}\u{f6}\u{ff4f}][ \u{0}\u{200b}\n*?]?",
    ];
    let name = prop_oneof![
        3 => (server, separator, tool.clone()).prop_map(|(a, b, c)| format!("{a}{b}{c}")),
        1 => tool,
    ];
    (name, proptest::collection::vec(0..8_u8, 16)).prop_map(|(name, dice)| escaped(&name, &dice))
}

/// Returns a JSON string in which some characters are escaped that need not be.
fn escaped(name: &str, dice: &[u8]) -> String {
    let mut units = [0; 2];
    let characters = name.chars().zip(dice.iter().cycle()).map(|(c, die)| {
        if *die > 0 && c >= ' ' && !matches!(c, '"' | '\\') {
            return c.to_string();
        }
        let units = c.encode_utf16(&mut units).iter();
        units.map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat()
    });
    format!("\"{}\"", characters.collect::<String>())
}

/// Returns a program with the server `a` and the toolset `a/some`, and a host of it.
async fn served_at(place: &str, policy: Value) -> (Program, Host) {
    let toolsets = json!({"some": {"tools": ["echo", "shout"]}});
    let surface = if PLACES[..4].contains(&place) { place } else { "discover" };
    let program = Proxy::with([Server::lazy("a").set("toolsets", toolsets), Server::lazy("b")])
        .set("surface", surface)
        .set("policy", policy)
        .start_http();
    let path = if surface == place { "/mcp" } else { "/servers/a/mcp" };
    let mut host = program.host(path).await;
    host.initialize(json!({})).await;
    (program, host)
}

/// Calls the tool of this spelling in each way that a host has.
async fn try_all(host: &mut Host, case: usize, name: &str) {
    let ways = [
        format!(r#"{{"name":{name},"arguments":{{}}}}"#),
        format!(r#"{{"name":"use_tool","arguments":{{"tool_name":{name},"tool_input":{{}}}}}}"#),
        format!(
            r#"{{"name":"call_dynamic_tool","arguments":{{"group":"a","name":{name},"args":{{}}}}}}"#
        ),
        format!(r#"{{"name":"use_tool","name":{name},"arguments":{{}}}}"#),
    ];
    for (way, params) in ways.iter().enumerate() {
        let id = format!("{case}.{way}");
        host.write(format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{params}}}"#
        ))
        .await;
        host.answer_line(&json!(id)).await;
    }
}

#[test]
fn denied_tool_is_reached_by_no_spelling_at_any_place() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for place in PLACES {
        let deny = json!([{"tools": "a/echo", "then": "deny"}]);
        let (denying, mut host) = runtime.block_on(served_at(place, deny));
        let (open, mut free) = runtime.block_on(served_at(place, json!([])));
        let mut case = 0;
        let hosts = std::cell::RefCell::new((&mut host, &mut free, &mut case));
        let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
        let run = TestRunner::new(config).run(&spelling(), |name| {
            let (host, free, case) = &mut *hosts.borrow_mut();
            **case += 1;
            runtime.block_on(async {
                try_all(host, **case, &name).await;
                try_all(free, **case, &name).await;
            });
            let reached = called(&denying, "a");
            prop_assert!(!reached.contains(&"echo".to_owned()), "{reached:?}");
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{place}: {error}"));
        // The same spellings reach a tool that is not denied.
        let reached = called(&open, "a");
        assert!(reached.contains(&"echo".to_owned()), "{place}: {reached:?}");
        drop((host, free));
    }
}
