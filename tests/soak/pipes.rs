//! A host's connection over standard streams: a dormouse of its own.

use std::{io, process::Stdio, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, Command},
    sync::{Mutex, mpsc},
};

/// Maximum time for dormouse to end after its input has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(15);

pub struct Pipes {
    stdin: Mutex<Option<ChildStdin>>,
    child: Mutex<Child>,
    pub process: u32,
}

impl Pipes {
    /// Starts a dormouse, whose messages go to `received`.
    pub fn start(mut command: Command, received: mpsc::UnboundedSender<Value>) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message = serde_json::from_str(&line);
                // What is no JSON is an answer to no request, and its request will be missed.
                if received.send(message.unwrap_or(Value::String(line))).is_err() {
                    return;
                }
            }
        });
        let process = child.id().unwrap_or_default();
        Ok(Self { stdin: Mutex::new(child.stdin.take()), child: Mutex::new(child), process })
    }

    pub async fn send(&self, message: &Value) -> io::Result<()> {
        let mut stdin = self.stdin.lock().await;
        let stdin = stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(format!("{message}\n").as_bytes()).await
    }

    /// Ends the input, and returns whether dormouse has ended in order.
    pub async fn close(&self) -> bool {
        self.stdin.lock().await.take();
        let mut child = self.child.lock().await;
        let exited = tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await;
        matches!(exited, Ok(Ok(status)) if status.success())
    }
}
