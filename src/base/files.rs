//! Files that are written as a whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tempfile::NamedTempFile;

/// The reason that a file was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplaceError {
    #[error("the file changed on disk; run the command again")]
    Changed,
    #[error("{0} is not writable")]
    ReadOnly(PathBuf),
    #[error("cannot write {path}: {cause}")]
    Write { path: PathBuf, cause: io::Error },
}

impl ReplaceError {
    pub(crate) fn write(path: &Path, cause: io::Error) -> Self {
        Self::Write { path: path.to_owned(), cause }
    }
}

/// The way to write a whole file.
#[derive(Default)]
pub(crate) struct WriteOptions<'a> {
    /// The name of the file while it is incomplete; a random one by default. A file that has this
    /// name was left by a process that was killed, and is replaced.
    pub unfinished_name: Option<&'a str>,
    /// By default only the current user can access the file.
    pub permissions: Option<fs::Permissions>,
    /// The time of modification of the file that is replaced. The new file gets a later one, also
    /// if the clock of the file system is too coarse to tell them apart.
    pub newer_than: Option<SystemTime>,
}

/// A complete file next to the path that it is for. If it is dropped before it is moved there, it
/// is removed.
pub(crate) struct StagedFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl StagedFile {
    /// Writes the content of the file for `path` to the disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(path: &Path, content: &[u8], options: WriteOptions) -> io::Result<Self> {
        let file = Self::temporary(path, content, options).map_err(without_temporary_path)?;
        Ok(Self { file, path: path.to_owned() })
    }

    fn temporary(path: &Path, content: &[u8], options: WriteOptions) -> io::Result<NamedTempFile> {
        let directory = directory_of(path);
        let mut file = match options.unfinished_name {
            None => NamedTempFile::new_in(directory)?,
            Some(name) => {
                // There is one only if a process was killed.
                let _ = fs::remove_file(directory.join(name));
                tempfile::Builder::new().prefix(name).rand_bytes(0).tempfile_in(directory)?
            }
        };
        file.as_file_mut().write_all(content)?;
        if let Some(permissions) = options.permissions {
            file.as_file().set_permissions(permissions)?;
        }
        if let Some(before) = options.newer_than
            && file.as_file().metadata()?.modified()? <= before
        {
            file.as_file().set_modified(before + Duration::from_micros(1))?;
        }
        file.as_file().sync_all()?;
        Ok(file)
    }

    /// Moves the file to its path, in place of a file that is there.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub(crate) fn replace(self) -> io::Result<()> {
        self.file.persist(&self.path).map(drop).map_err(|error| error.error)
    }

    /// Moves the file to its path, where no file may be.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is one; others if it cannot be moved.
    pub(crate) fn create(self) -> io::Result<()> {
        self.file.persist_noclobber(&self.path).map(drop).map_err(|error| error.error)
    }
}

/// Returns the error without the path of a temporary file, which tells the user nothing.
fn without_temporary_path(error: io::Error) -> io::Error {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        kind @ (PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
            if error.raw_os_error().is_none() =>
        {
            kind.into()
        }
        _ => error,
    }
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
    read_bounded_text(path, 64 * 1024 * 1024)
}

/// Reads the text of a regular file of at most `max` bytes.
///
/// # Errors
/// As [`read_bounded`], and if the file is not UTF-8.
pub(crate) fn read_bounded_text(path: &Path, max: u64) -> io::Result<String> {
    let bytes = read_bounded(path, max)?;
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
    fs::create_dir_all(directory_of(&path))?;
    StagedFile::write(&path, text, WriteOptions::default())?.create()
}

/// Replaces the text of a file.
///
/// # Errors
/// If the file has changed since it was read, or cannot be written.
pub(crate) fn replace_file(path: &Path, before: &[u8], after: &[u8]) -> Result<(), ReplaceError> {
    let failed = |cause| ReplaceError::write(path, cause);
    // A link stays a link.
    let path = path.canonicalize().map_err(failed)?;
    let permissions = path.metadata().map_err(failed)?.permissions();
    if permissions.readonly() {
        return Err(ReplaceError::ReadOnly(path));
    }
    // A process that waits for the lock then finds that the file has changed.
    let lock = File::open(&path).map_err(failed)?;
    super::lock_file(&lock).map_err(|error| failed(error.into()))?;
    let options = WriteOptions { permissions: Some(permissions), ..WriteOptions::default() };
    let staged = StagedFile::write(&path, after, options).map_err(failed)?;
    if fs::read(&path).map_err(failed)? != before {
        return Err(ReplaceError::Changed);
    }
    staged.replace().map_err(failed)
}

/// Removes a file that has not changed since it was read.
///
/// # Errors
/// If it has changed, or cannot be removed.
pub(crate) fn remove_file(path: &Path, before: &[u8]) -> Result<(), ReplaceError> {
    let failed = |cause| ReplaceError::write(path, cause);
    // A link stays a link.
    let path = path.canonicalize().map_err(failed)?;
    if fs::read(&path).map_err(failed)? != before {
        return Err(ReplaceError::Changed);
    }
    fs::remove_file(&path).map_err(failed)
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
