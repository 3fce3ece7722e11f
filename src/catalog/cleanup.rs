//! Limits the size of the directory of stored catalogs.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The extension of a file that holds a catalog.
pub(super) const CATALOG_EXTENSION: &str = "catalog";
/// The extension of a catalog file that could not be read.
pub(super) const DAMAGED_EXTENSION: &str = "damaged";
/// The extension of an empty file that records that a server hung while its catalog was fetched.
pub(super) const HUNG_EXTENSION: &str = "hung";
/// The prefix of the names of temporary files that are being written.
pub(super) const TEMPORARY_PREFIX: &str = ".writing-";

/// Maximum number of files: enough for the catalogs of some thousand servers, each in several
/// configs.
const MAX_FILES: usize = 10_000;

/// Maximum size of all files together, in bytes.
const MAX_TOTAL_BYTES: u64 = 1 << 30;

/// Minimum age of an abandoned temporary file. The process that wrote it must have been killed.
const MIN_ABANDONED_AGE: Duration = Duration::from_hours(1);

struct CatalogFile {
    written: SystemTime,
    size: u64,
    path: PathBuf,
}

/// Removes abandoned temporary files, and the oldest files if there are too many or they are too
/// large. Blocks.
pub(super) fn clean_directory(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut files = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let Ok(metadata) = entry.metadata() else { continue };
        let Ok(written) = metadata.modified() else { continue };
        let path = entry.path();
        let is_old = written.elapsed().is_ok_and(|age| age > MIN_ABANDONED_AGE);
        let has = |known: &&str| path.extension().is_some_and(|extension| extension == *known);
        if [CATALOG_EXTENSION, DAMAGED_EXTENSION, HUNG_EXTENSION].iter().any(has) {
            files.push(CatalogFile { written, size: metadata.len(), path });
        } else if is_old && entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) {
            // Another process may have removed the file.
            let _ = fs::remove_file(path);
        }
    }
    for path in surplus(files, MAX_FILES, MAX_TOTAL_BYTES) {
        // Another process may have removed the file.
        let _ = fs::remove_file(path);
    }
}

/// Returns the files to remove: the newest file that exceeds a limit, and all older files.
fn surplus(mut files: Vec<CatalogFile>, max_files: usize, max_bytes: u64) -> Vec<PathBuf> {
    files.sort_by_key(|file| std::cmp::Reverse(file.written));
    let mut total = 0_u64;
    let mut is_within = |(at, file): (usize, &CatalogFile)| {
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
        let files = files.map(|(name, second, size)| CatalogFile {
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
