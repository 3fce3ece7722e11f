//! The place of a daemon: one for each config, and each set of variables that dormouse itself uses.

use std::{env, ffi::OsString, path::Path};

use etcetera::BaseStrategy as _;
use sha2::{Digest as _, Sha256};

use crate::{
    base::hex,
    config::{self, LaunchContext},
    daemon::{DaemonDirectories, DaemonPlace},
};

/// Variables that dormouse itself reads. Hosts for which one of them differs have daemons of their
/// own, so that a daemon finds the same files, logins and proxies as a process of the host.
const OWN_VARIABLES: [&str; 18] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "DORMOUSE_NO_KEYCHAIN",
    "DBUS_SESSION_BUS_ADDRESS",
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Returns the place of the daemon for a config in this environment; `None` without a home
/// directory.
pub(super) fn place_of(config: &Path) -> Option<DaemonPlace> {
    let mut digest = Sha256::new();
    for (name, value) in own_variables() {
        digest.update([name.as_bytes(), &[0], value.as_encoded_bytes(), &[0]].concat());
    }
    let environment = hex(&digest.finalize()[..8]);
    let own = directories().into_iter().next()?;
    Some(own.place(&config::place_fingerprint(config), &environment))
}

/// Returns the places of the daemons for a config that may be running, also for hosts without a
/// runtime directory.
pub(super) fn places_of(config: &Path) -> Vec<DaemonPlace> {
    let config = config::place_fingerprint(config);
    directories().iter().flat_map(|directories| directories.places(&config)).collect()
}

/// Returns the directories in which daemons may be. Those of this environment come first.
fn directories() -> Vec<DaemonDirectories> {
    let Ok(strategy) = etcetera::choose_base_strategy() else { return Vec::new() };
    let cache = strategy.cache_dir();
    let logs = cache.join("dormouse").join("logs");
    let parents = strategy.runtime_dir().into_iter().chain([cache]);
    let directories = parents.map(|parent| DaemonDirectories {
        running: parent.join("dormouse").join("daemon"),
        logs: logs.clone(),
    });
    directories.collect()
}

fn own_variables() -> impl Iterator<Item = (&'static str, OsString)> {
    OWN_VARIABLES.into_iter().filter_map(|name| Some((name, env::var_os(name)?)))
}

/// Returns the variables of this process that a daemon gets: those without which programs do not
/// run, and those that dormouse reads.
pub(super) fn variables_of_daemon() -> Vec<(OsString, OsString)> {
    let context = LaunchContext::of_process();
    let needed = context.needed_variables();
    let needed = needed.map(|(name, value)| (name.to_owned(), value.to_owned()));
    needed.chain(own_variables().map(|(name, value)| (name.into(), value))).collect()
}
