//! The row about telemetry: the latency of a call with everything on, and with everything off.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::json;

use crate::{
    client::Client,
    contender::{Contender, config_with, dormouse, server},
    homes,
    report::{TableRow, median},
    rows::{AddRow, micros},
};

const ROUNDS: usize = 21;
const CALLS: usize = 2000;

/// Measures both in turns.
pub fn costs(add: AddRow<'_>) {
    let collector = start_collector();
    let mut off = connect("off", None);
    let mut on = connect("calls", Some(&collector));
    let call = Contender::Dormouse.call("echo", &json!({"path": "/tmp/file.txt", "limit": 10}));
    let p50 = |client: &mut Client| {
        median((0..CALLS).map(|_| micros(client.round_trip("tools/call", &call))).collect())
    };
    let rounds = (0..=ROUNDS).map(|_| (p50(&mut off), p50(&mut on)));
    // The first round only warms up.
    let figures: Vec<(f64, f64)> = rounds.skip(1).collect();
    let found = median(figures.iter().map(|(off, on)| on / off).collect());
    let of = |which: fn(&(f64, f64)) -> f64| median(figures.iter().map(which).collect()).round();
    add(TableRow::at_most(
        "latency of a call, p50, with log, metrics and traces",
        found,
        1.02,
        " × without",
        json!({"µs": {"without": of(|pair| pair.0), "with": of(|pair| pair.1)}}),
    ));
}

fn connect(call_log: &str, collector: Option<&str>) -> Client {
    let settings = json!({"callLog": call_log, "daemon": false});
    let command = dormouse(&config_with(&settings, &[server(1, 2, 0)]));
    let mut command = homes::command(&command, homes::EMPTY_HOME);
    if let Some(collector) = collector {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    }
    let mut client = Client::start(command);
    client.initialize();
    let load = json!({"name": "load_mcp", "arguments": {"mcp_name": "server-1"}});
    client.request("tools/call", &load);
    client
}

/// Starts a collector that reads and forgets. Returns its address.
fn start_collector() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    format!("http://{address}")
}

/// Answers requests until the client closes the connection.
fn serve(stream: TcpStream) {
    let mut input = BufReader::new(stream.try_clone().expect("a descriptor"));
    let mut output = stream;
    let mut line = String::new();
    let mut length = 0;
    while input.read_line(&mut line).is_ok_and(|read| read > 0) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        if line.trim().is_empty() {
            let mut body = vec![0; length];
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            if input.read_exact(&mut body).is_err() || output.write_all(answer).is_err() {
                return;
            }
        }
        line.clear();
    }
}
