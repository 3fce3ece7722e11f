//! Files for this user alone.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::config::make_private_directory;

/// Opens a file that is there to be locked.
pub(super) fn open_lock(path: &Path) -> io::Result<File> {
    make_directory(path.parent().unwrap_or(Path::new(".")))?;
    private_options().create(true).truncate(false).open(path)
}

/// To be written; what is made so is for this user alone.
fn private_options() -> fs::OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Puts a text in the place of another, whole. Whoever does so holds the lock.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    make_directory(path.parent().unwrap_or(Path::new(".")))?;
    let fresh = path.with_extension(NEW_EXTENSION);
    let written = create_new_file(&fresh).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&fresh, path)).inspect_err(|_| {
        // It may be a part of it, on a disk that is full.
        let _ = fs::remove_file(&fresh);
    })
}

/// Removes a file, and what a process has left that was killed while it made another for its place; whether it was there.
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

/// A file that was not there before.
fn create_new_file(path: &Path) -> io::Result<File> {
    // Left by a process that was killed.
    let _ = fs::remove_file(path);
    private_options().create_new(true).open(path)
}

/// Room on the disk, for as long as it lives.
pub(super) struct ReservedSpace(PathBuf);

/// More than a login with long tokens needs.
static PADDING: [u8; 16 * 1024] = [b' '; 16 * 1024];

/// Takes up room for what will be put in this place. Whoever does so holds the lock.
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

/// Makes the directory if it is not there, and sees to it that files can be made in it.
pub(super) fn check_directory(directory: &Path) -> io::Result<()> {
    make_directory(directory)?;
    tempfile::NamedTempFile::new_in(directory).map(drop)
}

fn make_directory(directory: &Path) -> io::Result<()> {
    make_private_directory(directory)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // It may have been there.
        if directory.metadata()?.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}

/// A file that is replaced is another one, even within the same moment.
pub(super) fn inode(metadata: &fs::Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0
    }
}
