//! Full disks, and directories that cannot be written.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::support::{
    Authority, Cases, Home, Host, Program, Proxy, Server, User, dormouse, eventually,
    faults::{Namespace, ReadOnly, SmallDisk, isolated},
    fixture, is_alive, redacted,
};

#[derive(Clone, Copy)]
enum Fault {
    Full,
    ReadOnly,
}

/// Directories on small disks, which can have a fault.
struct Disks {
    fault: Fault,
    places: Vec<(PathBuf, SmallDisk)>,
    read_only: Vec<ReadOnly>,
}

impl Disks {
    fn at(fault: Fault, home: &Path, places: &[&str]) -> Self {
        let disk = |place: &&str| (home.join(place), SmallDisk::at(&home.join(place)));
        Self { fault, places: places.iter().map(disk).collect(), read_only: Vec::new() }
    }

    fn fail(&mut self) {
        match self.fault {
            Fault::Full => self.places.iter().for_each(|(_, disk)| disk.fill()),
            Fault::ReadOnly => {
                self.read_only = self.places.iter().map(|(place, _)| ReadOnly::at(place)).collect();
            }
        }
    }

    fn recover(&mut self) {
        match self.fault {
            Fault::Full => self.places.iter().for_each(|(_, disk)| disk.free()),
            Fault::ReadOnly => self.read_only.clear(),
        }
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        // The upper mounts go first.
        self.read_only.clear();
    }
}

/// Returns the files of a directory with their content, without those that fill the disk.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.ends_with("ballast") {
            files.extend(self::files(&path));
        } else if path.is_file() {
            match std::fs::read(&path) {
                Ok(content) => files.push((path, content)),
                // dormouse writes a new file under another name, and then renames it.
                Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{}", path.display()),
            }
        }
    }
    files.sort();
    files
}

/// Returns the texts of the stored catalogs.
fn catalogs(home: &Path) -> Vec<String> {
    let files = files(&home.join("cache/dormouse/catalogs"));
    let catalogs =
        files.into_iter().filter(|(path, _)| path.extension() == Some("catalog".as_ref()));
    catalogs.map(|(_, content)| String::from_utf8(content).unwrap()).collect()
}

/// Returns the different warnings, sorted.
fn warnings(program: &Program) -> String {
    let mut warnings = program.warnings();
    warnings.sort();
    warnings.dedup();
    // The name of the file with the loads is a hash of the config's path.
    let mut text = warnings.join("\n");
    if let Some((before, rest)) = text.split_once("/loads/") {
        text = format!(
            "{before}/loads/<config>{}",
            rest.trim_start_matches(|c: char| c.is_ascii_hexdigit())
        );
    }
    text
}

async fn asleep(host: &Host, server: &str) {
    let is_over = || host.started(server).iter().all(|process| !is_alive(*process));
    eventually("it sleeps", is_over).await;
}

/// Serves a host while nothing can be kept, and again when it can.
async fn serve_under(fault: Fault, snapshot: &str) {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut disks = Disks::at(fault, home, &["cache", "data", "dormouse"]);
    let proxy = |wording: &str| {
        let a = Server::lazy("a").set("env", json!({"FIXTURE_WORDING": wording}));
        let servers = [a, Server::lazy("b")];
        let proxy = Proxy::with(servers).at_home(home).set("surface", "direct");
        proxy.set("rememberLoads", true).set("idleTimeout", "300ms")
    };
    let mut host = proxy("").serve().await;
    host.load("a").await;
    eventually("the catalog is kept", || catalogs(home).len() == 1).await;
    host.end().await;

    let kept = || [files(&home.join("cache")), files(&home.join("data"))];
    let before = kept();
    disks.fail();
    let mut host = proxy(" New.").serve().await;
    assert!(host.call("a__echo", json!({})).await["isError"].is_null(), "a stored catalog is used");
    host.load("b").await;
    assert!(host.call("b__echo", json!({})).await["isError"].is_null(), "a new server is learned");
    host.notification("notifications/tools/list_changed").await;
    assert!(host.request("tools/list", json!({})).await.to_string().contains("New."));
    let socket = host.logged_at("INFO", "control socket").await;
    asleep(&host, "a").await;
    asleep(&host, "b").await;
    insta::assert_snapshot!(snapshot, format!("{socket}\n{}", warnings(&host)));
    assert_eq!(kept(), before, "nothing is damaged");

    disks.recover();
    for server in ["a", "b"] {
        assert!(host.call(&format!("{server}__echo"), json!({})).await["isError"].is_null());
    }
    let is_kept = || catalogs(home).iter().filter(|catalog| catalog.contains("New.")).count() == 1;
    eventually("what was learned is kept", || catalogs(home).len() == 2 && is_kept()).await;
    let mut command = dormouse();
    command.arg("status").arg("--config").arg(home.join("dormouse.json"));
    command.env("XDG_RUNTIME_DIR", home).env("XDG_CACHE_HOME", home.join("cache"));
    eventually("commands reach the instance", || {
        let output = command.as_std_mut().output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("process")
    })
    .await;
}

#[test]
fn full_disk_fails_no_call_and_is_used_again_when_it_has_room() {
    isolated(Namespace::Mounts, async || serve_under(Fault::Full, "served_on_a_full_disk").await);
}

#[test]
fn read_only_directories_fail_no_call_and_are_used_again_when_they_can_be_written() {
    isolated(Namespace::Mounts, async || {
        serve_under(Fault::ReadOnly, "served_in_read_only_directories").await;
    });
}

