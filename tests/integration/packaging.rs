//! Published files in addition to the program: npm packages, manual pages, completions.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
};

use crate::support::{descendants, dormouse, eventually, is_alive};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Lays out packages as npm installs them, with the one of this platform if `is_complete`.
fn installed(directory: &Path, is_complete: bool) -> PathBuf {
    let package = directory.join("node_modules/dormouse-mcp");
    std::fs::create_dir_all(&package).unwrap();
    for file in ["dormouse.js", "package.json"] {
        std::fs::copy(root().join("packaging/npm").join(file), package.join(file)).unwrap();
    }
    if is_complete {
        let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
        let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
        let platform = directory.join(format!("node_modules/@dormouse-mcp/{os}-{arch}"));
        std::fs::create_dir_all(&platform).unwrap();
        let program = dormouse().as_std().get_program().to_owned();
        std::os::unix::fs::symlink(program, platform.join("dormouse")).unwrap();
        std::fs::write(platform.join("package.json"), "{}").unwrap();
    }
    package.join("dormouse.js")
}

fn through_npm(script: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.arg(script).args(arguments).kill_on_drop(true).env_remove("DORMOUSE_CONFIG");
    command
}

#[tokio::test]
async fn npm_package_runs_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let script = installed(directory.path(), true);
    let output = through_npm(&script, &["--version"]).output().await.unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, concat!("dormouse ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
    let config = directory.path().join("c.json");
    std::fs::write(&config, "{\"mcpServers\": 1}").unwrap();
    let config = config.to_string_lossy();
    let output = through_npm(&script, &["check", "--config", &config]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[tokio::test]
async fn signal_to_the_npm_package_ends_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let script = installed(directory.path(), true);
    let config = directory.path().join("dormouse.json");
    std::fs::write(&config, json!({"mcpServers": {}}).to_string()).unwrap();
    let mut command = through_npm(&script, &["--config", &config.to_string_lossy()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut wrapper = command.spawn().unwrap();
    let mut stdin = wrapper.stdin.take().unwrap();
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
    let mut lines = BufReader::new(wrapper.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    assert!(line.contains("\"id\":1"), "{line}");
    let process = wrapper.id().unwrap();
    let program = descendants(process);
    assert!(!program.is_empty());
    kill(Pid::from_raw(process.cast_signed()), Signal::SIGTERM).unwrap();
    wrapper.wait().await.unwrap();
    eventually("the program has ended", || !program.iter().any(|id| is_alive(*id))).await;
}

#[tokio::test]
async fn npm_package_reports_a_missing_program() {
    let directory = tempfile::tempdir().unwrap();
    let output = through_npm(&installed(directory.path(), false), &[]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let platform = said.split_whitespace().find(|word| word.ends_with("64,")).unwrap();
    insta::assert_snapshot!(said.replace(platform, "<platform>,"));
}

#[tokio::test]
async fn release_contains_completions_and_manual_pages() {
    let out = tempfile::tempdir().unwrap();
    // A target directory with the program where cargo puts it.
    let target = out.path().join("target/any/release");
    std::fs::create_dir_all(&target).unwrap();
    let program = dormouse().as_std().get_program().to_owned();
    std::os::unix::fs::symlink(program, target.join("dormouse")).unwrap();
    let mut command = Command::new(root().join("scripts/package"));
    command.args(["any", "linux-x64"]).arg(out.path().join("out"));
    command.env("CARGO_TARGET_DIR", out.path().join("target"));
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = |archive: &str| {
        let mut tar = std::process::Command::new("tar");
        let output = tar.arg("-tzf").arg(out.path().join("out").join(archive)).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let archive = listed("dormouse-any.tgz");
    for file in [
        "/dormouse\n",
        "/man/dormouse.1",
        "/man/dormouse-import.1",
        "/completions/dormouse.zsh",
        "/LICENSE",
    ] {
        assert!(archive.contains(file), "{file} in {archive}");
    }
    let package = listed("npm-linux-x64.tgz");
    assert!(package.contains("package/dormouse\n") && package.contains("package/package.json"));
    assert!(out.path().join("out/dormouse-any.tgz.sha256").exists());
}

#[tokio::test]
async fn all_versions_agree() {
    let output = Command::new(root().join("scripts/check-version")).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output =
        Command::new(root().join("scripts/check-version")).arg("9.9.9").output().await.unwrap();
    assert!(!output.status.success());
}
