//! `dormouse init`, `add`, `remove`, `enable`, `disable` and `share`: edits of the config in place,
//! which are made only if the result is valid.

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::{
    UsageError,
    arguments::{AddArguments, EditedServers, ShareArguments},
    ask,
    instances::tell_running,
    lineage, settings,
    shared_flags::Options,
};
use crate::{
    apps::{RequiredVariable, TranslatedEntry, app_file_names, parse_snippets},
    base::{ReplaceError, create_file, visible},
    config::{self, ConfigEdit, ConfigFile, Isolation, ServerConfig, Transport, Unchanged},
    control::ChangeError,
};

/// Maximum number of attempts, since another program may be editing the config at the same time.
const MAX_TRIES: usize = 10;

pub(super) fn init(options: &Options) -> anyhow::Result<ExitCode> {
    let path = options.config.clone().or_else(config::own_place);
    let path = path.context("cannot determine the config directory: HOME is not set")?;
    if path.extension().is_some_and(|extension| extension != "json") {
        let message = "`init` writes JSON: name a file with the extension .json".to_owned();
        return Err(UsageError(message).into());
    }
    if ConfigFile::unwritten(path.clone(), settings::NEW_CONFIG, app_file_names()).is_of_app() {
        let message = format!("{} belongs to another program: name another file", path.display());
        return Err(UsageError(message).into());
    }
    create_file(&path, settings::NEW_CONFIG.as_bytes())
        .with_context(|| format!("cannot create {}", path.display()))?;
    outln!("wrote {}; next: dormouse add NAME COMMAND…", path.display());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn add(options: &Options, typed: &AddArguments) -> anyhow::Result<ExitCode> {
    let wanted = entries(options, typed)?;
    for (name, entry) in &wanted {
        config::check_entry(name, entry)
            .map_err(|why| UsageError(format!("cannot add server {name:?}: {why}")))?;
    }
    let names: Vec<String> = wanted.iter().map(|(name, _)| visible(name)).collect();
    let edit = |(name, entry)| ConfigEdit::Add { name, entry, replace: typed.force };
    let edits: Vec<ConfigEdit> = wanted.into_iter().map(edit).collect();
    let file = settings::target(options)?;
    let path = file.path.clone();
    check_lineage(options, &file, &edits)?;
    make_all(options, file, &edits, typed.dry_run).map_err(|error| match error.downcast() {
        Ok(Unchanged::Exists(name)) => {
            let message = format!("server {name:?} exists already; --force replaces it");
            UsageError(message).into()
        }
        Ok(other) => anyhow::Error::from(other),
        Err(other) => other,
    })?;
    if !typed.dry_run {
        for name in names {
            outln!("added {name} to {}; next: dormouse test {name}", path.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that no added server would start dormouse with the same config.
fn check_lineage(options: &Options, file: &ConfigFile, edits: &[ConfigEdit]) -> anyhow::Result<()> {
    // Other problems of the edits are reported when they are made.
    let after = edits.iter().try_fold(file.clone(), |file, edit| file.with(edit));
    let Some(config) = after.ok().and_then(|after| settings::parse(&after, options).ok()) else {
        return Ok(());
    };
    let trusted = settings::trust_store_of_user();
    let is_itself =
        |server: &&ServerConfig| lineage::is_dormouse_itself(server, &file.path, trusted.as_ref());
    match config.servers.iter().find(is_itself) {
        Some(server) => Err(UsageError(lineage::refusal(&server.name)).into()),
        None => Ok(()),
    }
}

/// Returns the servers to add, from arguments or a pasted snippet.
fn entries(
    options: &Options,
    typed: &AddArguments,
) -> anyhow::Result<Vec<(String, Map<String, Value>)>> {
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
        let message = format!(
            "{name:?} has no command or URL: write `dormouse add NAME COMMAND…` or \
                `dormouse add NAME URL`"
        );
        return Err(UsageError(message).into());
    }
    let read = parse_snippets(text)
        .map_err(|why| UsageError(format!("cannot read the snippet: {why}")))?;
    if read.is_empty() || given.is_some() && read.len() > 1 {
        let message = format!("the snippet has {} servers", read.len());
        return Err(UsageError(message).into());
    }
    let entry = |(name, entry): (Option<String>, TranslatedEntry)| {
        let name = given.cloned().or(name);
        let name = name.ok_or_else(|| {
            UsageError("the snippet names no server: write `dormouse add NAME '{…}'`".to_owned())
        })?;
        for note in entry.notes {
            errln!("{}: {}", visible(&name), visible(&note));
        }
        for RequiredVariable { name: variable, purpose } in entry.required {
            errln!("{}: set {variable}: {}", visible(&name), visible(&purpose));
        }
        let mut members = entry.members;
        if !entry.is_enabled {
            members.insert("enabled".to_owned(), json!(false));
        }
        Ok((name, with_typed(members, options, typed)?))
    };
    read.into_iter().map(entry).collect()
}

/// Returns an entry with the command or the URL.
fn typed_entry(typed: &AddArguments) -> Result<Map<String, Value>, UsageError> {
    let is_url = |word: &str| word.starts_with("http://") || word.starts_with("https://");
    let kind = typed.transport.as_deref();
    let (first, rest) =
        typed.what.split_first().map_or(("", [].as_slice()), |(f, r)| (f.as_str(), r));
    let mut entry = Map::new();
    match kind {
        None if is_url(first) => {}
        None | Some("stdio") => {
            check_command(first, rest)?;
            entry.insert("command".to_owned(), json!(first));
            if !rest.is_empty() {
                entry.insert("args".to_owned(), json!(rest));
            }
            return Ok(entry);
        }
        Some("http" | "streamable-http") => drop(entry.insert("type".to_owned(), json!("http"))),
        Some("sse") => drop(entry.insert("type".to_owned(), json!("sse"))),
        Some(other) => {
            return Err(UsageError(format!("unknown transport {other:?}: use stdio, http or sse")));
        }
    }
    if !is_url(first) || !rest.is_empty() {
        return Err(UsageError(format!("expected one URL, found {:?}", typed.what.join(" "))));
    }
    entry.insert("url".to_owned(), json!(first));
    Ok(entry)
}

/// Refuses a command that is not one: a URL of another scheme, or a whole command line in one
/// argument.
fn check_command(command: &str, arguments: &[String]) -> Result<(), UsageError> {
    if command.contains("://") {
        return Err(UsageError(format!("{command:?} is neither a command nor an HTTP URL")));
    }
    let is_line = arguments.is_empty() && command.trim().contains(' ');
    if is_line && !std::path::Path::new(command).exists() {
        return Err(UsageError(format!(
            "program {command:?} not found: write the command and its arguments as separate words"
        )));
    }
    Ok(())
}

/// Adds the options of the command line to an entry.
fn with_typed(
    mut entry: Map<String, Value>,
    options: &Options,
    typed: &AddArguments,
) -> Result<Map<String, Value>, UsageError> {
    if let Some(description) = &typed.description {
        entry.insert("description".to_owned(), json!(description));
    }
    if let Some(startup) = options.startup.chosen() {
        entry.insert("startup".to_owned(), json!(startup.name()));
    }
    let pairs = [
        ("env", "=", "-e needs NAME=VALUE", &typed.env),
        ("headers", ":", "-H needs 'Name: value'", &typed.headers),
    ];
    for (key, separator, form, given) in pairs {
        for pair in given {
            // The argument may be a secret, and is not repeated.
            let (name, value) =
                pair.split_once(separator).ok_or_else(|| UsageError(form.to_owned()))?;
            let members = entry.entry(key).or_insert_with(|| json!({}));
            let members = members
                .as_object_mut()
                .ok_or_else(|| UsageError(format!("{key:?} of the snippet is not an object")))?;
            members.insert(name.trim().to_owned(), json!(value.trim_start()));
        }
    }
    if let Some(directory) = &typed.cwd {
        entry.insert("cwd".to_owned(), json!(directory));
    }
    Ok(entry)
}

pub(super) fn remove(options: &Options, typed: &EditedServers) -> anyhow::Result<ExitCode> {
    edit_each(options, typed, "removed", |name| ConfigEdit::Remove { name })
}

pub(super) fn switch(
    options: &Options,
    typed: &EditedServers,
    enabled: bool,
) -> anyhow::Result<ExitCode> {
    let done = if enabled { "enabled" } else { "disabled" };
    edit_each(options, typed, done, |name| ConfigEdit::Enable { name, enabled })
}

/// Has all hosts of the daemon use one process of each server, or each host its own.
pub(super) fn share(options: &Options, typed: &ShareArguments) -> anyhow::Result<ExitCode> {
    let (done, isolation) = if typed.no_share {
        ("separated", Isolation::Session)
    } else {
        ("shared", Isolation::Shared)
    };
    let exit =
        edit_each(options, &typed.edited, done, |name| ConfigEdit::Isolate { name, isolation })?;
    if isolation == Isolation::Shared {
        advise_on_sharing(options, &typed.edited.named.servers)?;
    }
    Ok(exit)
}

/// Says which servers hosts do not share all the same: those with a URL, and those that run in the
/// directory of their host, for hosts in different directories.
fn advise_on_sharing(options: &Options, servers: &[String]) -> anyhow::Result<()> {
    let config = settings::parse(&settings::find(options)?, options)?;
    let follows_host = |server: &&ServerConfig| {
        let runs_there = matches!(&server.transport, Ok(Transport::Stdio(it)) if it.cwd.is_none());
        runs_there && servers.contains(&server.name)
    };
    let has_no_process = |server: &&ServerConfig| {
        matches!(&server.transport, Ok(Transport::Http(_))) && servers.contains(&server.name)
    };
    for ServerConfig { name, .. } in config.servers.iter().filter(has_no_process) {
        outln!("{}: it has a URL, so that there is no process to share", visible(name));
    }
    for ServerConfig { name, .. } in config.servers.iter().filter(follows_host) {
        outln!(
            "{}: only hosts in one directory share it; with \"cwd\": \".\" in its entry it runs in \
                the directory of the config, for all",
            visible(name)
        );
    }
    Ok(())
}

fn edit_each(
    options: &Options,
    typed: &EditedServers,
    done: &str,
    edit: impl Fn(String) -> ConfigEdit,
) -> anyhow::Result<ExitCode> {
    let file = settings::find_trusted(options)?;
    let config = settings::parse(&file, options)?;
    let (mut edits, mut reports) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for name in typed.named.servers.iter().filter(|name| seen.insert(*name)) {
        let server = settings::server(&config, name)?;
        let edit = edit(name.clone());
        let (name, path) = (visible(name), file.path.display());
        if is_made(&edit, server) {
            reports.push(format!("{name} is already {done} in {path}"));
        } else {
            reports.push(format!("{done} {name} in {path}"));
            edits.push(edit);
        }
    }
    if !edits.is_empty() {
        make_all(options, file, &edits, typed.dry_run)?;
    }
    if !typed.dry_run {
        for report in reports {
            outln!("{report}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether the server is already as the edit would make it.
fn is_made(edit: &ConfigEdit, server: &ServerConfig) -> bool {
    match edit {
        ConfigEdit::Enable { enabled, .. } => *enabled == server.enabled,
        ConfigEdit::Isolate { isolation, .. } => *isolation == server.connecting.isolation,
        _ => false,
    }
}

/// Makes all edits or none, and tells running processes to reload.
pub(super) fn make_all(
    options: &Options,
    file: ConfigFile,
    edits: &[ConfigEdit],
    dry: bool,
) -> anyhow::Result<()> {
    let target = file.clone();
    if file.is_written() {
        // Existing problems are reported with their own places.
        settings::parse(&file, options)?;
    }
    rewrite::<_, anyhow::Error>(file, dry, |file| {
        let after = edits.iter().try_fold(file.clone(), |file, edit| file.with(edit))?;
        Ok((valid(options, after)?, ()))
    })?;
    if dry { Ok(()) } else { tell_running(&target) }
}

/// Makes an edit that a running dormouse was asked for, with the options that it was started with.
pub(super) fn make(
    options: &Options,
    file: ConfigFile,
    edit: &ConfigEdit,
) -> Result<(), ChangeError> {
    rewrite(file, false, |file| {
        let after = file.with(edit)?;
        settings::parse(&after, options).map_err(ChangeError::Invalid)?;
        Ok((after, ()))
    })
}

/// Returns the file, unless it is invalid.
pub(super) fn valid(options: &Options, after: ConfigFile) -> anyhow::Result<ConfigFile> {
    let parsed = settings::parse(&after, options);
    parsed.context("the config would not be valid, and was not changed")?;
    Ok(after)
}

/// Edits the config while other programs may edit it too: `edit` gets the file as it is then. With
/// `dry`, only prints the changes.
pub(super) fn rewrite<T, E: From<Unchanged>>(
    mut before: ConfigFile,
    dry: bool,
    mut edit: impl FnMut(&ConfigFile) -> Result<(ConfigFile, T), E>,
) -> Result<T, E> {
    for _ in 0..MAX_TRIES {
        let (after, outcome) = edit(&before)?;
        if dry {
            ask::print_difference(&before.path, &before.text(), &after.text(), &[]);
            return Ok(outcome);
        }
        if before.text() == after.text() {
            return Ok(outcome);
        }
        match after.replace(&before, settings::trust_store().ok().as_ref()) {
            Ok(()) => return Ok(outcome),
            Err(Unchanged::Replace(ReplaceError::Changed)) => {
                before = before.read_again().map_err(Unchanged::from)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Unchanged::from(ReplaceError::Changed).into())
}
