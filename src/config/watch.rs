//! Notices that a file may have changed: edited in place, replaced by another of its name as editors do, or
//! swapped by a link as in a Kubernetes volume. What is watched are directories, since a file that is replaced takes
//! its watch with it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

pub struct Watch {
    files: Vec<PathBuf>,
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    /// Of every path in the directories that something happened to.
    happened: mpsc::UnboundedReceiver<PathBuf>,
}

impl Watch {
    /// Watches files, which need not be there.
    ///
    /// # Errors
    /// When the system has no more watches, or none at all.
    pub fn new(files: Vec<PathBuf>) -> notify::Result<Self> {
        let (tell, happened) = mpsc::unbounded_channel();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error is that something was missed: look at everything then.
            let paths = event.map(|event| event.paths).unwrap_or_default();
            let paths = if paths.is_empty() { vec![PathBuf::new()] } else { paths };
            for path in paths {
                // Nobody listens any more when the process ends.
                let _ = tell.send(path);
            }
        })?;
        let mut watch = Self { files, watcher, watched: BTreeSet::new(), happened };
        watch.follow_links()?;
        Ok(watch)
    }

    /// Resolves when one of the files may be another. Several changes may be one.
    pub async fn changed(&mut self) {
        loop {
            match self.happened.recv().await {
                None => return std::future::pending().await,
                Some(path) if self.concerns(&path) => break,
                Some(_) => {}
            }
        }
        // What can be reached through links may be elsewhere now; where that is, nothing can be missed, since the
        // file is read after this.
        if let Err(error) = self.follow_links() {
            tracing::debug!(%error, "cannot watch what the config links to");
        }
    }

    /// Watches the directories of all the places that the files' names lead through.
    fn follow_links(&mut self) -> notify::Result<()> {
        let places: Vec<PathBuf> = self.files.iter().flat_map(|file| places(file)).collect();
        for directory in places.iter().filter_map(|place| place.parent()) {
            if !self.watched.contains(directory) && directory.is_dir() {
                self.watcher.watch(directory, RecursiveMode::NonRecursive)?;
                self.watched.insert(directory.to_owned());
            }
        }
        Ok(())
    }

    /// Whether what happened to `path` may be a change of a file.
    fn concerns(&self, path: &Path) -> bool {
        path.as_os_str().is_empty()
            || self.files.iter().flat_map(|file| places(file)).any(|place| place == path)
            // A link to a directory on the way: `..data` in a Kubernetes volume.
            || path.is_symlink()
            || self.watched.contains(path)
    }
}

/// The absolute path of a file, and those of all the links that lead from it to what it is.
fn places(file: &Path) -> Vec<PathBuf> {
    /// Longer ways are circles.
    const LONGEST: usize = 16;
    let mut places = Vec::new();
    let mut place = std::path::absolute(file).ok();
    while let Some(path) = place.take().filter(|_| places.len() < LONGEST) {
        let target = std::fs::read_link(&path).ok();
        place = target.map(|target| path.parent().unwrap_or(Path::new("/")).join(target));
        places.push(path);
    }
    places.extend(file.canonicalize());
    places
}
