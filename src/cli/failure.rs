//! The report of a command that has failed.

use super::{
    problems,
    usage_error::{USAGE_EXIT_CODE, UsageError},
};
use crate::{base::visible, config::ConfigError};

/// Returns the exit code of a command that has failed.
pub(super) fn exit_code(error: &anyhow::Error) -> u8 {
    let is_usage = error.is::<ConfigError>() || error.is::<UsageError>();
    if is_usage { USAGE_EXIT_CODE } else { 1 }
}

/// Returns the text of an error for the terminal.
pub(super) fn report(error: &anyhow::Error) -> String {
    let Some(ConfigError::Invalid(problems)) = error.downcast_ref() else {
        return format!("dormouse: {}", visible(&format!("{error:#}")));
    };
    let context = error.chain().take_while(|cause| !cause.is::<ConfigError>());
    let context = context.map(|cause| format!("dormouse: {}", visible(&cause.to_string())));
    context.chain([problems::report(problems)]).collect::<Vec<_>>().join("\n")
}
