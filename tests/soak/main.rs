//! The soak: a driver that uses dormouse as many hosts at once would, for as long as one likes.
//!
//! Hosts of both eras connect over stdio (without and with the daemon), streamable HTTP and
//! HTTP+SSE, and call servers that die, hang, flood, ask questions and change. Meanwhile the config
//! is rewritten, servers are killed and stopped, logins expire, and the daemon is replaced. Each
//! call carries a payload of its own, and each server notes what it executes, so that the ledger
//! can tell at the end what was lost, crossed or doubled. Whatever is left after the last host has
//! gone has leaked.
//!
//! `soak [--minutes N] [--program PATH] [--seed N]`; exit code 1 if anything was found.

mod arguments;
mod daemon;
mod errands;
mod faults;
mod guarded;
mod host;
mod http_wire;
mod ledger;
mod leftovers;
mod pipes;
mod processes;
mod report;
mod run;
mod server;
mod server_kind;
mod world;

use std::process::ExitCode;

use arguments::{Arguments, Mode};

fn main() -> ExitCode {
    match arguments::parse(std::env::args().skip(1)) {
        Ok(Mode::Server(server)) => {
            server::serve(&server);
            ExitCode::SUCCESS
        }
        Ok(Mode::Drive(arguments)) => drive(&arguments),
        Err(problem) => {
            eprintln!("soak: {problem}");
            eprintln!("usage: soak [--minutes N] [--program PATH] [--seed N]");
            ExitCode::from(2)
        }
    }
}

fn drive(arguments: &Arguments) -> ExitCode {
    // The driver shares the machine with what it measures; two threads are what CI has.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().expect("a runtime");
    match runtime.block_on(run::run(arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}
