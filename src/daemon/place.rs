//! The files by which clients find their daemon.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use nix::unistd::Uid;

use crate::base::make_private_directory;

/// The generation of the protocol between clients and daemons. A client sees only daemons of its
/// own generation.
const GENERATION: u32 = 1;

/// Length of the fingerprints in the names of files, in characters. The path of a socket is limited
/// to about 100 bytes.
const FINGERPRINT_CHARS: usize = 12;

/// The directories of all daemons of a user.
#[derive(Clone, Debug)]
pub(crate) struct DaemonDirectories {
    /// For sockets and locks.
    pub running: PathBuf,
    pub logs: PathBuf,
}

/// The paths of one daemon.
#[derive(Clone, Debug)]
pub(crate) struct DaemonPlace {
    directories: DaemonDirectories,
    name: String,
}

impl DaemonDirectories {
    /// Returns the place of the daemon for a config and for an environment, which are given by
    /// their fingerprints.
    pub(crate) fn place(&self, config: &str, environment: &str) -> DaemonPlace {
        let environment = shortened(environment);
        let name = format!("{}-{environment}-{GENERATION}", shortened(config));
        DaemonPlace { directories: self.clone(), name }
    }

    /// Returns the places of daemons for a config in any environment that have a socket.
    pub(crate) fn places(&self, config: &str) -> Vec<DaemonPlace> {
        let entries = fs::read_dir(&self.running).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let (start, end) = (format!("{}-", shortened(config)), format!("-{GENERATION}"));
        let names = names.filter_map(|name| Some(name.strip_suffix(".sock")?.to_owned()));
        let mut names: Vec<String> =
            names.filter(|name| name.starts_with(&start) && name.ends_with(&end)).collect();
        names.sort();
        let place = |name| DaemonPlace { directories: self.clone(), name };
        names.into_iter().map(place).collect()
    }
}

fn shortened(fingerprint: &str) -> String {
    fingerprint.chars().take(FINGERPRINT_CHARS).collect()
}

impl DaemonPlace {
    pub(crate) fn directory(&self) -> &Path {
        &self.directories.running
    }

    /// Creates the directory. One that exists must belong to the user, and is closed to others.
    ///
    /// # Errors
    /// If it cannot be created, or belongs to another user.
    pub(super) fn prepare(&self) -> io::Result<()> {
        let directory = self.directory();
        make_private_directory(directory)?;
        let metadata = fs::symlink_metadata(directory)?;
        if !metadata.is_dir() || metadata.uid() != Uid::current().as_raw() {
            let message = format!("{} is not a directory of the user", directory.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        if metadata.mode() & 0o077 != 0 {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.directory().join(format!("{}.{extension}", self.name))
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.file("sock")
    }

    /// Returns the path of the lock that a daemon holds while it accepts clients.
    pub(super) fn lock(&self) -> PathBuf {
        self.file("lock")
    }

    /// Returns the path of the lock that a client holds while it starts the daemon.
    pub(super) fn start_lock(&self) -> PathBuf {
        self.file("start")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.directories.logs.join(format!("daemon-{}.log", self.name))
    }
}
