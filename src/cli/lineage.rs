//! Refuses a dormouse that an ancestor with the same config has started: it would start itself without end.

use std::path::{Path, PathBuf};

use super::UsageError;
use crate::config::{self, ConfigFile, Launch, ServerConfig, Transport, place_fingerprint};

/// Names the config to a dormouse that is started without `--config`.
const CONFIG: &str = "DORMOUSE_CONFIG";

/// Names the configs that the ancestors of this process serve, by their fingerprints, to all servers.
const VARIABLE: &str = crate::upstream::LINEAGE_VARIABLE;

/// A longer line of ancestors is taken for an endless one.
const MAX_ANCESTORS: usize = 16;

/// The lineage of what is started with this config.
pub(super) fn of(file: &ConfigFile) -> String {
    let own = file.fingerprint();
    match ancestors() {
        ancestors if ancestors.is_empty() => own,
        ancestors => format!("{ancestors}:{own}"),
    }
}

/// Checks that no ancestor of this process serves the same config.
///
/// # Errors
/// When one does.
pub(super) fn check(file: &ConfigFile) -> Result<(), UsageError> {
    let (ancestors, own) = (ancestors(), file.fingerprint());
    let is_ancestor = ancestors.split(':').any(|ancestor| ancestor == own);
    if !is_ancestor && ancestors.split(':').count() <= MAX_ANCESTORS {
        return Ok(());
    }
    Err(UsageError(format!(
        "this dormouse was started by a dormouse that serves the same config, {}; take the server that runs dormouse out of it",
        file.path.display()
    )))
}

fn ancestors() -> String {
    std::env::var(VARIABLE).unwrap_or_default()
}

/// Whether the server would start dormouse with the config that it stands in.
pub(super) fn is_dormouse_itself(server: &ServerConfig, config: &Path) -> bool {
    let Ok(Transport::Stdio(launch)) = &server.transport else { return false };
    let Launch { command, args, env, cwd, .. } = launch;
    let is_own_name = Path::new(command).file_stem().is_some_and(|stem| stem == "dormouse");
    if !is_own_name || args.iter().any(|argument| argument == "--") {
        return false;
    }
    let typed = args.iter().position(|argument| argument == "--config");
    let typed = typed.and_then(|at| args.get(at + 1)).map(String::as_str);
    let joined = args.iter().find_map(|argument| argument.strip_prefix("--config="));
    let named = typed.or(joined).or(env.get(CONFIG).map(String::as_str));
    let is_serving = args.iter().all(|argument| {
        argument.starts_with('-')
            || ["serve", "start"].contains(&argument.as_str())
            || Some(argument.as_str()) == named
    });
    let directory = cwd.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    let inherited = std::env::var_os(CONFIG).filter(|_| launch.inherit_env).map(PathBuf::from);
    let named = named.map(|named| directory.join(named)).or(inherited);
    let found = config::find_own(named.as_deref(), &directory);
    is_serving && found.is_some_and(|it| place_fingerprint(&it.path) == place_fingerprint(config))
}

/// Why it is refused, before it is started.
pub(super) fn refusal(name: &str) -> String {
    format!(
        "server {name:?} runs dormouse with the config that it stands in; it would start itself, and is refused"
    )
}
