//! `dormouse trust`: allow a config found in the working directory to run its commands.

use std::{path::Path, process::ExitCode};

use serde_json::Value;

use super::settings;
use crate::{
    apps::{app_file_names, find_secrets_in_text, mask_secrets_in_value},
    base::visible,
    config,
};

pub(super) fn run(path: Option<&Path>) -> anyhow::Result<ExitCode> {
    let directory = settings::working_directory()?;
    let file = config::find_to_trust(path, &directory, app_file_names())?.read_to_trust()?;
    // An invalid config is not trusted, since its commands are unknown.
    file.parse(&file.environment())?;
    let entries = Value::Object(file.entries()?);
    let secrets = find_secrets_in_text(Path::new("entries.json"), &entries.to_string());
    let entries = mask_secrets_in_value(&entries, &secrets);
    let variables = file.env_file().names();
    file.trust(&settings::trust_store()?)?;
    outln!("trusted {} with its present content; it may run:", file.path.display());
    for (name, entry) in entries.as_object().into_iter().flatten() {
        outln!("  {}: {}", visible(name), visible(&described(entry)));
    }
    if !variables.is_empty() {
        outln!("with these variables of .env: {}", visible(&variables.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the command or address of a server as written: variables are not expanded, since their
/// values may be secret or change.
fn described(entry: &Value) -> String {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    let pairs = |key: &str| {
        let members = entry[key].as_object().filter(|members| !members.is_empty())?;
        let pair = |(name, value): (&String, &Value)| {
            format!("{name}={}", quoted(value.as_str().unwrap_or_default()))
        };
        Some(format!(", with {}", members.iter().map(pair).collect::<Vec<_>>().join(", ")))
    };
    if entry["command"].is_null() {
        return format!("(connect to) {}{}", text("url"), pairs("headers").unwrap_or_default());
    }
    let arguments = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<String> =
        std::iter::once(text("command")).chain(arguments).map(quoted).collect();
    let mut described = words.join(" ");
    if !entry["cwd"].is_null() {
        described.push_str(&format!(", in {}", text("cwd")));
    }
    described.push_str(&pairs("env").unwrap_or_default());
    if entry["inheritEnv"] == true {
        described.push_str(", with the whole environment");
    }
    described
}

/// Returns a word of a command, in quotes if it would otherwise read as several.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,~${}•".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("{word:?}")
    }
}
