//! Files for this user alone.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

/// Opens a file that is there to be locked.
pub(super) fn open_lock(path: &Path) -> io::Result<File> {
    make_directory(path.parent().unwrap_or(Path::new(".")))?;
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Puts a text in the place of another, whole. Temporary files are for this user alone, and so is what they become.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    make_directory(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Room on the disk, for as long as it lives.
pub(super) struct Reserved(#[expect(dead_code, reason = "held")] tempfile::NamedTempFile);

/// More than two logins with long tokens need.
static ROOM: [u8; 64 * 1024] = [b' '; 64 * 1024];

pub(super) fn reserve(path: &Path) -> io::Result<Reserved> {
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(&ROOM)?;
    Ok(Reserved(file))
}

/// Makes the directory if it is not there, and sees to it that files can be made in it.
pub(super) fn check_directory(directory: &Path) -> io::Result<()> {
    make_directory(directory)?;
    tempfile::NamedTempFile::new_in(directory).map(drop)
}

fn make_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
        builder.mode(0o700);
        builder.create(directory)?;
        let permissions = directory.metadata()?.permissions();
        if permissions.mode() & 0o077 != 0 {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    }
    #[cfg(not(unix))]
    builder.create(directory)
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
