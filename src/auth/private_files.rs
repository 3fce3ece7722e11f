//! Files that only the current user can access.

use crate::base::make_private_directory;
use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// Opens a file that serves as a lock, and creates it if it is missing.
pub(super) fn open_lock(path: &Path) -> io::Result<File> {
    make_directory(path.parent().unwrap_or(Path::new(".")))?;
    private_options().create(true).truncate(false).open(path)
}

/// Returns the options to open a file for writing; on Unix a new file is accessible to the current
/// user only.
fn private_options() -> fs::OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Replaces a file as a whole. The caller must hold its lock.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    make_directory(path.parent().unwrap_or(Path::new(".")))?;
    let fresh = path.with_extension(NEW_EXTENSION);
    let written = create_new_file(&fresh).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&fresh, path)).inspect_err(|_| {
        // On a full disk the file may be incomplete.
        let _ = fs::remove_file(&fresh);
    })
}

/// Removes a file and the temporary files that a killed process left next to it. Returns whether
/// the file existed.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    let [_, _, removed] = [
        path.with_extension(NEW_EXTENSION),
        path.with_extension(RESERVED_EXTENSION),
        path.to_owned(),
    ]
    .map(fs::remove_file);
    match removed {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(cause),
    }
}

const NEW_EXTENSION: &str = "new";
const RESERVED_EXTENSION: &str = "room";

/// Creates a file, in place of an old one of this name.
fn create_new_file(path: &Path) -> io::Result<File> {
    // A process that was killed may have left one.
    let _ = fs::remove_file(path);
    private_options().create_new(true).open(path)
}

/// Space on the disk that is reserved until this is dropped.
pub(super) struct ReservedSpace(PathBuf);

/// More than a login with long tokens needs.
static PADDING: [u8; 16 * 1024] = [b' '; 16 * 1024];

/// Reserves space for the next version of a file. The caller must hold its lock.
pub(super) fn reserve_space(path: &Path) -> io::Result<ReservedSpace> {
    let room = path.with_extension(RESERVED_EXTENSION);
    let mut file = create_new_file(&room)?;
    let reserved = ReservedSpace(room);
    file.write_all(&PADDING)?;
    Ok(reserved)
}

impl Drop for ReservedSpace {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Creates the directory if it is missing, and checks that files can be created in it.
pub(super) fn check_directory(directory: &Path) -> io::Result<()> {
    make_directory(directory)?;
    tempfile::NamedTempFile::new_in(directory).map(drop)
}

fn make_directory(directory: &Path) -> io::Result<()> {
    make_private_directory(directory)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // An existing directory may have other permissions.
        if directory.metadata()?.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}

/// Returns the file's inode number, which differs after a replacement even if the modification time
/// does not. Other systems than Unix get 0.
pub(super) fn inode(metadata: &fs::Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0
    }
}
