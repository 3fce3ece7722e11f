//! A worker as the process that has started it sees it.

use std::{
    io,
    process::{ExitStatus, Stdio},
};

use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::mpsc,
};
use tokio_util::task::AbortOnDropHandle;

use super::{ARGUMENT, FromWorker, ToWorker, message::MAX_MESSAGE_BYTES};
use crate::{
    base::own_program,
    wire::{Line, LineReader},
};

/// The failure of a worker.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkerError {
    #[error("cannot start the interpreter for scripts: {0}")]
    Start(#[source] io::Error),
    #[error("the interpreter has ended unexpectedly ({0})")]
    Ended(ExitStatus),
    #[error("the interpreter has sent an invalid message: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("the interpreter has sent a message of more than {MAX_MESSAGE_BYTES} bytes")]
    TooLong,
    #[error("the interpreter has sent an unexpected message")]
    Unexpected,
    #[error("the interpreter does not answer")]
    Silent,
    #[error("cannot talk to the interpreter: {0}")]
    Io(#[from] io::Error),
}

/// A worker, which is killed when this is dropped.
pub(crate) struct WorkerProcess {
    child: Child,
    output: LineReader<ChildStdout>,
    /// The messages that wait for the worker to read them.
    queue: mpsc::UnboundedSender<Vec<u8>>,
    _writing: AbortOnDropHandle<()>,
}

impl WorkerProcess {
    /// Starts a worker, which waits for its first message.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub(crate) fn start() -> Result<Self, WorkerError> {
        let mut child = command().and_then(|mut it| it.spawn()).map_err(WorkerError::Start)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.expect("both are piped");
        let (queue, messages) = mpsc::unbounded_channel();
        let writing = AbortOnDropHandle::new(tokio::spawn(write(input, messages)));
        let output = LineReader::new(output, MAX_MESSAGE_BYTES);
        Ok(Self { child, output, queue, _writing: writing })
    }

    /// Sends a message, without waiting until it is read.
    pub(crate) fn send(&self, message: &ToWorker) {
        let mut line = serde_json::to_vec(message).expect("a message can be written");
        // The JSON of servers can have line breaks between its parts, and nowhere else.
        for byte in line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
        line.push(b'\n');
        // A worker that has ended shows that by its output.
        let _ = self.queue.send(line);
    }

    /// Waits for the next message. Cancel safe.
    ///
    /// # Errors
    /// If there will be none.
    pub(crate) async fn next(&mut self) -> Result<FromWorker, WorkerError> {
        match self.output.next().await? {
            Some(Line::Text(line)) => Ok(serde_json::from_slice(&line)?),
            Some(_) => Err(WorkerError::TooLong),
            None => Err(WorkerError::Ended(self.child.wait().await?)),
        }
    }
}

/// Returns the command of a worker: this program without its environment.
fn command() -> io::Result<Command> {
    let mut command = Command::new(own_program()?);
    command.arg(ARGUMENT).env_clear();
    #[cfg(unix)]
    command.current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.kill_on_drop(true);
    Ok(command)
}

async fn write(mut input: ChildStdin, mut messages: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(message) = messages.recv().await {
        if input.write_all(&message).await.is_err() {
            return;
        }
    }
}
