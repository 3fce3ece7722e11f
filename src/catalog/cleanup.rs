//! Keeps the directory of the catalogs within bounds.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The extension of a catalog.
pub(super) const EXTENSION: &str = "catalog";
/// The extension of a catalog that could not be read.
pub(super) const DAMAGED: &str = "damaged";
/// The extension of an empty file that says that a server hung when its catalog was to be fetched.
pub(super) const HUNG: &str = "hung";
/// The beginning of the name of a file that is being written.
pub(super) const WRITING: &str = ".writing-";

/// The largest number of files: enough for the catalogs of some thousand servers, each in several configs.
const MAX_FILES: usize = 10_000;

/// The most bytes of all files.
const MAX_BYTES: u64 = 1 << 30;

/// The age from which a file that is still being written belongs to a process that was killed meanwhile.
const ABANDONED: Duration = Duration::from_hours(1);

struct Kept {
    written: SystemTime,
    size: u64,
    path: PathBuf,
}

/// Removes what was abandoned, and the oldest files where there are too many or too large ones. Blocks.
pub(super) fn clean(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut files = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let Ok(metadata) = entry.metadata() else { continue };
        let Ok(written) = metadata.modified() else { continue };
        let path = entry.path();
        let is_old = written.elapsed().is_ok_and(|age| age > ABANDONED);
        let has = |known: &&str| path.extension().is_some_and(|extension| extension == *known);
        if [EXTENSION, DAMAGED, HUNG].iter().any(has) {
            files.push(Kept { written, size: metadata.len(), path });
        } else if is_old && entry.file_name().to_string_lossy().starts_with(WRITING) {
            // Another process may have done so.
            let _ = fs::remove_file(path);
        }
    }
    for path in surplus(files, MAX_FILES, MAX_BYTES) {
        // As above.
        let _ = fs::remove_file(path);
    }
}

/// Returns the files to remove: all that were written before the first, from the newest on, that is beyond a bound.
fn surplus(mut files: Vec<Kept>, max_files: usize, max_bytes: u64) -> Vec<PathBuf> {
    files.sort_by_key(|file| std::cmp::Reverse(file.written));
    let mut total = 0_u64;
    let mut is_within = |(at, file): (usize, &Kept)| {
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
        let files = files.map(|(name, second, size)| Kept {
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
