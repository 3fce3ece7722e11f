//! The row about policies: the latency of a call that 100 rules judge, and of one without rules.

use serde_json::{Value, json};

use crate::{
    client::Client,
    contender::{Contender, config_with, dormouse, server},
    homes,
    report::{TableRow, median},
    rows::{AddRow, micros},
};

/// Number of pairs of processes: two processes of the same program differ by several microseconds.
const PAIRS: usize = 15;
const ROUNDS: usize = 4;
const CALLS: usize = 2000;
const RULES: usize = 100;

/// Measures both in turns.
pub fn costs(add: AddRow<'_>) {
    let call = Contender::Dormouse.call("echo", &json!({"path": "/tmp/file.txt", "limit": 10}));
    let p50 = |client: &mut Client| {
        median((0..CALLS).map(|_| micros(client.round_trip("tools/call", &call))).collect())
    };
    let mut figures: Vec<(f64, f64)> = Vec::new();
    for _ in 0..PAIRS {
        let (mut without, mut with) = (connect(&json!([])), connect(&rules()));
        let rounds = (0..=ROUNDS).map(|_| (p50(&mut without), p50(&mut with)));
        // The first round only warms up.
        figures.extend(rounds.skip(1));
    }
    let found = median(figures.iter().map(|(without, with)| with - without).collect());
    let of = |which: fn(&(f64, f64)) -> f64| median(figures.iter().map(which).collect()).round();
    add(TableRow::at_most(
        "latency that 100 rules add to a call, p50",
        found,
        5.0,
        " µs",
        json!({"µs": {"without": of(|pair| pair.0), "with": of(|pair| pair.1)}}),
    ));
}

/// Returns rules of all kinds, of which none matches the call.
fn rules() -> Value {
    let rules = (0..RULES).map(|number| match number % 4 {
        0 => json!({"tools": format!("other-{number}/delete_*"), "then": "deny"}),
        1 => json!({"tools": format!("*_{number}"), "then": "deny"}),
        2 => json!({"arguments": {"path": format!("/secret-{number}/*")}, "then": "deny"}),
        _ => json!({"when": {"readOnly": true, "destructive": true}, "then": "deny"}),
    });
    rules.collect()
}

fn connect(policy: &Value) -> Client {
    let settings = json!({"policy": policy, "callLog": "off", "daemon": false});
    let command = dormouse(&config_with(&settings, &[server(1, 2, 0)]));
    let mut client = Client::start(homes::command(&command, homes::EMPTY_HOME));
    client.initialize();
    let load = json!({"name": "load_mcp", "arguments": {"mcp_name": "server-1"}});
    client.request("tools/call", &load);
    client
}
