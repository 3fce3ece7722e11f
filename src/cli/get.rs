//! `dormouse get`: one server's entry, as it stands in the config.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::{arguments::Options, settings};
use crate::{
    apps::{masked_value, secrets, secrets_in},
    config::visible,
};

pub(super) fn run(options: &Options, name: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = settings::parse(&file, options)?;
    settings::server(&config, name)?;
    let entry = file.entries()?.remove(name).unwrap_or_default();
    let members = entry.as_object().cloned().unwrap_or_default();
    let of_any = secrets_in(&file.path.with_extension("json"), &entry.to_string());
    let entry: Value = masked_value(&entry, &[of_any, secrets(name, &members)].concat());
    if is_json {
        let shown = json!({"server": name, "config": file.path, "entry": entry});
        outln!("{}", super::json(&shown)?);
    } else {
        settings::say_which(&file);
        outln!("{}: {}", visible(name), super::json(&entry)?);
    }
    Ok(ExitCode::SUCCESS)
}
