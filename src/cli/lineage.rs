//! Refuses to run a dormouse that an ancestor with the same config has started: otherwise dormouse
//! would start itself endlessly.

use std::path::{Path, PathBuf};

use super::UsageError;
use crate::{
    apps::app_file_names,
    config::{
        self, ConfigFile, Launch, LaunchContext, ServerConfig, Transport, TrustStore,
        place_fingerprint,
    },
};

/// Environment variable with the path of the config, used if `--config` is not given.
const CONFIG: &str = "DORMOUSE_CONFIG";

/// Environment variable of all servers with the configs that the ancestor dormouse processes serve:
/// `fingerprint@process-id`, separated by colons, the oldest ancestor first.
const VARIABLE: &str = crate::upstream::LINEAGE_VARIABLE;

/// Maximum number of ancestors. A longer line counts as endless.
const MAX_ANCESTORS: usize = 16;

/// Returns the lineage for servers that are started with this config and context.
pub(super) fn of(file: &ConfigFile, context: &LaunchContext) -> String {
    let own = format!("{}@{}", file.fingerprint(), std::process::id());
    let ancestors =
        ancestors(context.get(VARIABLE)).into_iter().map(|(config, id)| format!("{config}@{id}"));
    ancestors.chain([own]).collect::<Vec<_>>().join(":")
}

/// Checks that no ancestor of this process serves the same config.
///
/// # Errors
/// Fails if an ancestor does, or if there are more than [`MAX_ANCESTORS`].
pub(super) fn check(file: &ConfigFile) -> Result<(), UsageError> {
    let lineage = std::env::var(VARIABLE).ok();
    let (ancestors, own) = (ancestors(lineage.as_deref()), file.fingerprint());
    let path = file.path.display();
    if ancestors.iter().any(|(config, _)| *config == own) {
        return Err(UsageError(format!(
            "this dormouse was started by another one that serves the same config, {path}: remove \
                the server that runs dormouse from it"
        )));
    }
    if ancestors.len() > MAX_ANCESTORS {
        return Err(UsageError(format!(
            "refused to serve {path}: more than {MAX_ANCESTORS} dormouse processes have started \
                each other; remove the server that runs dormouse"
        )));
    }
    Ok(())
}

/// Returns the fingerprints of the configs and the process ids of the ancestors in a lineage that
/// still run. An ancestor that has ended does not count: the process may serve its config.
fn ancestors(lineage: Option<&str>) -> Vec<(String, u32)> {
    let read = |ancestor: &str| {
        let (config, id) = ancestor.split_once('@')?;
        Some((config.to_owned(), id.parse().ok()?))
    };
    lineage
        .unwrap_or_default()
        .split(':')
        .filter_map(read)
        .filter(|(_, id)| is_running(*id))
        .collect()
}

#[cfg(unix)]
fn is_running(id: u32) -> bool {
    let id = i32::try_from(id).ok().filter(|id| *id > 0).map(nix::unistd::Pid::from_raw);
    id.is_some_and(|id| !matches!(nix::sys::signal::kill(id, None), Err(nix::errno::Errno::ESRCH)))
}

#[cfg(not(unix))]
fn is_running(_: u32) -> bool {
    true
}

/// Returns whether the server would start dormouse with the config that contains the server.
/// `trusted` are the configs that dormouse would use in a working directory.
pub(super) fn is_dormouse_itself(
    server: &ServerConfig,
    config: &Path,
    trusted: Option<&TrustStore>,
) -> bool {
    let Ok(Transport::Stdio(launch)) = &server.transport else { return false };
    let Launch { command, args, env, .. } = launch;
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
    let directory = launch.starting_directory().unwrap_or_default();
    let inherited = launch.inherited_variables().into_iter().find(|(name, _)| *name == CONFIG);
    let inherited = inherited.map(|(_, path)| PathBuf::from(path));
    let named = named.map(|named| directory.join(named)).or(inherited);
    let found = config::find_own(named.as_deref(), &directory, trusted, app_file_names());
    is_serving && found.is_some_and(|it| place_fingerprint(&it.path) == place_fingerprint(config))
}

/// Returns the reason for refusing such a server before it is started.
pub(super) fn refusal(name: &str) -> String {
    format!(
        "server {name:?} runs dormouse with the config that contains it; it would start itself \
            endlessly"
    )
}
