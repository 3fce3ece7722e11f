//! A terminal, and a user who types there.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::Stdio,
};

use nix::pty::openpty;

/// Runs a command at a terminal, types each answer after its question has appeared, and returns the
/// output.
pub async fn at_terminal(
    command: tokio::process::Command,
    answers: &[(&'static str, &'static str)],
) -> String {
    let (answers, (mut seen, mut given)) = (answers.to_vec(), (0, 0));
    at_terminal_typing(command, move |shown| {
        let Some(&(question, answer)) = answers.get(given) else { return TerminalAction::Done };
        let Some(at) = shown[seen..].find(question) else {
            return TerminalAction::WaitFor(question);
        };
        (seen, given) = (seen + at + question.len(), given + 1);
        TerminalAction::Type(answer.to_owned())
    })
    .await
}

/// The next action of the user at a terminal.
pub enum TerminalAction {
    Type(String),
    /// Waits for this text.
    WaitFor(&'static str),
    Done,
}

/// Runs a command at a terminal, where the user reacts to all output so far, and returns the
/// output.
pub async fn at_terminal_typing(
    mut command: tokio::process::Command,
    types: impl FnMut(&str) -> TerminalAction + Send + 'static,
) -> String {
    let terminal = openpty(None, None).expect("there are terminals left");
    let slave = File::from(terminal.slave);
    let stdio = || Stdio::from(slave.try_clone().expect("a descriptor is left"));
    command.stdin(stdio()).stdout(stdio()).stderr(stdio()).env("TERM", "xterm").kill_on_drop(true);
    let mut child = command.spawn().expect("dormouse runs");
    // The command holds descriptors of the terminal, which would keep it open.
    drop((command, slave));
    let typing = tokio::task::spawn_blocking(move || converse(File::from(terminal.master), types));
    let Ok(shown) = tokio::time::timeout(super::PATIENCE, typing).await else {
        // The kill ends the thread that reads from the terminal.
        child.kill().await.expect("it can be killed");
        panic!("it waits for something else");
    };
    let shown = shown.expect("nothing panics");
    let status = tokio::time::timeout(super::PATIENCE, child.wait()).await.expect("it ends");
    assert!(status.expect("it ran").success(), "{shown}");
    shown
}

fn converse(mut terminal: File, mut types: impl FnMut(&str) -> TerminalAction) -> String {
    let mut shown = String::new();
    let mut buffer = [0; 4096];
    let mut awaited = None;
    // Linux reports the end of a terminal as an error.
    while let Ok(length @ 1..) = terminal.read(&mut buffer) {
        shown.push_str(&String::from_utf8_lossy(&buffer[..length]));
        awaited = loop {
            match types(&shown) {
                TerminalAction::Type(text) => {
                    terminal.write_all(text.as_bytes()).expect("it is read");
                }
                TerminalAction::WaitFor(what) => break Some(what),
                TerminalAction::Done => break None,
            }
        };
    }
    assert!(awaited.is_none(), "never asked: {awaited:?}\n{shown}");
    shown
}
