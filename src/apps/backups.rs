//! What the files of hosts were before dormouse was put into them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Connected;
use crate::config::{create_file, hex, make_private_directory, place_fingerprint};

/// A directory of dated copies, and of a record for each file that dormouse is in.
#[derive(Clone, Debug)]
pub struct Backups {
    directory: PathBuf,
}

/// What was done to a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    pub path: PathBuf,
    pub before: Before,
    /// The hash of what was written.
    after: String,
    /// Our entry in it.
    pub entry: Value,
    /// The entries that were taken out.
    pub taken_out: Map<String, Value>,
    /// Those that were taken out of the parts for single projects, by the project.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub taken_out_of_projects: Map<String, Value>,
}

/// What a file was before dormouse was put into it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Before {
    /// There was none.
    Nothing,
    /// This is a copy.
    Copy(PathBuf),
    /// Others have changed it between two connections, so that there is nothing to go back to.
    Mixed,
}

impl Connection {
    /// Whether the file is as it was written then.
    pub fn is_untouched(&self, text: &[u8]) -> bool {
        self.after == hash(text)
    }
}

/// A connection that is about to be made.
#[derive(Debug)]
#[must_use]
pub struct Pending {
    connection: Connection,
    record: PathBuf,
}

impl Pending {
    pub fn before(&self) -> &Before {
        &self.connection.before
    }

    /// Records that it was made.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn finish(self) -> io::Result<()> {
        let directory = self.record.parent().unwrap_or(Path::new("."));
        let mut record = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer_pretty(&mut record, &self.connection)?;
        record.persist(&self.record)?;
        Ok(())
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
        make_private_directory(&self.directory)?;
        let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let date = date.replace(':', "-");
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let place = &place_fingerprint(path)[..8];
        let mut copy = self.directory.join(format!("{date}-{place}-{file}"));
        for number in 2.. {
            match create_file(&copy, text) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    copy = self.directory.join(format!("{date}-{place}-{number}-{file}"));
                }
                written => return written.map(|()| copy),
            }
        }
        unreachable!("there is no end to numbers")
    }

    /// The copies that were kept of this file, the newest first.
    pub fn last_copies(&self, path: &Path) -> Vec<PathBuf> {
        let place = &place_fingerprint(path)[..8];
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let is_copy = |name: &str| name.contains(&format!("-{place}-")) && name.ends_with(&*file);
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut copies: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_copy))
            .collect();
        // Their names begin with the date.
        copies.sort_by(|a, b| b.cmp(a));
        copies
    }

    /// What was done to this file, if anything.
    ///
    /// # Errors
    /// When the record of it cannot be read.
    pub fn of(&self, path: &Path) -> io::Result<Option<Connection>> {
        match fs::read(self.record(path)) {
            Ok(record) => Ok(Some(serde_json::from_slice(&record)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Prepares to write what `connected` says where `before` was. A copy is kept, and of a connection that is only changed
    /// the first one; what was taken out before stays known while it is not there again.
    ///
    /// # Errors
    /// When that cannot be written, or the record of an earlier connection cannot be read.
    pub fn prepare(
        &self,
        path: &Path,
        before: Option<&[u8]>,
        connected: &Connected,
    ) -> io::Result<Pending> {
        make_private_directory(&self.directory)?;
        let copy = before.map(|text| self.keep(path, text)).transpose()?;
        let mut earlier = self.of(path)?;
        if let Some(earlier) = &mut earlier {
            earlier.taken_out.retain(|name, _| !connected.present.contains(name));
        }
        let has_taken_out = |earlier: &Connection| {
            !earlier.taken_out.is_empty() || !earlier.taken_out_of_projects.is_empty()
        };
        let earlier = earlier.filter(|earlier| connected.was_there || has_taken_out(earlier));
        let is_untouched =
            |earlier: &Connection| before.is_some_and(|text| earlier.is_untouched(text));
        let record = self.record(path);
        let mut connection = Connection {
            path: path.to_owned(),
            before: copy.map_or(Before::Nothing, Before::Copy),
            after: hash(connected.text.as_bytes()),
            entry: connected.entry.clone(),
            taken_out: Map::new(),
            taken_out_of_projects: Map::new(),
        };
        if let Some(earlier) = earlier {
            let is_untouched = is_untouched(&earlier);
            connection.before = if is_untouched { earlier.before } else { Before::Mixed };
            connection.taken_out = earlier.taken_out;
            connection.taken_out_of_projects = earlier.taken_out_of_projects;
        }
        connection.taken_out.extend(connected.taken_out.clone());
        for (project, servers) in &connected.taken_out_of_projects {
            let known = &mut connection.taken_out_of_projects;
            match (known.get_mut(project).and_then(Value::as_object_mut), servers.as_object()) {
                (Some(known), Some(servers)) => known.extend(servers.clone()),
                _ => drop(known.insert(project.clone(), servers.clone())),
            }
        }
        Ok(Pending { connection, record })
    }

    /// Forgets what was done to this file; the copies stay.
    pub fn forget(&self, path: &Path) {
        // There may be none.
        let _ = fs::remove_file(self.record(path));
    }

    fn record(&self, path: &Path) -> PathBuf {
        self.directory.join(format!("{}.json", place_fingerprint(path)))
    }
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
