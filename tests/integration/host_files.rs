//! The files of hosts in all the layouts that people and programs give them.

use std::path::Path;

use dormouse::hosts::{Backups, Directories, HOSTS, Os, Scope, Spot, Way};
use proptest::prelude::*;
use serde_json::Map;

use crate::support::{HostFile, host_files};

fn directories(os: Os, home: &Path) -> Directories {
    let (home, project) = (home.to_owned(), home.join("project"));
    Directories { os, home, project, variables: std::collections::HashMap::new() }
}

/// How a text is written again.
#[derive(Clone, Debug)]
struct Layout {
    is_windows: bool,
    has_mark: bool,
    /// Each space before a line, so often.
    indentation: usize,
    /// Behind these lines, in percent of all.
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
        // What stands behind a dash is indented by two whatever else is.
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

/// The spots of a file that dormouse is put into.
fn spots(file: &HostFile, directories: &Directories) -> Vec<Spot> {
    let scopes = [Scope::User, Scope::Local, Scope::Project];
    let all = HOSTS.iter().flat_map(|host| scopes.map(|scope| host.own_spot(scope, directories)));
    all.flatten().filter(|spot| spot.path == directories.home.join(&file.path)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_file_in_any_layout_keeps_all_that_is_in_it(layout in layout()) {
        let home = tempfile::tempdir().unwrap();
        let directories = directories(Os::Linux, home.path());
        let way = Way::Launch { command: "/bin/dormouse".to_owned(), args: vec!["--config".to_owned()] };
        let backups = Backups::new(home.path().join("backups"));
        for file in host_files() {
            let path = home.path().join(&file.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = layout.of(&file.path, &file.text(&directories.project));
            std::fs::write(&path, &text).unwrap();
            for spot in spots(&file, &directories) {
                let connected = spot.connect(&text, &way, None, &directories);
                let connected = connected.unwrap_or_else(|error| panic!("{}: {error}\n{text}", file.path)).text;
                prop_assert!(connected.contains("/bin/dormouse"));
                for line in text.lines().filter(|line| line.contains(" comment ")) {
                    prop_assert!(connected.contains(line.trim()), "{} in {connected}", line);
                }
                if layout.is_windows {
                    prop_assert!(!connected.replace("\r\n", "").contains('\n'), "{connected:?}");
                }
                // By the copy.
                let record = backups.remember(&path, Some(text.as_bytes()), connected.as_bytes(), Map::new()).unwrap();
                prop_assert!(record.is_untouched(connected.as_bytes()));
                prop_assert_eq!(std::fs::read_to_string(record.before.unwrap()).unwrap(), text.as_str());
                // By hand, where somebody has changed it: what was there means the same.
                let disconnected = spot.disconnect(&connected, &Map::new(), &directories).unwrap().unwrap();
                prop_assert!(!disconnected.contains("/bin/dormouse"));
                let again = spot.connect(&disconnected, &way, None, &directories).unwrap();
                let servers = |text: &str| {
                    let found = spot.connect(text, &way, None, &directories).unwrap();
                    (found.left, found.taken_out)
                };
                prop_assert_eq!(servers(&again.text), servers(&text));
            }
        }
    }
}

#[test]
fn each_host_has_its_files_on_each_system() {
    let mut shown = String::new();
    for (os, home) in [(Os::Linux, "/home/u"), (Os::Mac, "/Users/u"), (Os::Windows, "C:/Users/u")] {
        shown.push_str(&format!("{os:?}\n"));
        for host in &HOSTS {
            for spot in host.spots(&directories(os, Path::new(home))) {
                let path = spot.path.to_string_lossy();
                shown.push_str(&format!("  {:<15} {:?} {path}\n", host.id, spot.scope));
            }
        }
    }
    insta::assert_snapshot!(shown);
}
