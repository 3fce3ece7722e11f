//! `just bench`: a table of figures, each compared with its baseline in the same run.
//!
//! One program plays all parts: it starts itself as the upstream servers and as the relays that
//! dormouse is compared with. Figures are ratios to a baseline of the same round, because machines
//! are noisy. The median of several rounds counts.

mod client;
mod contender;
mod daemon;
mod homes;
mod http;
mod policy;
mod process;
mod relay;
mod replicas;
mod report;
mod rows;
mod scripts;
mod search;
mod telemetry;
mod upstream;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("upstream") => upstream::serve(&arguments[1..]),
        Some("relay") => relay::run(&arguments[1..], relay::RelayKind::Lines),
        Some("relay-parse") => relay::run(&arguments[1..], relay::RelayKind::Parse),
        Some("http-upstream") => http::serve_upstream(),
        Some("http-relay") => http::serve_relay(&arguments[1..]),
        // cargo appends `--bench`. A word before it selects the rows to measure.
        first => return rows::run(first.filter(|word| !word.starts_with('-'))),
    }
    ExitCode::SUCCESS
}
