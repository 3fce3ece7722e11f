//! `dormouse init`, `add`, `remove`, `enable` and `disable`: changes of the config in place, valid or not made at all.

use std::{path::PathBuf, process::ExitCode};

use super::{
    UsageError,
    arguments::{AddArguments, Options},
    ask,
    operate::tell_running,
    settings,
};
use crate::{
    config::{self, ConfigError, ConfigFile, MergeError, ReplaceError, create_file, visible},
    control::{Change, ChangeError},
    hosts::{Entry, Needed, snippets},
};
use anyhow::Context as _;
use serde_json::{Map, Value, json};

/// Somebody else may be editing the config at the same time.
const MOST_TRIES: usize = 10;

/// What a new config begins with.
pub(super) const FRESH: &str = "// A config of dormouse: JSON with comments. `dormouse add` adds a server; docs/config.md has every key.
{
  \"mcpServers\": {}
}
";

pub(super) fn init(options: &Options) -> anyhow::Result<ExitCode> {
    let path = options.config.clone().map_or_else(own_place, Ok)?;
    if path.extension().is_some_and(|extension| extension != "json") {
        let message = "`init` writes JSON: name a file that ends in .json".to_owned();
        return Err(UsageError(message).into());
    }
    create(&path)?;
    outln!("wrote {}; next: dormouse add NAME COMMAND…", path.display());
    Ok(ExitCode::SUCCESS)
}

fn own_place() -> anyhow::Result<PathBuf> {
    config::own_place().context("cannot tell where your config would be: is HOME set?")
}

fn create(path: &std::path::Path) -> anyhow::Result<()> {
    create_file(path, FRESH.as_bytes()).with_context(|| format!("cannot create {}", path.display()))
}

pub(super) fn add(options: &Options, typed: &AddArguments) -> anyhow::Result<ExitCode> {
    let wanted = entries(options, typed)?;
    let before = match settings::find(options) {
        Ok(file) => file,
        // The first server makes the config.
        Err(error) if matches!(error.downcast_ref(), Some(ConfigError::NotFound { .. })) => {
            ConfigFile::unwritten(own_place()?, FRESH)
        }
        Err(error) => return Err(error),
    };
    let target = before.clone();
    rewrite(before, typed.dry_run, |file| {
        let mut after = file.clone();
        for (name, entry) in &wanted {
            let is_there =
                after.parse(&after.environment())?.servers.iter().any(|s| s.name == *name);
            if is_there && !typed.force {
                let message =
                    format!("there is a server {name:?} already; --force puts this in its place");
                return Err(UsageError(message).into());
            }
            after = after.with_server(name, entry.clone())?;
        }
        valid(after)
    })?;
    if !typed.dry_run {
        tell_running(&target)?;
    }
    for (name, _) in &wanted {
        outln!("added {}; see whether it works: dormouse test {}", visible(name), visible(name));
    }
    Ok(ExitCode::SUCCESS)
}

/// What to add: what was typed, or what was pasted.
fn entries(options: &Options, typed: &AddArguments) -> anyhow::Result<Vec<(String, Value)>> {
    let AddArguments { name, what, .. } = typed;
    let pasted = match what.as_slice() {
        [] => Some((None, name)),
        [text] if text.trim_start().starts_with('{') => Some((Some(name), text)),
        _ => None,
    };
    let Some((given, text)) = pasted else {
        return Ok(vec![(name.clone(), with_typed(typed_entry(typed)?, options, typed)?)]);
    };
    if given.is_none() && !text.contains(':') {
        let message =
            format!("what is {name:?}? Write: dormouse add NAME COMMAND… or add NAME URL");
        return Err(UsageError(message).into());
    }
    let read =
        snippets(text).map_err(|why| UsageError(format!("cannot read the snippet: {why}")))?;
    if read.is_empty() || given.is_some() && read.len() > 1 {
        let message = format!("the snippet has {} servers", read.len());
        return Err(UsageError(message).into());
    }
    let entry = |(name, entry): (Option<String>, Entry)| {
        let name = given.cloned().or(name);
        let name = name.ok_or_else(|| {
            UsageError("the snippet has no name: write dormouse add NAME '{…}'".to_owned())
        })?;
        for note in entry.notes {
            errln!("{}: {}", visible(&name), visible(&note));
        }
        for Needed { name: variable, what } in entry.needed {
            errln!("{}: set {variable}: {}", visible(&name), visible(&what));
        }
        let mut members = Value::Object(entry.members);
        if !entry.is_enabled {
            members["enabled"] = json!(false);
        }
        Ok((name, with_typed(members, options, typed)?))
    };
    read.into_iter().map(entry).collect()
}

/// The command or the URL.
fn typed_entry(typed: &AddArguments) -> Result<Value, UsageError> {
    let is_url = |word: &str| word.starts_with("http://") || word.starts_with("https://");
    let kind = typed.transport.as_deref();
    let (first, rest) =
        typed.what.split_first().map_or(("", [].as_slice()), |(f, r)| (f.as_str(), r));
    let mut entry = Map::new();
    match kind {
        None if is_url(first) => {}
        None | Some("stdio") => {
            entry.insert("command".to_owned(), json!(first));
            if !rest.is_empty() {
                entry.insert("args".to_owned(), json!(rest));
            }
            return Ok(Value::Object(entry));
        }
        Some("http" | "streamable-http") => drop(entry.insert("type".to_owned(), json!("http"))),
        Some("sse") => drop(entry.insert("type".to_owned(), json!("sse"))),
        Some(other) => {
            return Err(UsageError(format!("{other:?} is no transport: stdio, http or sse")));
        }
    }
    if !is_url(first) || !rest.is_empty() {
        return Err(UsageError(format!("expected one URL, found {:?}", typed.what.join(" "))));
    }
    entry.insert("url".to_owned(), json!(first));
    Ok(Value::Object(entry))
}

