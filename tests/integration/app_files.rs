//! Config files of apps, in every layout that people and programs give them.

use std::path::Path;

use dormouse::internals::{
    apps::{
        APPS, AppFile, Backups, ConnectedFile, Directories, DormouseTransport, FileScope,
        FoundEntry, FoundServer, OriginalFile, Os, find_servers, server_identity,
    },
    config::{Environment, Format},
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{AppFixture, app_files};

fn directories(os: Os, home: &Path) -> Directories {
    let (home, project) = (home.to_owned(), home.join("project"));
    Directories { os, home, project, variables: std::collections::HashMap::new() }
}

/// A random layout in which the text of a file is written.
#[derive(Clone, Debug)]
struct Layout {
    is_windows: bool,
    has_mark: bool,
    /// Factor by which the indentation of each line is multiplied.
    indentation: usize,
    /// Positions of comment lines, in percent of all lines.
    comments: Vec<usize>,
    end: &'static str,
}

fn layout() -> impl Strategy<Value = Layout> {
    let comments = prop::collection::vec(0..100usize, 0..4);
    let end = prop::sample::select(vec!["", "\n", "\n\n\n"]);
    (any::<bool>(), any::<bool>(), 1..4usize, comments, end).prop_map(
        |(is_windows, has_mark, indentation, comments, end)| Layout {
            is_windows,
            has_mark,
            indentation,
            comments,
            end,
        },
    )
}

impl Layout {
    fn of(&self, path: &str, text: &str) -> String {
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        // Content after a YAML dash is indented by two, whatever the indentation is.
        let width = if path.ends_with("yaml") { 1 } else { self.indentation };
        let mark = if path.contains("json") { "//" } else { "#" };
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let mut written: Vec<String> = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            let bare = line.trim_start_matches(' ');
            let indentation = " ".repeat((line.len() - bare.len()) * width);
            written.push(format!("{indentation}{bare}"));
            let is_here = |percent: usize| percent * lines.len() / 100 == number;
            let here = self.comments.iter().filter(|percent| is_here(**percent));
            for (position, _) in here.enumerate().filter(|_| number + 1 < lines.len()) {
                written.push(format!("{indentation}{mark} comment {position}"));
            }
        }
        let text = written.join("\n") + self.end;
        let text = if self.is_windows { text.replace('\n', "\r\n") } else { text };
        format!("{}{text}", if self.has_mark { "\u{feff}" } else { "" })
    }
}

/// The spots of a file into which dormouse writes its entry.
fn spots(file: &AppFixture, directories: &Directories) -> Vec<AppFile> {
    let scopes = [FileScope::User, FileScope::Local, FileScope::Project];
    let all = APPS.iter().flat_map(|app| scopes.map(|scope| app.writable_file(scope, directories)));
    all.flatten().filter(|spot| spot.path == directories.home.join(&file.path)).collect()
}

/// Returns the value of a file, with the servers of a list sorted by name.
fn meaning(spot: &AppFile, text: &str) -> Value {
    let mut value = Format::of(&spot.path).value(text).unwrap();
    if let Some(servers) = value["mcpServers"].as_array_mut() {
        servers.sort_by_key(|server| server["name"].to_string());
    }
    value
}

/// Returns the targets of the servers in a file that dormouse could take over.
fn targets(spot: &AppFile, directories: &Directories, environment: &Environment) -> Vec<Value> {
    let (found, unreadable) = find_servers(std::slice::from_ref(spot), directories);
    assert_eq!(unreadable, []);
    let target = |candidate: FoundServer| match candidate.entry {
        FoundEntry::Ready(entry) => Some(server_identity(&entry.members, environment)),
        _ => None,
    };
    found.into_iter().filter_map(target).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn connecting_preserves_files_in_any_layout(layout in layout(), replaces in any::<bool>()) {
        let home = tempfile::tempdir().unwrap();
        let directories = directories(Os::Linux, home.path());
        let environment = Environment::default();
        let way = DormouseTransport::Launch { command: "/bin/dormouse".to_owned(), args: vec!["--config".to_owned()] };
        for file in app_files() {
            let path = home.path().join(&file.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = layout.of(&file.path, &file.text(&directories.project));
            std::fs::write(&path, &text).unwrap();
            for spot in spots(&file, &directories) {
                let carried = if replaces { targets(&spot, &directories, &environment) } else { Vec::new() };
                let connected = spot.connect(&text, &way, &carried, &environment, &directories);
                let connected = connected.unwrap_or_else(|error| panic!("{}: {error}\n{text}", file.path));
                prop_assert!(connected.text.contains("/bin/dormouse"));
                prop_assert_eq!(connected.taken_out.len(), carried.len(), "{}", file.path);
                for line in text.lines().filter(|line| line.contains(" comment ")) {
                    prop_assert!(replaces || connected.text.contains(line.trim()), "{} in {}", line, connected.text);
                }
                if layout.is_windows {
                    prop_assert!(!connected.text.replace("\r\n", "").contains('\n'), "{:?}", connected.text);
                }
                // First undo: the file is untouched, so the copy is put back.
                let backups = Backups::new(tempfile::tempdir_in(&home).unwrap().keep());
                let after = connected.text.as_bytes();
                let pending = backups.prepare_record(&path, Some(text.as_bytes()), &connected).unwrap();
                pending.save().unwrap();
                let record = backups.read_record(&path).unwrap().unwrap();
                prop_assert!(record.is_unchanged(after));
                let OriginalFile::Copy(copy) = record.before else { panic!("no copy") };
                prop_assert_eq!(std::fs::read_to_string(copy).unwrap(), text.as_str());
                // Second undo: the file was edited, so the servers are put back one by one.
                let disconnected = spot.disconnect(&connected.text, &record.taken_out, &directories);
                let disconnected = disconnected.unwrap().unwrap();
                let (mut now, mut then) = (meaning(&spot, &disconnected), meaning(&spot, &text));
                for value in [&mut now, &mut then] {
                    // An entry named `dormouse` in the original file was replaced.
                    value["mcpServers"].as_object_mut().and_then(|all| all.shift_remove("dormouse"));
                }
                prop_assert_eq!(now, then, "{}", file.path);
            }
        }
    }
}

#[test]
fn foreign_edits_between_connections_lose_no_servers() {
    let home = tempfile::tempdir().unwrap();
    let backups = Backups::new(home.path().join("backups"));
    let path = home.path().join("mcp.json");
    let out = |name: &str, was_connected| ConnectedFile {
        text: format!("without {name}"),
        taken_out: Map::from_iter([(name.to_owned(), json!({"command": name}))]),
        was_connected,
        ..ConnectedFile::default()
    };
    for (before, connected) in
        [("first", out("a", false)), ("changed", out("b", true)), ("by hand", out("c", false))]
    {
        let pending = backups.prepare_record(&path, Some(before.as_bytes()), &connected).unwrap();
        pending.save().unwrap();
    }
    let record = backups.read_record(&path).unwrap().unwrap();
    assert!(matches!(record.before, OriginalFile::Mixed));
    assert_eq!(record.taken_out.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn each_app_has_its_files_on_each_system() {
    let mut shown = String::new();
    for (os, home) in [(Os::Linux, "/home/u"), (Os::Mac, "/Users/u"), (Os::Windows, "C:/Users/u")] {
        shown.push_str(&format!("{os:?}\n"));
        for app in &APPS {
            for spot in app.files(&directories(os, Path::new(home))) {
                let path = spot.path.to_string_lossy();
                shown.push_str(&format!("  {:<15} {:?} {path}\n", app.id, spot.scope));
            }
        }
    }
    insta::assert_snapshot!(shown);
}
