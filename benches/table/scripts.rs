//! Scripts: the time to run one, and the bytes that they keep from the model.

#[path = "../../tests/scripts/tasks.rs"]
mod tasks;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use self::tasks::{Task, bytes_of_calls, bytes_of_script, prepare, tasks};
use crate::{
    client::Client,
    contender::{config_with, dormouse, server},
    homes, process,
    report::{TableRow, median},
    rows::{AddRow, as_f64, millis},
};

const ROUNDS: usize = 21;
/// Minimum share of the bytes that a script keeps from the model, in percent.
const MIN_SAVED: f64 = 90.0;
/// Maximum time until the calls of a script are in the log.
const LOG_TIMEOUT: Duration = Duration::from_secs(10);

/// Measures the process of a script: its start, and its end when the host cancels.
pub fn times(add: AddRow<'_>) {
    let config = config_with(&json!({"scripts": true}), &[server(1, 2, 0)]);
    let mut client = Client::spawn(&dormouse(&config));
    client.initialize();
    let params = json!({"name": "run_script", "arguments": {"code": "return 1"}}).to_string();
    let round = |client: &mut Client| millis(client.round_trip("tools/call", &params));
    let found = median((0..ROUNDS).map(|_| round(&mut client)).collect());
    add(TableRow::at_most("a script of one line, with its process", found, 10.0, " ms", json!({})));
    let found = median((0..ROUNDS).map(|_| kill(&mut client)).collect());
    add(TableRow::at_most("a cancelled script is gone", found, 100.0, " ms", json!({})));
}

/// Returns the time from a cancellation to the end of the process of an endless script.
fn kill(client: &mut Client) -> f64 {
    let endless = json!({"name": "run_script", "arguments": {"code": "for (;;) {}"}});
    let id = client.send("tools/call", &endless);
    let workers = |client: &Client| process::descendants_named(client.id(), "__script-worker");
    wait_until(|| workers(client) > 0);
    let began = Instant::now();
    client.notify("notifications/cancelled", &json!({"requestId": id}));
    wait_until(|| workers(client) == 0);
    millis(began.elapsed())
}

/// Measures the bytes of four tasks on the published servers of `tests/npm`.
pub fn savings(add: AddRow<'_>) {
    let place = homes::directory("scripts", "place");
    std::fs::create_dir_all(&place).expect("the target directory is writable");
    prepare(&place);
    let config = config_with(&json!({"scripts": true}), &published_servers(&place));
    let command = dormouse(&config);
    let mut client = Client::spawn_in_home(&command, "scripts");
    client.initialize();
    for (run, task) in (1..).zip(tasks()) {
        let Task { what, code, folder, calls, value } = task;
        let arguments = json!({"code": code, "input": {"folder": place.join(folder)}});
        let params = json!({"name": "run_script", "arguments": arguments});
        let result = client.request("tools/call", &params);
        assert_eq!(result["content"][0]["text"], value.to_string(), "{result}");
        let made = calls_of_run(&command, run, calls);
        let (alone, scripted) = (bytes_of_calls(&made), bytes_of_script(&arguments, &result));
        let data = json!({"calls": calls, "bytes": alone, "withScript": scripted, "turns": 1});
        let saved = 100.0 - 100.0 * as_f64(scripted) / as_f64(alone);
        add(TableRow::at_least(format!("fewer bytes: {what}"), saved, MIN_SAVED, " %", data));
    }
}

fn published_servers(place: &Path) -> [(String, Value); 3] {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/npm/node_modules/.bin");
    let entry = |program: &str, args: Value, env: Value| {
        let program = programs.join(program);
        assert!(program.exists(), "run `npm ci --prefix tests/npm` first");
        json!({"command": program, "args": args, "env": env, "description": "For scripts."})
    };
    let memory = json!({"MEMORY_FILE_PATH": place.join("memory.json")});
    [
        ("filesystem".to_owned(), entry("mcp-server-filesystem", json!([place]), json!({}))),
        ("everything".to_owned(), entry("mcp-server-everything", json!(["stdio"]), json!({}))),
        ("memory".to_owned(), entry("mcp-server-memory", json!([]), memory)),
    ]
}

/// Returns the calls of a script, once so many are in the log.
fn calls_of_run(command: &[String], run: u64, count: usize) -> Vec<Value> {
    let log = [&command[..1], &["log", "--json", "-n", "1000"].map(str::to_owned), &command[1..3]];
    let began = Instant::now();
    loop {
        let said = homes::command(&log.concat(), "scripts").output().expect("dormouse runs").stdout;
        let said = String::from_utf8(said).expect("UTF-8");
        let calls = said.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        let calls: Vec<Value> = calls.filter(|call: &Value| call["script"]["run"] == run).collect();
        if calls.len() >= count {
            return calls;
        }
        assert!(began.elapsed() < LOG_TIMEOUT, "{} of {count} calls are logged", calls.len());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_micros(200));
    }
}