/// With the options that were typed beside it.
fn with_typed(
    mut entry: Value,
    options: &Options,
    typed: &AddArguments,
) -> Result<Value, UsageError> {
    if let Some(description) = &typed.description {
        entry["description"] = json!(description);
    }
    if let Some(startup) = options.startup.chosen() {
        entry["startup"] = json!(startup.name());
    }
    let pairs = [
        ("env", "=", "-e NAME=VALUE", &typed.env),
        ("headers", ":", "-H 'Name: value'", &typed.headers),
    ];
    for (key, separator, form, given) in pairs {
        for pair in given {
            let Some((name, value)) = pair.split_once(separator) else {
                return Err(UsageError(format!("{pair:?} is no {form}")));
            };
            entry[key][name.trim()] = json!(value.trim_start());
        }
    }
    if let Some(directory) = &typed.cwd {
        entry["cwd"] = json!(directory);
    }
    Ok(entry)
}

pub(super) fn remove(options: &Options, names: &[String], dry: bool) -> anyhow::Result<ExitCode> {
    edit_each(options, names, dry, ConfigFile::without_server)
}

pub(super) fn switch(
    options: &Options,
    names: &[String],
    enabled: bool,
    dry: bool,
) -> anyhow::Result<ExitCode> {
    edit_each(options, names, dry, |file, name| file.with_enabled(name, enabled))
}

fn edit_each(
    options: &Options,
    names: &[String],
    dry: bool,
    edit: impl Fn(&ConfigFile, &str) -> Result<ConfigFile, MergeError>,
) -> anyhow::Result<ExitCode> {
    let before = settings::find(options)?;
    rewrite(before.clone(), dry, |file| {
        let config = file.parse(&file.environment())?;
        let mut after = file.clone();
        for name in names {
            settings::server(&config, name)?;
            after = edit(&after, name)?;
        }
        valid(after)
    })?;
    if !dry {
        tell_running(&before)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The file, unless it is not valid.
pub(super) fn valid(after: ConfigFile) -> anyhow::Result<(ConfigFile, ())> {
    let parsed = after.parse(&after.environment());
    parsed.context("the config would not be valid, and is left as it was")?;
    Ok((after, ()))
}

/// Changes the config, which somebody else may be changing too: `edit` is made of what there is then. A `dry` run only
/// shows what would change.
pub(super) fn rewrite<T>(
    mut before: ConfigFile,
    dry: bool,
    mut edit: impl FnMut(&ConfigFile) -> anyhow::Result<(ConfigFile, T)>,
) -> anyhow::Result<T> {
    for _ in 0..MOST_TRIES {
        let (after, outcome) = edit(&before)?;
        if dry {
            let name = before.path.display().to_string();
            ask::print_difference(&name, &before.text(), &after.text(), &[]);
            return Ok(outcome);
        }
        if before.text() == after.text() {
            return Ok(outcome);
        }
        match after.replace(&before, settings::trust_store().ok().as_ref()) {
            Ok(()) => return Ok(outcome),
            Err(MergeError::Replace(ReplaceError::Changed)) => before = before.read_again()?,
            Err(error) => return Err(error.into()),
        }
    }
    Err(ReplaceError::Changed.into())
}

/// Makes a change that a running dormouse was asked for.
pub(super) fn make(file: ConfigFile, change: &Change) -> Result<(), ChangeError> {
    let made = rewrite(file, false, |file| Ok((changed(file, change)?, ())));
    made.map_err(|error| match error.downcast::<ChangeError>() {
        Ok(error) => error,
        Err(error) => ChangeError::Unwritable(format!("{error:#}")),
    })
}

fn changed(file: &ConfigFile, change: &Change) -> Result<ConfigFile, ChangeError> {
    let invalid = |error: &dyn std::fmt::Display| ChangeError::Invalid(error.to_string());
    let parse =
        |file: &ConfigFile| file.parse(&file.environment()).map_err(|error| invalid(&error));
    let config = parse(file)?;
    let is_there = |name: &str| config.servers.iter().any(|server| server.name == name);
    let known = |name: &String| {
        if is_there(name) { Ok(()) } else { Err(ChangeError::Unknown(name.clone())) }
    };
    let edited = match change {
        Change::Reload => return Ok(file.clone()),
        Change::Add { name, replace: false, .. } if is_there(name) => {
            return Err(ChangeError::Exists(name.clone()));
        }
        Change::Add { name, entry, .. } => file.with_server(name, Value::Object(entry.clone())),
        Change::Remove { name } => {
            known(name)?;
            file.without_server(name)
        }
        Change::Enable { name, enabled } => {
            known(name)?;
            file.with_enabled(name, *enabled)
        }
        Change::EnableTool { server, tool, enabled } => {
            known(server)?;
            file.with_tool(server, tool, *enabled)
        }
    };
    let after = edited.map_err(|error| invalid(&error))?;
    parse(&after)?;
    Ok(after)
}
