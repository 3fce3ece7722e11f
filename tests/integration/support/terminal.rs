//! A terminal, and somebody who types there.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::Stdio,
};

use nix::pty::openpty;

/// Runs a command at a terminal. Once each of the questions has appeared its answer is typed. What was shown.
pub async fn at_terminal(
    mut command: tokio::process::Command,
    answers: &[(&'static str, &'static str)],
) -> String {
    let terminal = openpty(None, None).expect("there are terminals left");
    let slave = File::from(terminal.slave);
    let stdio = || Stdio::from(slave.try_clone().expect("a descriptor is left"));
    command.stdin(stdio()).stdout(stdio()).stderr(stdio()).env("TERM", "xterm").kill_on_drop(true);
    let mut child = command.spawn().expect("dormouse runs");
    // The command has ends of its own too, which the terminal would be kept open by.
    drop((command, slave));
    let typed = answers.to_vec();
    let typing = tokio::task::spawn_blocking(move || converse(File::from(terminal.master), &typed));
    let Ok(shown) = tokio::time::timeout(super::PATIENCE, typing).await else {
        // Whoever reads from the terminal reads its end then.
        child.kill().await.expect("it can be killed");
        panic!("it waits for something else than {answers:?}");
    };
    let shown = shown.expect("nothing panics");
    let status = tokio::time::timeout(super::PATIENCE, child.wait()).await.expect("it ends");
    assert!(status.expect("it ran").success(), "{shown}");
    shown
}

fn converse(mut terminal: File, answers: &[(&str, &str)]) -> String {
    let (mut shown, mut seen) = (String::new(), 0);
    let mut open = answers.iter();
    let mut next = open.next();
    let mut buffer = [0; 4096];
    // The end is an error here.
    while let Ok(length @ 1..) = terminal.read(&mut buffer) {
        shown.push_str(&String::from_utf8_lossy(&buffer[..length]));
        while let Some((question, answer)) = next
            && let Some(at) = shown[seen..].find(question)
        {
            seen += at + question.len();
            terminal.write_all(answer.as_bytes()).expect("it is read");
            next = open.next();
        }
    }
    assert!(next.is_none(), "never asked: {next:?}\n{shown}");
    shown
}
