//! Questions to the user at the terminal, and the changes that they are about.

use std::{io::IsTerminal as _, path::Path};

use dialoguer::{Confirm, Input};
use similar::TextDiff;

use super::arguments::Consent;
use crate::{
    apps::{PlaintextSecret, find_secrets_in_text, mask_secrets},
    base::visible,
};

/// The user's decision about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// The user only wanted to see the change.
    Dry,
    /// There is no terminal on which to ask.
    NoTerminal,
}

/// Returns whether a user can answer.
pub(super) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks the user, unless a flag answers already.
pub(super) fn agree(consent: Consent, question: &str) -> anyhow::Result<Answer> {
    Ok(if consent.dry_run {
        Answer::Dry
    } else if consent.yes {
        Answer::Yes
    } else if !is_possible() {
        Answer::NoTerminal
    } else if confirm(question)? {
        Answer::Yes
    } else {
        Answer::No
    })
}

pub(super) fn confirm(question: &str) -> anyhow::Result<bool> {
    Ok(Confirm::new().with_prompt(question).default(true).interact()?)
}

/// Asks for a line of text, which may be empty. The user can edit `proposal`.
pub(super) fn text(question: &str, proposal: Option<&str>) -> anyhow::Result<String> {
    let input = Input::<String>::new().with_prompt(question).allow_empty(true);
    let input = match proposal {
        Some(proposal) => input.with_initial_text(proposal),
        None => input,
    };
    Ok(input.interact_text()?.trim().to_owned())
}

/// Prints the changes of a file, with its secrets and those in `more` masked.
pub(super) fn print_difference(path: &Path, before: &str, after: &str, more: &[PlaintextSecret]) {
    let secrets =
        [&find_secrets_in_text(path, before)[..], &find_secrets_in_text(path, after), more]
            .concat();
    let difference = TextDiff::from_lines(before, after);
    let name = path.display().to_string();
    let hunks = mask_secrets(&difference.unified_diff().header(&name, &name).to_string(), &secrets);
    print_hunks(&hunks);
}

/// Prints the lines of a comparison, in colour on a terminal.
pub(super) fn print_hunks(hunks: &str) {
    for line in hunks.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => anstyle::AnsiColor::Green.on_default(),
            Some(b'-') => anstyle::AnsiColor::Red.on_default(),
            _ => anstyle::Style::new(),
        };
        outln!("{style}{}{style:#}", visible(line));
    }
}