/// The commands that write, with the directory in which they run.
const WRITERS: [(&str, &[&str]); 9] = [
    (".", &["init", "--config", ".config/dormouse/other.json"]),
    (".", &["add", "b", "true"]),
    (".", &["approve", "a"]),
    (".", &["disable", "a"]),
    (".", &["remove", "a"]),
    (".", &["import", "--all", "--yes"]),
    (".", &["connect", "cursor", "--yes"]),
    ("project", &["trust"]),
    (".", &["login", "g", "--no-browser"]),
];

async fn write_under(fault: Fault, snapshot: &str) {
    let authority = Authority::start().await;
    let mut cases = Cases::default();
    let home = Home::new();
    let places = [".config/dormouse", ".local/share/dormouse", ".cache/dormouse", ".cursor"];
    let mut disks = Disks::at(fault, home.path(), &places);
    fill_home(&home, &authority).await;
    let before = files(home.path());
    disks.fail();
    for (directory, arguments) in WRITERS {
        let (code, said) = home.run_in(directory, arguments).await;
        cases.add(arguments.join(" "), &format!("{said}exit code {code:?}"));
    }
    insta::assert_snapshot!(snapshot, cases);
    assert_eq!(files(home.path()), before, "every file is as it was");
    disks.recover();
    for (directory, arguments) in WRITERS {
        // Nobody is there to log in.
        if arguments[0] != "login" {
            let (code, said) = home.run_in(directory, arguments).await;
            assert_eq!(code, Some(0), "{arguments:?}: {said}");
        }
    }
}

/// Fills a home, so that every command that writes has something to write.
async fn fill_home(home: &Home, authority: &Authority) {
    let wording = home.path().join("wording");
    let server = json!({
        "command": fixture(), "args": ["{}"], "description": "A server.",
        "env": {"FIXTURE_WORDING_FILE": wording},
    });
    let login = json!({"url": authority.url(), "description": "It wants a login."});
    let config: Value = json!({"mcpServers": {"a": server, "g": login}});
    home.write(".config/dormouse/dormouse.json", config.to_string());
    home.write("project/dormouse.json", json!({"mcpServers": {}}).to_string());
    home.write(".cursor/mcp.json", json!({"mcpServers": {"c": {"command": "c"}}}).to_string());
    for wording in ["", " New."] {
        home.write("wording", wording);
        let (code, said) = home.run(&["refresh", "a"]).await;
        assert_eq!(code, Some(0), "{said}");
    }
}

#[test]
fn commands_change_nothing_on_a_full_disk() {
    isolated(Namespace::Mounts, async || write_under(Fault::Full, "written_on_a_full_disk").await);
}

#[test]
fn commands_change_nothing_in_read_only_directories() {
    isolated(Namespace::Mounts, async || {
        write_under(Fault::ReadOnly, "written_in_read_only_directories").await;
    });
}

#[test]
fn file_of_an_app_on_a_full_disk_stays_whole() {
    isolated(Namespace::Mounts, async || {
        let home = Home::new();
        let mut disks = Disks::at(Fault::Full, home.path(), &[".cursor"]);
        home.write(".config/dormouse/dormouse.json", r#"{"mcpServers": {}}"#);
        home.write(".cursor/mcp.json", r#"{"mcpServers": {"c": {"command": "c"}}}"#);
        let before = home.read(".cursor/mcp.json");
        let connect = async || home.run(&["connect", "cursor", "--yes", "--json"]).await;
        disks.fail();
        let (code, said) = connect().await;
        assert_eq!(code, Some(1), "{said}");
        insta::assert_snapshot!("connect_on_a_full_disk", redacted(&said));
        home.assert_file(".cursor/mcp.json", &before);
        disks.recover();
        let (code, said) = connect().await;
        assert_eq!(code, Some(0), "{said}");
        home.run(&["disconnect", "cursor", "--yes"]).await;
        home.assert_file(".cursor/mcp.json", &before);
    });
}

/// Calls with a token that has expired while the next one could not be kept.
async fn renew_under(fault: Fault, snapshot: &str) {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let mut disks = Disks::at(fault, user.home.path(), &["data"]);
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    let mut host = user.host().await;
    assert_eq!(host.use_g().await, "ordinary");
    let logins = user.home.path().join("data/dormouse/logins");
    let before = (files(&logins), authority.token_requests().len());
    disks.fail();
    authority.expire_tokens();
    let refusal = redacted(&host.use_g().await);
    let (before_key, rest) = refusal.split_once("logins/").unwrap();
    let (_, cause) = rest.split_once('.').unwrap();
    insta::assert_snapshot!(snapshot, format!("{before_key}logins/<login>.{cause}"));
    assert_eq!(authority.token_requests().len(), before.1, "the refresh token is not used up");
    assert_eq!(files(&logins), before.0);
    disks.recover();
    assert_eq!(host.use_g().await, "ordinary");
    assert_eq!(authority.token_requests().len(), before.1 + 1);
    host.end().await;
    assert_eq!(user.host().await.use_g().await, "ordinary", "the new token was kept");
}

#[test]
fn token_is_not_renewed_on_a_full_disk() {
    isolated(Namespace::Mounts, async || renew_under(Fault::Full, "renewal_on_a_full_disk").await);
}

#[test]
fn token_is_not_renewed_in_a_read_only_directory() {
    isolated(Namespace::Mounts, async || {
        renew_under(Fault::ReadOnly, "renewal_in_a_read_only_directory").await;
    });
}
