//! A user's home directory, in which commands run.

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use super::dormouse;

pub struct Home(tempfile::TempDir);

/// The path of the user's own config.
pub const USER_CONFIG: &str = ".config/dormouse/dormouse.json";

impl Home {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("the temporary directory is writable"))
    }

    #[must_use]
    pub fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.write(name, content);
        self
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Creates a home with the files of `tests/apps`, those of projects in `project`.
    pub fn with_app_files() -> Self {
        let home = Self::new();
        for file in app_files() {
            home.write(&file.path, file.text(&home.path().join("project")));
        }
        home
    }

    /// Runs a command in the home, without a terminal; returns its exit code and its output.
    pub async fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        self.run_in(".", arguments).await
    }

    /// Runs a command in a directory of the home.
    pub async fn run_in(&self, directory: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.command(directory);
        command.args(arguments).stdin(Stdio::null());
        let Output { status, stdout, stderr } = command.output().await.expect("dormouse runs");
        let said = [stdout, stderr].concat();
        (status.code(), String::from_utf8(said).expect("UTF-8"))
    }

    pub fn command(&self, directory: &str) -> tokio::process::Command {
        let mut command = dormouse();
        command.current_dir(self.path().join(directory)).env("HOME", self.path());
        for variable in APP_VARIABLES {
            command.env_remove(variable);
        }
        command
    }

    /// Returns all files with their content, sorted by path.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        collect(self.path(), &mut files);
        files.sort();
        files
    }

    #[track_caller]
    pub fn assert_file(&self, name: &str, expected: &str) {
        assert_eq!(self.read(name), expected);
    }
}

/// Variables that change where dormouse and apps keep their files.
const APP_VARIABLES: [&str; 6] = [
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
];

fn collect(directory: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            let content = std::fs::read(&path).unwrap();
            files.push((path, content));
        }
    }
}

/// A config file of an app, from `tests/apps`.
pub struct AppFixture {
    /// Path relative to the home.
    pub path: String,
    pub content: String,
}

impl AppFixture {
    /// Returns the content with `<project>` replaced by this path.
    pub fn text(&self, project: &Path) -> String {
        self.content.replace("<project>", &project.to_string_lossy())
    }
}

pub fn app_files() -> Vec<AppFixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let file = |(path, content): (PathBuf, Vec<u8>)| {
        let path = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let path = path.strip_prefix("home/").unwrap_or(&path).to_owned();
        AppFixture { path, content: String::from_utf8(content).unwrap() }
    };
    files.into_iter().map(file).collect()
}
