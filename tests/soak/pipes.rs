//! A host's connection over standard streams: a dormouse of its own.

use std::{io, process::Stdio, sync::Mutex, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, Command},
    sync::{mpsc, watch},
};

/// Maximum time for dormouse to end after its input has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(15);

pub struct Pipes {
    /// The lines to write; `None` once the input has ended.
    lines: Mutex<Option<mpsc::UnboundedSender<String>>>,
    /// Whether dormouse has ended in order; `None` while it runs.
    exit: watch::Receiver<Option<bool>>,
    pub process: u32,
}

impl Pipes {
    /// Starts a dormouse, whose messages go to `received`.
    pub fn start(mut command: Command, received: mpsc::UnboundedSender<Value>) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::Error::other("no standard streams"));
        };
        let process = child.id().unwrap_or_default();
        let (lines, to_write) = mpsc::unbounded_channel();
        let (exited, exit) = watch::channel(None);
        tokio::spawn(read(BufReader::new(stdout), received));
        tokio::spawn(write(child, stdin, to_write, exited));
        Ok(Self { lines: Mutex::new(Some(lines)), exit, process })
    }

    pub fn send(&self, message: &Value) -> io::Result<()> {
        let lines = self.lines.lock().expect("no holder panics");
        let lines = lines.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        lines.send(format!("{message}\n")).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Ends the input, and returns whether dormouse has ended in order.
    pub async fn close(&self) -> bool {
        self.lines.lock().expect("no holder panics").take();
        let mut exit = self.exit.clone();
        let exited = tokio::time::timeout(EXIT_TIMEOUT, exit.wait_for(Option::is_some)).await;
        matches!(exited, Ok(Ok(exit)) if *exit == Some(true))
    }
}

async fn read(
    stdout: BufReader<tokio::process::ChildStdout>,
    received: mpsc::UnboundedSender<Value>,
) {
    let mut lines = stdout.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // A line that is not JSON is reported by the host.
        let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
        if received.send(message).is_err() {
            return;
        }
    }
}

/// Writes lines until there will be no more, then waits for dormouse to end.
async fn write(
    mut child: Child,
    mut stdin: ChildStdin,
    mut lines: mpsc::UnboundedReceiver<String>,
    exited: watch::Sender<Option<bool>>,
) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
    drop(stdin);
    let exit = child.wait().await;
    exited.send_replace(Some(exit.is_ok_and(|status| status.success())));
}
