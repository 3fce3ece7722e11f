//! The command line of the driver, and of the servers that it has dormouse start.

use std::{path::PathBuf, time::Duration};

use crate::server_kind::ServerKind;

pub enum Mode {
    Drive(Arguments),
    Server(ServerArguments),
}

pub struct Arguments {
    pub duration: Duration,
    /// The dormouse to run.
    pub program: PathBuf,
    /// The start of all random choices of the driver.
    pub seed: u64,
}

pub struct ServerArguments {
    pub kind: ServerKind,
    /// The directory in which the server notes what it executes.
    pub journal: PathBuf,
}

/// Parses the arguments after the program's name.
///
/// # Errors
/// If an argument is unknown or has no valid value.
pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Mode, String> {
    let mut arguments = Arguments {
        duration: Duration::from_mins(2),
        program: sibling_program(),
        seed: std::process::id().into(),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} has no value"));
        match word.as_str() {
            "server" => {
                let kind = ServerKind::named(&value()?).ok_or("unknown kind of server")?;
                return Ok(Mode::Server(ServerArguments { kind, journal: value()?.into() }));
            }
            "--minutes" => {
                let minutes: f64 = value()?.parse().map_err(|_| "--minutes is not a number")?;
                arguments.duration = Duration::try_from_secs_f64(minutes * 60.0)
                    .map_err(|_| "--minutes is out of range")?;
            }
            "--program" => arguments.program = value()?.into(),
            "--seed" => arguments.seed = value()?.parse().map_err(|_| "--seed is not a number")?,
            _ => return Err(format!("unknown argument {word:?}")),
        }
    }
    Ok(Mode::Drive(arguments))
}

/// Returns the dormouse that was built with this program: cargo puts examples into a folder of the
/// folder of programs.
fn sibling_program() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.ancestors().nth(2).unwrap_or(&own).join("dormouse")
}
