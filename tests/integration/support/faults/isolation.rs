//! Threads with namespaces of their own.

use std::{panic::resume_unwind, process::Command, thread};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};

use crate::support::not_tested;

#[derive(Clone, Copy)]
pub enum Namespace {
    Mounts,
    Network,
}

/// Runs a test on a thread with a namespace of its own. All that the test starts is in it.
pub fn isolated(namespace: Namespace, test: impl AsyncFnOnce() + Send + 'static) {
    let thread = thread::spawn(move || {
        if let Err(why) = enter(namespace) {
            return not_tested(why);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(test());
    });
    if let Err(panic) = thread.join() {
        resume_unwind(panic);
    }
}

fn enter(namespace: Namespace) -> Result<(), String> {
    let flags = match namespace {
        Namespace::Mounts => CloneFlags::CLONE_NEWNS,
        Namespace::Network => CloneFlags::CLONE_NEWNET,
    };
    unshare(flags).map_err(|error| format!("namespaces need root: {error}"))?;
    match namespace {
        Namespace::Mounts => {
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
                .map_err(|error| format!("mounts cannot be made private: {error}"))
        }
        Namespace::Network => run("ip", &["link", "set", "lo", "up"]),
    }
}

/// Runs a program that sets up a fault.
pub(super) fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    output(program, arguments).map(drop)
}

/// Runs a program, and returns its standard output.
pub(super) fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program} is not installed: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{program} {}: {said}", arguments.join(" ")))
}
