//! The files of a release in `tests/golden`, in a home of their own.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Home, Proxy, fixture};

/// The home in which `scripts/golden` ran the release.
const ORIGIN: &str = "/tmp/dormouse-golden";
/// The files after whose paths other files are named.
const NAMING: [&str; 3] =
    ["config/dormouse/dormouse.json", "project/dormouse.json", ".cursor/mcp.json"];
/// The length of the hash of a path in the names of copies.
const SHORT: usize = 8;

/// A home with the files of a release. Paths in them are those of this home.
pub struct Golden {
    pub home: Home,
}

impl Golden {
    /// Returns the homes of all releases, with their names.
    pub fn all() -> Vec<(String, Self)> {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let entries = fs::read_dir(place).expect("there are releases");
        let releases = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        releases.map(|path| (name(&path), Self::of(&path))).collect()
    }

    fn of(release: &Path) -> Self {
        let home = Home::new();
        let here = home.path().canonicalize().unwrap();
        let moved = |text: &str| text.replace(ORIGIN, &here.to_string_lossy());
        let mut hashes = HashMap::new();
        for path in NAMING {
            let (there, here) =
                (hash(format!("{ORIGIN}/{path}")), hash(moved(&format!("{ORIGIN}/{path}"))));
            hashes.insert(there[..SHORT].to_owned(), here[..SHORT].to_owned());
            hashes.insert(there, here);
            let content = fs::read_to_string(release.join(path)).unwrap();
            hashes.insert(hash(&content), hash(moved(&content)));
        }
        // The whole hashes first, since their beginnings are hashes too.
        let mut hashes: Vec<_> = hashes.into_iter().collect();
        hashes.sort_by_key(|(there, _)| std::cmp::Reverse(there.len()));
        let renamed = |text: String| {
            hashes.iter().fold(text, |text, (there, here)| text.replace(there, here))
        };
        for path in files(release) {
            let name = path.strip_prefix(release).unwrap().to_string_lossy().into_owned();
            let content = fs::read_to_string(&path).unwrap();
            // The hash in a catalog is that of its content, which has no paths.
            let is_catalog = name.ends_with(".catalog");
            let content = if is_catalog { content } else { renamed(moved(&content)) };
            home.write(&renamed(name), content);
        }
        let program = env!("CARGO_BIN_EXE_dormouse");
        fs::create_dir(home.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(program, home.path().join("bin/dormouse")).unwrap();
        Self { home }
    }

    /// Runs a command in a directory of the home, and returns its exit code and its output.
    pub async fn run_in(&self, directory: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.home.command(directory);
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        let output = command.args(arguments).stdin(std::process::Stdio::null()).output().await;
        let output = output.expect("dormouse runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).expect("UTF-8"))
    }

    pub async fn run(&self, arguments: &[&str]) -> String {
        let (code, said) = self.run_in(".", arguments).await;
        assert_eq!(code, Some(0), "{arguments:?}: {said}");
        said
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let at = |name: &str| self.home.path().join(name).to_string_lossy().into_owned();
        let path = format!("{}:{}", at("bin"), std::env::var("PATH").unwrap());
        vec![
            ("XDG_CONFIG_HOME", at("config")),
            ("XDG_CACHE_HOME", at("cache")),
            ("XDG_DATA_HOME", at("data")),
            ("XDG_RUNTIME_DIR", at("run")),
            ("DORMOUSE_NO_KEYCHAIN", "1".to_owned()),
            ("PATH", path),
        ]
    }

    /// Returns a dormouse that serves the config of the user.
    pub fn proxy(&self) -> Proxy {
        let config = self.home.path().canonicalize().unwrap().join("config/dormouse/dormouse.json");
        let proxy = Proxy::with_config_at(&config);
        self.environment()
            .into_iter()
            .fold(proxy, |proxy, (name, value)| proxy.environment(name, &value))
    }

    /// Makes the server `notes` a fixture.
    pub fn install_notes(&self) {
        let server = self.home.path().join("bin/golden-server");
        fs::write(&server, format!("#!/bin/sh\nexec {} '{{}}'\n", fixture().display())).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(server, executable).unwrap();
    }

    /// Returns the only file with this extension in a directory of the home.
    pub fn file(&self, directory: &str, extension: &str) -> PathBuf {
        let files = files(&self.home.path().join(directory));
        let mut files =
            files.into_iter().filter(|file| file.extension() == Some(extension.as_ref()));
        files.next().expect("there is one")
    }

    /// Returns a config without the comments at its start.
    pub fn config(&self, name: &str) -> Value {
        let text = self.home.read(name);
        let rest = &text[text.find('{').unwrap()..];
        serde_json::from_str(rest).unwrap_or_else(|error| panic!("{error}: {rest}"))
    }
}

fn hash(text: impl AsRef<[u8]>) -> String {
    let digits = |hash: String, byte: &u8| hash + &format!("{byte:02x}");
    Sha256::digest(text).iter().fold(String::new(), digits)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("it exists").map(|entry| entry.unwrap().path());
    let (directories, mut all): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    all.extend(directories.iter().flat_map(|directory| files(directory)));
    all.sort();
    all
}
