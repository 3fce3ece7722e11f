//! A terminal, and somebody who types there.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::Stdio,
};

use nix::pty::openpty;

/// Runs a command at a terminal. Once each of the questions has appeared its answer is typed. What was shown.
pub async fn at_terminal(
    command: tokio::process::Command,
    answers: &[(&'static str, &'static str)],
) -> String {
    let (answers, (mut seen, mut given)) = (answers.to_vec(), (0, 0));
    at_terminal_typing(command, move |shown| {
        let Some(&(question, answer)) = answers.get(given) else { return Typing::Done };
        let Some(at) = shown[seen..].find(question) else { return Typing::Waits(question) };
        (seen, given) = (seen + at + question.len(), given + 1);
        Typing::Types(answer.to_owned())
    })
    .await
}

/// What somebody does who looks at a terminal.
pub enum Typing {
    Types(String),
    /// For this.
    Waits(&'static str),
    Done,
}

/// Runs a command at a terminal, at which somebody types who sees all that has been shown. What was shown.
pub async fn at_terminal_typing(
    mut command: tokio::process::Command,
    types: impl FnMut(&str) -> Typing + Send + 'static,
) -> String {
    let terminal = openpty(None, None).expect("there are terminals left");
    let slave = File::from(terminal.slave);
    let stdio = || Stdio::from(slave.try_clone().expect("a descriptor is left"));
    command.stdin(stdio()).stdout(stdio()).stderr(stdio()).env("TERM", "xterm").kill_on_drop(true);
    let mut child = command.spawn().expect("dormouse runs");
    // The command has ends of its own too, which the terminal would be kept open by.
    drop((command, slave));
    let typing = tokio::task::spawn_blocking(move || converse(File::from(terminal.master), types));
    let Ok(shown) = tokio::time::timeout(super::PATIENCE, typing).await else {
        // Whoever reads from the terminal reads its end then.
        child.kill().await.expect("it can be killed");
        panic!("it waits for something else");
    };
    let shown = shown.expect("nothing panics");
    let status = tokio::time::timeout(super::PATIENCE, child.wait()).await.expect("it ends");
    assert!(status.expect("it ran").success(), "{shown}");
    shown
}

fn converse(mut terminal: File, mut types: impl FnMut(&str) -> Typing) -> String {
    let mut shown = String::new();
    let mut buffer = [0; 4096];
    let mut awaited = None;
    // The end is an error here.
    while let Ok(length @ 1..) = terminal.read(&mut buffer) {
        shown.push_str(&String::from_utf8_lossy(&buffer[..length]));
        awaited = loop {
            match types(&shown) {
                Typing::Types(text) => terminal.write_all(text.as_bytes()).expect("it is read"),
                Typing::Waits(what) => break Some(what),
                Typing::Done => break None,
            }
        };
    }
    assert!(awaited.is_none(), "never asked: {awaited:?}\n{shown}");
    shown
}
