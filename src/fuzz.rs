//! The fuzz targets: for each kind of bytes from outside, the laws that hold whatever they are.
//!
//! A law is a function of the layer that reads the bytes. `scripts/fuzz` runs each target on the
//! inputs of a fuzzer, and a test runs it on the seeds and on the inputs that once failed. An input
//! is a text that begins with lines of arguments, which the law describes.

#[cfg(unix)]
use crate::daemon;
use crate::{apps, auth, catalog, config, downstream, protocol, proxy, script, surface, wire};

/// A target, and the function that panics if an input breaks a law.
pub struct FuzzTarget {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// All targets. Each has a program in `fuzz/targets` and a directory in `fuzz/seeds`.
pub const TARGETS: &[FuzzTarget] = &[
    FuzzTarget { name: "apps", run: apps::fuzz::apps },
    FuzzTarget { name: "catalog_file", run: catalog::fuzz::catalog_file },
    FuzzTarget { name: "config", run: config::fuzz::config },
    FuzzTarget { name: "declarations", run: script::fuzz::declarations },
    FuzzTarget { name: "dialects", run: config::fuzz::dialects },
    FuzzTarget { name: "envelope", run: wire::fuzz::envelope },
    FuzzTarget { name: "eras", run: protocol::fuzz::eras },
    #[cfg(unix)]
    FuzzTarget { name: "greetings", run: daemon::fuzz::greetings },
    FuzzTarget { name: "http_headers", run: downstream::http::fuzz::http_headers },
    FuzzTarget { name: "json_edit", run: wire::fuzz::json_edit },
    FuzzTarget { name: "large_results", run: proxy::fuzz::large_results },
    FuzzTarget { name: "lines", run: wire::fuzz::lines },
    FuzzTarget { name: "listings", run: surface::fuzz::listings },
    FuzzTarget { name: "login_file", run: auth::fuzz::login_file },
    FuzzTarget { name: "oauth", run: auth::fuzz::oauth },
    FuzzTarget { name: "records", run: records },
    FuzzTarget { name: "secrets", run: apps::fuzz::secrets },
    #[cfg(unix)]
    FuzzTarget { name: "sessions", run: daemon::fuzz::sessions },
    FuzzTarget { name: "sse", run: wire::fuzz::sse },
    FuzzTarget { name: "templates", run: catalog::fuzz::templates },
    FuzzTarget { name: "worker_messages", run: script::fuzz::worker_messages },
];

/// The small files that dormouse keeps: trusted configs, connected apps, remembered loads.
fn records(bytes: &[u8]) {
    config::fuzz::trust_record(bytes);
    apps::fuzz::connect_record(bytes);
    proxy::fuzz::remembered_loads(bytes);
}

/// Runs a target.
///
/// # Panics
/// If the input breaks a law, or there is no such target.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a known target");
    (target.run)(input);
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        fs, panic,
        path::{Path, PathBuf},
    };

    use super::*;

    /// Number of seeds below which a fuzzer takes long to reach anything.
    const MIN_SEEDS: usize = 5;

    fn directory(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(name)
    }

    fn listed(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    fn names(directory: &Path) -> BTreeSet<String> {
        let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        listed(directory).into_iter().map(stem).collect()
    }

    #[test]
    fn every_target_has_a_program_and_seeds() {
        let targets: BTreeSet<String> =
            TARGETS.iter().map(|target| target.name.to_owned()).collect();
        assert_eq!(names(&directory("targets")), targets);
        assert_eq!(names(&directory("seeds")), targets);
        for target in &targets {
            let seeds = listed(&directory("seeds").join(target)).len();
            assert!(seeds >= MIN_SEEDS, "{target} has {seeds} seeds");
        }
        assert!(names(&directory("crashes")).is_subset(&targets));
        // The words of JSON are in a dictionary for all targets.
        let mut dictionaries = names(&directory("dictionaries"));
        assert!(dictionaries.remove("json"));
        assert_eq!(dictionaries, targets);
    }

    /// Returns the name and version of each package in a lock file.
    fn packages(lock: &Path) -> BTreeSet<(String, String)> {
        let text = fs::read_to_string(lock).unwrap();
        let entries = text.split("[[package]]").skip(1);
        let member = |entry: &str, key: &str| {
            let value = entry.lines().find_map(|line| line.strip_prefix(key));
            value.unwrap().trim_matches([' ', '=', '"']).to_owned()
        };
        entries.map(|entry| (member(entry, "name"), member(entry, "version"))).collect()
    }

    #[test]
    fn the_fuzzed_packages_are_those_of_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let ours = packages(&root.join("Cargo.lock"));
        let names: BTreeSet<&String> = ours.iter().map(|(name, _)| name).collect();
        let fuzzed = packages(&root.join("fuzz/Cargo.lock"));
        let others = fuzzed.iter().filter(|(name, _)| names.contains(name));
        let others: Vec<_> = others.filter(|package| !ours.contains(package)).collect();
        assert!(others.is_empty(), "copy Cargo.lock to fuzz/, and build there: {others:?}");
    }

    #[test]
    fn seeds_and_former_crashes_keep_the_laws() {
        let mut broken = Vec::new();
        for target in TARGETS {
            for kind in ["seeds", "crashes"] {
                for path in listed(&directory(kind).join(target.name)) {
                    let input = fs::read(&path).unwrap();
                    if panic::catch_unwind(|| (target.run)(&input)).is_err() {
                        broken.push(path);
                    }
                }
            }
        }
        assert!(broken.is_empty(), "these inputs break a law: {broken:#?}");
    }
}
