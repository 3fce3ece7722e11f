//! The row about policies: the latency of a call that 100 rules judge, and of one without rules.
//!
//! Two processes of the same program differ by more than the rules cost, so that one process is
//! measured with both configs in turns.

use std::{fs, path::PathBuf, thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    client::Client,
    contender::{Contender, config_with, dormouse, server},
    homes,
    report::{TableRow, median},
    rows::{AddRow, micros},
};

const PROCESSES: usize = 3;
const ROUNDS: usize = 12;
const CALLS: usize = 2000;
const RULES: usize = 100;

/// A tool that the rules deny, which shows whether they are in force.
const DENIED_TOOL: &str = "size";

/// Measures both in turns.
pub fn costs(add: AddRow<'_>) {
    let call = Contender::Dormouse.call("echo", &json!({"path": "/tmp/file.txt", "limit": 10}));
    let mut figures: Vec<(f64, f64)> = Vec::new();
    for _ in 0..PROCESSES {
        let mut subject = Subject::start();
        let mut p50 = |rules: &Value| {
            subject.put_in_force(rules);
            let client = &mut subject.client;
            median((0..CALLS).map(|_| micros(client.round_trip("tools/call", &call))).collect())
        };
        let (none, rules) = (json!([]), rules());
        let rounds = (0..=ROUNDS).map(|_| (p50(&none), p50(&rules)));
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

/// A running dormouse with the file of its config.
struct Subject {
    client: Client,
    config: PathBuf,
}

impl Subject {
    fn start() -> Self {
        let config = config_of(&json!([]));
        let command = dormouse(&config);
        let mut client = Client::start(homes::command(&command, homes::EMPTY_HOME));
        client.initialize();
        let load = json!({"name": "load_mcp", "arguments": {"mcp_name": "server-1"}});
        client.request("tools/call", &load);
        Self { client, config }
    }

    /// Writes the rules into the config, and waits until they decide about calls.
    fn put_in_force(&mut self, rules: &Value) {
        let written = config_of(rules);
        if written != self.config {
            fs::rename(&written, &self.config).expect("the temporary directory is writable");
        }
        let is_denying = rules != &json!([]);
        while self.denies() != is_denying {
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn denies(&mut self) -> bool {
        let name = format!("server-1/{DENIED_TOOL}");
        let call = json!({"name": "use_tool", "arguments": {"tool_name": name, "tool_input": {}}});
        self.client.request("tools/call", &call)["isError"] == true
    }
}

/// Returns rules of all kinds, of which none matches the call.
fn rules() -> Value {
    let of_other_tools = (1..RULES).map(|number| match number % 4 {
        0 => json!({"tools": format!("other-{number}/delete_*"), "then": "deny"}),
        1 => json!({"tools": format!("*_{number}"), "then": "deny"}),
        2 => json!({"arguments": {"path": format!("/secret-{number}/*")}, "then": "deny"}),
        _ => json!({"when": {"readOnly": true, "destructive": true}, "then": "deny"}),
    });
    let denied = json!({"tools": format!("server-1/{DENIED_TOOL}"), "then": "deny"});
    of_other_tools.chain([denied]).collect()
}

/// Writes a config with these rules, and returns its path.
fn config_of(rules: &Value) -> PathBuf {
    let settings = json!({"policy": rules, "callLog": "off", "daemon": false});
    config_with(&settings, &[server(1, 2, 0)])
}
