//! Lines and JSON on standard output and standard error.

use std::{
    fmt,
    io::Write,
    sync::atomic::{AtomicBool, Ordering},
};

use serde::Serialize;

use crate::base::is_invisible;

/// Prints a line on standard output. If the line cannot be written, the program continues, but
/// fails at its end.
macro_rules! outln {
    ($($line:tt)*) => {
        $crate::cli::output::print_line(&mut anstream::stdout(), format_args!($($line)*))
    };
}

/// Prints a line on standard error, as `outln!` does on standard output.
macro_rules! errln {
    ($($line:tt)*) => {
        $crate::cli::output::print_line(&mut anstream::stderr(), format_args!($($line)*))
    };
}

/// Set once a line could not be printed.
static IS_OUTPUT_LOST: AtomicBool = AtomicBool::new(false);

/// Returns whether a line could not be printed.
pub(super) fn is_output_lost() -> bool {
    IS_OUTPUT_LOST.load(Ordering::Relaxed)
}

pub(super) fn print_line(to: &mut impl Write, line: fmt::Arguments<'_>) {
    if writeln!(to, "{line}").is_err() {
        IS_OUTPUT_LOST.store(true, Ordering::Relaxed);
    }
}

/// Serializes a value as pretty JSON, with invisible characters escaped.
pub(super) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(with_escapes(&serde_json::to_string_pretty(value)?))
}

/// Escapes the invisible characters in a JSON text. Outside of strings, JSON has none but `\n`.
pub(super) fn with_escapes(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(c);
        }
    }
    shown
}
