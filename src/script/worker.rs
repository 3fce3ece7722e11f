//! The worker: a process that runs one script in a sandbox. It reads messages from its standard
//! input, and writes messages to its standard output.

mod engine;
mod link;
mod sandbox;
mod stopwatch;
mod tool_uses;
mod typescript;

use std::io::{self, BufRead, Write};

use self::typescript::Source;
use super::message::{Bounds, Failure, FromWorker, ToWorker};

/// The argument with which dormouse starts itself as a worker.
pub(crate) const ARGUMENT: &str = "__script-worker";

/// Runs the worker: returns when its script has ended, or when its owner is gone.
pub(crate) fn run_worker(input: impl BufRead + 'static, output: impl Write + 'static) {
    end_with_owner();
    let mut channel = Channel { input: Box::new(input), output: Box::new(output) };
    let Ok(Some(first)) = channel.receive() else { return };
    // An error means that the owner is gone.
    let _ = match first {
        ToWorker::Run(run) => work(&run.code, run.bounds, channel, |source, channel| {
            engine::run(&run, source, channel)
        }),
        ToWorker::Check { code, bounds } => work(&code, bounds, channel, |source, channel| {
            engine::check(bounds, source, tool_uses::tool_uses(&code), channel)
        }),
        ToWorker::Answer { .. } | ToWorker::Refusal { .. } => Ok(()),
    };
}

/// Has the system kill this process when the thread that has started it ends. A script that
/// computes does not read that its owner is gone. On other systems, its time is limited.
fn end_with_owner() {
    #[cfg(target_os = "linux")]
    // Without it the limit of time holds.
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
}

/// Enters the sandbox, and does `work` with the script there.
fn work(
    code: &str,
    bounds: Bounds,
    mut channel: Channel,
    work: impl FnOnce(&Source, Channel) -> io::Result<()>,
) -> io::Result<()> {
    if let Err(error) = sandbox::enter(bounds) {
        let message = format!("the sandbox for scripts cannot be set up: {error}");
        return channel.send(&FromWorker::Failed(Failure::new(message)));
    }
    channel.send(&FromWorker::Ready)?;
    match Source::read(code) {
        Ok(source) => work(&source, channel),
        Err(failure) => channel.send(&FromWorker::Failed(failure)),
    }
}

/// Returns whether a text is a script or declarations.
#[cfg(any(test, fuzzing))]
pub(super) fn is_script(text: &str) -> bool {
    typescript::parse_of_any_depth(&oxc_allocator::Allocator::default(), text).is_ok()
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
