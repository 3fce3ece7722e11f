//! The baselines: a relay that copies lines, and one that parses and rewrites each line.

use std::process::Stdio;

use dormouse::internals::wire::standard_streams;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    process::Command,
};

#[derive(Clone, Copy)]
pub enum RelayKind {
    /// Copies each line unchanged.
    Lines,
    /// Parses each line into a `Value`, rewrites its id, and serializes it again.
    Parse,
}

pub fn run(command: &[String], kind: RelayKind) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(relay(command, kind));
}

async fn relay(command: &[String], kind: RelayKind) {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the upstream starts");
    let (stdin, stdout) =
        (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let up =
        tokio::spawn(copy(standard_streams::open_input().expect("standard input"), stdin, kind));
    tokio::spawn(copy(stdout, standard_streams::open_output().expect("standard output"), kind));
    up.await.expect("the copier does not panic");
    child.wait().await.expect("the upstream ends");
}

async fn copy(from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, kind: RelayKind) {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
        if matches!(kind, RelayKind::Parse) {
            let mut message: Value = serde_json::from_slice(&line).expect("JSON");
            if let Some(id) = message.get_mut("id") {
                *id = Value::from(id.as_u64().unwrap_or_default());
            }
            line.clear();
            serde_json::to_writer(&mut line, &message).expect("a Value is JSON");
            line.push(b'\n');
        }
        if to.write_all(&line).await.is_err() {
            return;
        }
        line.clear();
    }
}
