//! What the files of hosts were before dormouse was put into them.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::config::{hex, private_file};

/// A directory of dated copies, and of a record for each file that dormouse is in.
#[derive(Clone, Debug)]
pub struct Backups {
    directory: PathBuf,
}

/// What was done to a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    pub path: PathBuf,
    /// The copy of what it was; `None` where there was no file.
    pub before: Option<PathBuf>,
    /// The hash of what was written.
    after: String,
    /// The entries that were taken out.
    pub taken_out: Map<String, Value>,
}

impl Connection {
    /// Whether the file is as it was written then.
    pub fn is_untouched(&self, text: &[u8]) -> bool {
        self.after == hash(text)
    }
}

impl Backups {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Keeps a copy of a file, named by the date.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, path: &Path, text: &[u8]) -> io::Result<PathBuf> {
        self.make_directory()?;
        let date =
            humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "-");
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let place = &fingerprint(path)[..8];
        let names = (1..).map(|number| match number {
            1 => format!("{date}-{place}-{file}"),
            _ => format!("{date}-{place}-{number}-{file}"),
        });
        for name in names {
            let copy = self.directory.join(name);
            match private_file(&copy) {
                Ok(mut written) => {
                    written.write_all(text)?;
                    written.sync_all()?;
                    return Ok(copy);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("there is no end to numbers")
    }

    /// What was done to this file, if anything.
    pub fn of(&self, path: &Path) -> Option<Connection> {
        serde_json::from_slice(&fs::read(self.record(path)).ok()?).ok()
    }

    /// Records that `text` was written where `before` was. A connection that is only changed keeps its first copy.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn remember(
        &self,
        path: &Path,
        before: Option<&[u8]>,
        text: &[u8],
        taken_out: Map<String, Value>,
    ) -> io::Result<Connection> {
        let earlier =
            self.of(path).filter(|earlier| before.is_some_and(|text| earlier.is_untouched(text)));
        let after = hash(text);
        let connection = if let Some(earlier) = earlier {
            let mut all = earlier.taken_out;
            all.extend(taken_out);
            Connection { after, taken_out: all, ..earlier }
        } else {
            let before = before.map(|text| self.keep(path, text)).transpose()?;
            Connection { path: path.to_owned(), before, after, taken_out }
        };
        self.make_directory()?;
        let mut record = tempfile::NamedTempFile::new_in(&self.directory)?;
        record.write_all(&serde_json::to_vec_pretty(&connection)?)?;
        record.persist(self.record(path))?;
        Ok(connection)
    }

    /// Forgets what was done to this file; the copies stay.
    pub fn forget(&self, path: &Path) {
        // There may be none.
        let _ = fs::remove_file(self.record(path));
    }

    fn record(&self, path: &Path) -> PathBuf {
        self.directory.join(format!("{}.json", fingerprint(path)))
    }

    fn make_directory(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&self.directory)
    }
}

fn fingerprint(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    hash(path.as_os_str().as_encoded_bytes())
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
