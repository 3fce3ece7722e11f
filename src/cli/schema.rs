//! `dormouse schema`: the JSON schema of the config.

use std::process::ExitCode;

use crate::config;

pub(super) fn run(reference: bool) -> anyhow::Result<ExitCode> {
    if reference {
        outln!("{}", config::reference().trim_end());
    } else {
        outln!("{}", serde_json::to_string_pretty(&config::json_schema())?);
    }
    Ok(ExitCode::SUCCESS)
}
