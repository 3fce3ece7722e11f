//! Files that are written as a whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

/// The reason that a file was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplaceError {
    #[error("the file changed on disk; run the command again")]
    Changed,
    #[error("{0} is not writable")]
    ReadOnly(PathBuf),
    #[error("cannot write the file")]
    Write(#[from] io::Error),
}

/// Maximum number of links that are followed to a file that does not exist.
const MAX_LINKS: usize = 16;

/// Reads a regular file of at most `max` bytes into one buffer, so that a caller can overwrite a
/// secret after use. A link to a device or a pipe is refused without reading it.
///
/// # Errors
/// If the file is not regular, is larger, or cannot be read.
pub(crate) fn read_bounded(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    // Checked before the file is opened, since opening a pipe waits for its writer.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if metadata.len() > max {
        return Err(too_large(max));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
    read_to(&mut bytes, path, max)?;
    Ok(bytes)
}

/// Reads the text of a regular file of another program, of at most 64 MiB, since some programs keep
/// all their state next to their servers.
///
/// # Errors
/// As [`read_bounded`], and if the file is not UTF-8.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read_bounded(path, 64 * 1024 * 1024)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8"))
}

/// Reads at most `max` bytes of any kind of file.
///
/// # Errors
/// If there are more, or the file cannot be read.
pub(crate) fn read_at_most(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_to(&mut bytes, path, max)?;
    Ok(bytes)
}

fn read_to(bytes: &mut Vec<u8>, path: &Path, max: u64) -> io::Result<()> {
    File::open(path)?.take(max + 1).read_to_end(bytes)?;
    if bytes.len() as u64 > max { Err(too_large(max)) } else { Ok(()) }
}

fn too_large(max: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {max} bytes"))
}

/// Writes a file that does not exist yet, readable by this user only, since it may hold secrets.
///
/// # Errors
/// If the file exists, or cannot be written.
pub(crate) fn create_file(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    let directory = directory_of(&path);
    fs::create_dir_all(directory)?;
    let mut written = tempfile::NamedTempFile::new_in(directory)?;
    written.write_all(text)?;
    written.as_file().sync_all()?;
    written.persist_noclobber(&path).map_err(|error| error.error)?;
    Ok(())
}

/// Replaces the text of a file.
///
/// # Errors
/// If the file has changed since it was read, or cannot be written.
pub(crate) fn replace_file(path: &Path, before: &[u8], after: &[u8]) -> Result<(), ReplaceError> {
    // A link stays a link.
    let path = path.canonicalize()?;
    let permissions = path.metadata()?.permissions();
    if permissions.readonly() {
        return Err(ReplaceError::ReadOnly(path));
    }
    // A process that waits for the lock then finds that the file has changed.
    let lock = File::open(&path)?;
    super::lock_file(&lock).map_err(io::Error::from)?;
    let mut written = tempfile::NamedTempFile::new_in(directory_of(&path))?;
    written.write_all(after)?;
    written.as_file().set_permissions(permissions)?;
    written.as_file().sync_all()?;
    if fs::read(&path)? != before {
        return Err(ReplaceError::Changed);
    }
    written.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// Removes a file that has not changed since it was read.
///
/// # Errors
/// If it has changed, or cannot be removed.
pub(crate) fn remove_file(path: &Path, before: &[u8]) -> Result<(), ReplaceError> {
    // A link stays a link.
    let path = path.canonicalize()?;
    if fs::read(&path)? != before {
        return Err(ReplaceError::Changed);
    }
    Ok(fs::remove_file(&path)?)
}

/// Makes a file readable by this user only.
///
/// # Errors
/// If its permissions cannot be changed.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mut permissions = path.metadata()?.permissions();
        permissions.set_mode(permissions.mode() & 0o700);
        fs::set_permissions(path, permissions)?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Creates a directory for this user only, unless it exists.
///
/// # Errors
/// If it cannot be created.
pub(crate) fn make_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
