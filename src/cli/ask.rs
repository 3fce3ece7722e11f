//! Questions to whoever sits at the terminal, and what they are asked about.

use std::io::IsTerminal as _;

use dialoguer::{Confirm, Input};
use similar::TextDiff;

use crate::{
    config::visible,
    hosts::{Secret, masked},
};

/// Whether there is anybody who could answer.
pub(super) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether to go on.
pub(super) fn confirm(question: &str) -> anyhow::Result<bool> {
    Ok(Confirm::new().with_prompt(question).default(true).interact()?)
}

/// A line of text, which may be empty; `proposal` can be changed.
pub(super) fn text(question: &str, proposal: Option<&str>) -> anyhow::Result<String> {
    let input = Input::<String>::new().with_prompt(question).allow_empty(true);
    let input = match proposal {
        Some(proposal) => input.with_initial_text(proposal),
        None => input,
    };
    Ok(input.interact_text()?.trim().to_owned())
}

/// Prints what would become of a file; none of the secrets can be read in it.
pub(super) fn print_difference(name: &str, before: &str, after: &str, secrets: &[Secret]) {
    let difference = TextDiff::from_lines(before, after);
    let hunks = difference.unified_diff().header(name, name).to_string();
    for line in hunks.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => anstyle::AnsiColor::Green.on_default(),
            Some(b'-') => anstyle::AnsiColor::Red.on_default(),
            _ => anstyle::Style::new(),
        };
        outln!("{style}{}{style:#}", visible(&masked(line, secrets)));
    }
}
