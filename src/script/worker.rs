//! The worker: a process that runs one script in a sandbox. It reads messages from its standard
//! input, and writes messages to its standard output.

mod engine;
mod link;
mod sandbox;
mod stopwatch;
mod tool_uses;
mod typescript;

use std::io::{self, BufRead, Write};

use super::message::{Failure, FromWorker, Start, ToWorker};

/// The argument with which dormouse starts itself as a worker.
pub(crate) const ARGUMENT: &str = "__script-worker";

/// Runs the worker: returns when its script has ended, or when its owner is gone.
pub(crate) fn run_worker(input: impl BufRead + 'static, output: impl Write + 'static) {
    let mut channel = Channel { input: Box::new(input), output: Box::new(output) };
    let Ok(Some(ToWorker::Start(start))) = channel.receive() else { return };
    // An error means that the owner is gone.
    let _ = run(&start, channel);
}

fn run(start: &Start, mut channel: Channel) -> io::Result<()> {
    if let Err(error) = sandbox::enter(start) {
        let message = format!("the sandbox for scripts cannot be set up: {error}");
        return channel.send(&FromWorker::Failed(Failure::new(message)));
    }
    channel.send(&FromWorker::Ready)?;
    if start.is_check {
        let checked = tool_uses::tool_uses(&start.code);
        let checked = checked.map(|uses| FromWorker::Checked { uses });
        return channel.send(&checked.unwrap_or_else(FromWorker::Failed));
    }
    match typescript::Source::read(&start.code) {
        Ok(source) => engine::run(start, &source, channel),
        Err(failure) => channel.send(&FromWorker::Failed(failure)),
    }
}

/// The streams to the owner of the worker.
struct Channel {
    input: Box<dyn BufRead>,
    output: Box<dyn Write>,
}

impl Channel {
    fn send(&mut self, message: &FromWorker) -> io::Result<()> {
        self.send_text(&serde_json::to_string(message)?)
    }

    /// Sends a message that is written already, on one line.
    fn send_text(&mut self, message: &str) -> io::Result<()> {
        self.output.write_all(message.as_bytes())?;
        self.output.write_all(b"\n")?;
        self.output.flush()
    }

    /// Waits for the next message; `None` if the owner is gone.
    fn receive(&mut self) -> io::Result<Option<ToWorker>> {
        let mut line = String::new();
        if self.input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&line)?))
    }
}
