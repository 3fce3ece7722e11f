//! `dormouse get`: one server's entry, as written in the config.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::{settings, shared_flags::Options};
use crate::{
    apps::{find_secrets, find_secrets_in_text, mask_secrets_in_value},
    base::visible,
};

pub(super) fn run(options: &Options, name: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = settings::parse(&file, options)?;
    settings::server(&config, name)?;
    let entry = file.entries()?.remove(name).unwrap_or_default();
    let members = entry.as_object().cloned().unwrap_or_default();
    let of_any = find_secrets_in_text(&file.path.with_extension("json"), &entry.to_string());
    let entry: Value =
        mask_secrets_in_value(&entry, &[of_any, find_secrets(name, &members)].concat());
    if is_json {
        let shown = json!({"server": name, "config": file.path, "entry": entry});
        outln!("{}", super::output::json(&shown)?);
    } else {
        settings::say_which(&file);
        outln!("{}: {}", visible(name), super::output::json(&entry)?);
    }
    Ok(ExitCode::SUCCESS)
}
