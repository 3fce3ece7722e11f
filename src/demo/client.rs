//! The demo's MCP client: a child process and the messages to it.

use std::{io, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStderr},
};

use super::scratch::Scratch;
use crate::{
    base::Lock,
    peer::{CallError, CallOptions, MessageHandler, Peer, UnexpectedMessage, read_messages},
    protocol::method,
    wire::{LineReader, Notification, Outbox, Raw, Request, write_messages},
};

/// Maximum size of a message of the demo, in bytes.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The reason that the demo failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    #[error("cannot start a process of the demo: {0}")]
    Start(#[from] io::Error),
    #[error("{method} failed: {cause}")]
    Call { method: &'static str, cause: CallError },
    #[error("{method} was answered with an error: {error}")]
    Refused { method: &'static str, error: Raw },
    #[error("refresh failed: {0}")]
    Refresh(String),
    #[error("the server did not go to sleep within {ANSWER_TIMEOUT:?}")]
    StillAwake,
}

/// A host that is connected to one child process.
pub(super) struct DemoClient {
    peer: Peer,
    inbound: Arc<Inbound>,
    child: Child,
    log: tokio::io::Lines<BufReader<ChildStderr>>,
}

#[derive(Default)]
struct Inbound {
    notified: Lock<Vec<String>>,
}

impl MessageHandler for Inbound {
    fn request(&self, _: Request) {}

    fn notification(&self, notification: Notification) {
        let mut notified = self.notified.lock();
        notified.push(notification.method);
    }

    fn unexpected(&self, what: UnexpectedMessage) {
        tracing::debug!(?what);
    }

    async fn ready(&self) {}
}

impl DemoClient {
    /// Starts this same program with `arguments`, and performs the handshake.
    pub(super) async fn start(
        scratch: &Scratch,
        arguments: &[&str],
    ) -> Result<(Self, Value), DemoError> {
        let mut child = scratch.command(arguments)?.spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("the three standard streams of a demo process are pipes");
        };
        let outbox = Outbox::default();
        let peer = Peer::new(outbox.clone());
        let inbound = Arc::new(Inbound::default());
        tokio::spawn(write_messages(outbox, stdin));
        let (reader, handler) = (peer.clone(), inbound.clone());
        tokio::spawn(async move {
            let lines = LineReader::new(stdout, MAX_MESSAGE_BYTES);
            // After its end, with or without an error, nothing more can be answered.
            let _ = read_messages(lines, MAX_MESSAGE_BYTES, reader.clone(), handler).await;
            reader.close();
        });
        let log = BufReader::new(stderr).lines();
        let client = Self { peer, inbound, child, log };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "dormouse demo", "version": env!("CARGO_PKG_VERSION")},
        });
        let greeting = client.request(method::INITIALIZE, hello).await?;
        client.peer.notify(method::INITIALIZED, None);
        Ok((client, greeting))
    }

    pub(super) async fn request(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<Value, DemoError> {
        let params = Some(Raw::encode(&params));
        match self.peer.request(method, params, CallOptions::silent_for(ANSWER_TIMEOUT)).await {
            Ok(Ok(result)) => Ok(result.to_value()),
            Ok(Err(error)) => Err(DemoError::Refused { method, error }),
            Err(cause) => Err(DemoError::Call { method, cause }),
        }
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, DemoError> {
        self.request(method::TOOLS_CALL, json!({"name": tool, "arguments": arguments})).await
    }

    /// Returns the notifications since the last call.
    pub(super) fn notifications(&self) -> Vec<String> {
        let mut notified = self.inbound.notified.lock();
        std::mem::take(&mut notified)
    }

    /// Waits for the log line that says that `server` has gone to sleep.
    pub(super) async fn until_asleep(&mut self, server: &str) -> Result<(), DemoError> {
        let waiting = async {
            while let Ok(Some(line)) = self.log.next_line().await {
                let entry: Value = serde_json::from_str(&line).unwrap_or_default();
                let message = entry["message"].as_str().unwrap_or_default();
                if entry["server"] == server && message.contains("asleep") {
                    return Some(());
                }
            }
            None
        };
        tokio::time::timeout(ANSWER_TIMEOUT, waiting)
            .await
            .ok()
            .flatten()
            .ok_or(DemoError::StillAwake)
    }

    /// Closes the child's input and waits until it has ended.
    pub(super) async fn end(mut self) {
        self.peer.close();
        if tokio::time::timeout(ANSWER_TIMEOUT, self.child.wait()).await.is_err() {
            // The process is killed on drop.
            tracing::warn!("the demo's process did not end");
        }
    }
}
