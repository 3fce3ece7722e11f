//! Limits the size of a directory of values.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The size of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PruneLimits {
    /// The extensions of the values that count, and can be removed.
    pub extensions: &'static [&'static str],
    pub max_values: usize,
    pub max_total_bytes: u64,
}

impl PruneLimits {
    /// Returns whether the value of this name counts, and can be removed.
    pub(super) fn counts(&self, name: &str) -> bool {
        let extension = Path::new(name).extension();
        self.extensions.iter().any(|known| extension.is_some_and(|extension| extension == *known))
    }
}

/// The extension of a file that is being written.
pub(super) const UNFINISHED_EXTENSION: &str = "new";
/// Minimum age of an abandoned file. The process that wrote it must have been killed.
const MIN_ABANDONED_AGE: Duration = Duration::from_hours(1);

struct StoredFile {
    written: SystemTime,
    size: u64,
    path: PathBuf,
}

/// Removes the files of processes that were killed while they wrote, and the oldest values beyond
/// the limits.
pub(super) fn prune_directory(directory: &Path, limits: &PruneLimits) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut files = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let Ok(metadata) = entry.metadata() else { continue };
        let Ok(written) = metadata.modified() else { continue };
        let path = entry.path();
        let is_old = written.elapsed().is_ok_and(|age| age > MIN_ABANDONED_AGE);
        let has = |known: &str| path.extension().is_some_and(|extension| extension == known);
        if limits.extensions.iter().any(|extension| has(extension)) {
            files.push(StoredFile { written, size: metadata.len(), path });
        } else if is_old && (has(UNFINISHED_EXTENSION) || is_unfinished_of_0_1(&path)) {
            // Another process may have removed the file.
            let _ = fs::remove_file(path);
        }
    }
    for path in surplus(files, limits.max_values, limits.max_total_bytes) {
        // Another process may have removed the file.
        let _ = fs::remove_file(path);
    }
}

/// Returns whether version 0.1 has begun to write this file.
fn is_unfinished_of_0_1(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".writing-"))
}

/// Returns the files to remove: the newest file that exceeds a limit, and all older files.
fn surplus(mut files: Vec<StoredFile>, max_files: usize, max_bytes: u64) -> Vec<PathBuf> {
    files.sort_by_key(|file| std::cmp::Reverse(file.written));
    let mut total = 0_u64;
    let mut is_within = |(at, file): (usize, &StoredFile)| {
        total = total.saturating_add(file.size);
        at < max_files && total <= max_bytes
    };
    let kept = files.iter().enumerate().map_while(|item| is_within(item).then_some(())).count();
    files.into_iter().skip(kept).map(|file| file.path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(max_files: usize, max_bytes: u64) -> Vec<String> {
        let files = [("old", 1, 10), ("new", 3, 10), ("middle", 2, 30)];
        let files = files.map(|(name, second, size)| StoredFile {
            written: SystemTime::UNIX_EPOCH + Duration::from_secs(second),
            size,
            path: name.into(),
        });
        let removed = surplus(files.into(), max_files, max_bytes);
        removed.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn the_newest_files_are_kept() {
        assert!(names(3, 50).is_empty());
        assert_eq!(names(2, 50), ["old"]);
        assert_eq!(names(3, 45), ["old"]);
        assert_eq!(names(3, 39), ["middle", "old"]);
        assert_eq!(names(0, 50), ["new", "middle", "old"]);
    }
}
