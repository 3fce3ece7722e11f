//! Detects that a file may have changed: edited in place, replaced as editors do, or swapped by a
//! link on its path, as in a Kubernetes volume. Directories are watched, since a replaced file
//! takes its watch with it.

use std::{
    collections::BTreeSet,
    io,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use notify::{
    EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use tokio::{sync::mpsc, time::Instant};

/// Time without events after which a file counts as complete, since files are often written in
/// several steps.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum time to wait for that, for files that are written all the time.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(2);

pub(crate) struct Watch {
    files: Vec<PathBuf>,
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    /// Every path with an event in the watched directories.
    happened: mpsc::UnboundedReceiver<PathBuf>,
}

impl Watch {
    /// Watches files, which need not exist.
    ///
    /// # Errors
    /// If the system has no more watches or threads, or does not support watches.
    pub(crate) fn new(files: Vec<PathBuf>) -> notify::Result<Self> {
        let (tell, happened) = mpsc::unbounded_channel();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error means that events were missed, so that everything may have changed.
            let paths = match event {
                Ok(event) if is_a_look(event.kind) => return,
                Ok(event) => event.paths,
                Err(_) => vec![PathBuf::new()],
            };
            for path in paths {
                // The receiver is gone when the process ends.
                let _ = tell.send(path);
            }
        })?;
        if happened.is_closed() {
            // `notify` does not report that its thread could not be started, and would panic when
            // this watcher is used or dropped.
            std::mem::forget(watcher);
            let message = "cannot start a thread";
            return Err(notify::Error::io(io::Error::new(io::ErrorKind::WouldBlock, message)));
        }
        let mut watch = Self { files, watcher, watched: BTreeSet::new(), happened };
        watch.follow_links();
        Ok(watch)
    }

    /// Resolves when one of the files may have changed, and no more events arrive.
    pub(crate) async fn changed(&mut self) {
        self.concerning().await;
        let latest = Instant::now() + MAX_SETTLE_TIME;
        while Instant::now() < latest
            && tokio::time::timeout(SETTLE_TIMEOUT, self.concerning()).await.is_ok()
        {}
        // Later events belong to another change; earlier ones are covered by the reading that
        // follows.
        self.follow_links();
    }

    async fn concerning(&mut self) {
        loop {
            match self.happened.recv().await {
                None => return std::future::pending().await,
                Some(path) if self.concerns(&path) => return,
                Some(_) => {}
            }
        }
    }

    /// Watches the directories of all places on the files' paths. They are watched again each time,
    /// since a replaced directory has taken its watch with it.
    fn follow_links(&mut self) {
        for directory in std::mem::take(&mut self.watched) {
            // The directory may be gone.
            let _ = self.watcher.unwatch(&directory);
        }
        let places: Vec<PathBuf> = self.files.iter().flat_map(|file| places(file)).collect();
        for place in places {
            let Some(directory) = place.ancestors().skip(1).find(|directory| directory.is_dir())
            else {
                continue;
            };
            if self.watched.insert(directory.to_owned())
                && let Err(error) = self.watcher.watch(directory, RecursiveMode::NonRecursive)
            {
                let directory = directory.display();
                tracing::warn!(
                    %directory, %error,
                    "cannot watch a directory of the config; changes there go unnoticed",
                );
            }
        }
    }

    /// Returns whether an event at `path` may be a change of a file, because it is on the path to
    /// one.
    fn concerns(&self, path: &Path) -> bool {
        path.as_os_str().is_empty()
            || self.files.iter().flat_map(|file| places(file)).any(|place| place.starts_with(path))
    }
}

/// Returns whether the event is only a read, such as by dormouse itself.
fn is_a_look(kind: EventKind) -> bool {
    let written = EventKind::Access(AccessKind::Close(AccessMode::Write));
    matches!(kind, EventKind::Access(_)) && kind != written
}

/// Returns the links on the path to a file, and the file itself, by absolute paths.
fn places(file: &Path) -> Vec<PathBuf> {
    /// Maximum number of links; more are a circle.
    const MAX_LINKS: usize = 32;
    let mut places = Vec::new();
    let Ok(mut path) = std::path::absolute(file) else { return places };
    while places.len() < MAX_LINKS {
        match first_link(&path) {
            Some((link, whole)) => {
                places.push(link);
                path = whole;
            }
            None => break,
        }
    }
    places.push(path);
    places
}

/// Returns the first link on the path, and the path with that link followed.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut way = PathBuf::new();
    let mut components = path.components();
    while let Some(component) = components.next() {
        if component == Component::ParentDir {
            way.pop();
            continue;
        }
        let directory = way.clone();
        way.push(component);
        if let Ok(target) = std::fs::read_link(&way) {
            return Some((way, directory.join(target).join(components.as_path())));
        }
    }
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Waits for an expected event, and for an unexpected one only for a while.
    async fn notices(watch: &mut Watch, expected: bool) -> bool {
        let patience = Duration::from_secs(if expected { 20 } else { 1 });
        tokio::time::timeout(patience, watch.changed()).await.is_ok()
    }

    #[tokio::test]
    async fn every_way_in_which_a_file_becomes_another_is_noticed_and_a_look_is_not() {
        let place = tempfile::tempdir().unwrap();
        // Without the system's own links.
        let root = place.path().canonicalize().unwrap();
        for release in ["one", "two", "three"] {
            std::fs::create_dir_all(root.join(release)).unwrap();
            std::fs::write(root.join(release).join("c"), release).unwrap();
        }
        symlink("one", root.join("current")).unwrap();
        let file = root.join("current/c");
        let mut watch = Watch::new(vec![file.clone(), root.join("current/.env")]).unwrap();
        for _ in 0..3 {
            std::fs::read(&file).unwrap();
        }
        assert!(!notices(&mut watch, false).await, "it was only read");
        let change = |what: &str| match what {
            "written in place" => std::fs::write(&file, "new").unwrap(),
            "a neighbour" => std::fs::write(root.join("current/other"), "x").unwrap(),
            "variables" => std::fs::write(root.join("current/.env"), "A=1").unwrap(),
            "replaced" => {
                std::fs::write(root.join("fresh"), "x").unwrap();
                std::fs::rename(root.join("fresh"), &file).unwrap();
            }
            "removed" => std::fs::remove_file(&file).unwrap(),
            "a link to a directory" => {
                let target = if root.join("current").read_link().unwrap().ends_with("one") {
                    "two"
                } else {
                    "three"
                };
                symlink(target, root.join("link")).unwrap();
                std::fs::rename(root.join("link"), root.join("current")).unwrap();
            }
            "the directory is made again" => {
                std::fs::remove_dir_all(root.join("three")).unwrap();
                std::fs::create_dir(root.join("three")).unwrap();
                std::fs::write(&file, "x").unwrap();
            }
            other => panic!("{other}"),
        };
        for (what, expected) in [
            ("written in place", true),
            ("a neighbour", false),
            ("variables", true),
            ("replaced", true),
            ("removed", true),
            ("written in place", true),
            ("a link to a directory", true),
            ("written in place", true),
            ("a link to a directory", true),
            ("written in place", true),
            ("the directory is made again", true),
            ("written in place", true),
        ] {
            change(what);
            assert_eq!(notices(&mut watch, expected).await, expected, "{what}");
        }
    }
}
