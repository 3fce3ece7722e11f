//! Copies of the apps' files from before `dormouse connect`, and records of its changes.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{AppFile, ConnectedFile};
use crate::{
    base::{
        StagedFile, WriteOptions, create_file, hex, make_private_directory, read_bounded, read_text,
    },
    config::place_fingerprint,
};

/// Maximum size of a record. It contains the removed entries of a file.
const MAX_RECORD_BYTES: u64 = 64 * 1024 * 1024;

/// A directory with dated copies, and one record for each file that contains dormouse.
#[derive(Clone, Debug)]
pub struct Backups {
    directory: PathBuf,
}

/// The record of a change that `dormouse connect` has made to a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConnectRecord {
    pub path: PathBuf,
    pub before: OriginalFile,
    /// Hash of the text before, by which a damaged copy is noticed. Early records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before_hash: Option<String>,
    /// Hash of the written text.
    after: String,
    /// The entry for dormouse in the file.
    pub entry: Value,
    /// The removed entries, by server name.
    pub taken_out: Map<String, Value>,
    /// The entries removed from the parts for single projects, by project directory.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub taken_out_of_projects: Map<String, Value>,
}

/// The content of a file before dormouse was added to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OriginalFile {
    /// The file did not exist.
    Nothing,
    /// The path of a copy.
    Copy(PathBuf),
    /// Another program or the user has edited the file between two runs of `dormouse connect`, so
    /// no copy is the right one to restore.
    Mixed,
}

impl ConnectRecord {
    /// Returns whether the file has not changed since dormouse wrote it.
    pub fn is_unchanged(&self, text: &[u8]) -> bool {
        self.after == hash(text)
    }

    /// Reads a copy of the file from before.
    ///
    /// # Errors
    /// If the copy cannot be read, or is not what was copied.
    pub fn read_copy(&self, copy: &Path) -> io::Result<String> {
        let text = read_text(copy)?;
        match &self.before_hash {
            Some(expected) if *expected != hash(text.as_bytes()) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "the copy has changed"))
            }
            _ => Ok(text),
        }
    }
}

/// A record that is saved once the file has been written.
#[derive(Debug)]
#[must_use]
pub struct PendingRecord {
    connection: ConnectRecord,
    record: PathBuf,
}

impl PendingRecord {
    pub fn before(&self) -> &OriginalFile {
        &self.connection.before
    }

    /// Saves the record.
    ///
    /// # Errors
    /// Fails if the record cannot be written.
    pub fn save(self) -> io::Result<()> {
        let record = serde_json::to_vec_pretty(&self.connection)?;
        StagedFile::write(&self.record, &record, WriteOptions::default())?.replace()
    }
}

impl Backups {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Saves a copy of a file under a name that begins with the date, and returns the copy's path.
    ///
    /// # Errors
    /// Fails if the copy cannot be written.
    pub fn save_copy(&self, path: &Path, text: &[u8]) -> io::Result<PathBuf> {
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

    /// Returns the copies of this file, the newest first.
    pub fn copies_of(&self, path: &Path) -> Vec<PathBuf> {
        let place = &place_fingerprint(path)[..8];
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let is_copy = |name: &str| name.contains(&format!("-{place}-")) && name.ends_with(&*file);
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut copies: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_copy))
            .collect();
        // The names begin with the date.
        copies.sort_by(|a, b| b.cmp(a));
        copies
    }

    /// Reads the record for this file. Returns `None` if there is none.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub fn read_record(&self, path: &Path) -> io::Result<Option<ConnectRecord>> {
        match read_bounded(&self.record_path(path), MAX_RECORD_BYTES) {
            Ok(record) => Ok(Some(serde_json::from_slice(&record)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Prepares to replace `before`, the current text of the file, by `connected`, and saves a copy
    /// of `before`.
    ///
    /// If dormouse is in the file already and its entry is only updated, the record keeps the copy
    /// from before the first change. Servers that were removed earlier stay in the record until the
    /// file contains them again.
    ///
    /// # Errors
    /// Fails if the copy cannot be written, or if an earlier record cannot be read.
    pub fn prepare_record(
        &self,
        path: &Path,
        before: Option<&[u8]>,
        connected: &ConnectedFile,
    ) -> io::Result<PendingRecord> {
        make_private_directory(&self.directory)?;
        let copy = before.map(|text| self.save_copy(path, text)).transpose()?;
        let mut earlier = self.read_record(path)?;
        if let Some(earlier) = &mut earlier {
            earlier.taken_out.retain(|name, _| !connected.server_names.contains(name));
        }
        let has_taken_out = |earlier: &ConnectRecord| {
            !earlier.taken_out.is_empty() || !earlier.taken_out_of_projects.is_empty()
        };
        let earlier = earlier.filter(|earlier| connected.was_connected || has_taken_out(earlier));
        let is_unchanged =
            |earlier: &ConnectRecord| before.is_some_and(|text| earlier.is_unchanged(text));
        let record = self.record_path(path);
        let mut connection = ConnectRecord {
            path: path.to_owned(),
            before: copy.map_or(OriginalFile::Nothing, OriginalFile::Copy),
            before_hash: before.map(hash),
            after: hash(connected.text.as_bytes()),
            entry: connected.entry.clone(),
            taken_out: Map::new(),
            taken_out_of_projects: Map::new(),
        };
        if let Some(earlier) = earlier {
            let is_unchanged = is_unchanged(&earlier);
            (connection.before, connection.before_hash) = if is_unchanged {
                (earlier.before, earlier.before_hash)
            } else {
                (OriginalFile::Mixed, None)
            };
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
        Ok(PendingRecord { connection, record })
    }

    /// Deletes the record for this file. The copies stay.
    pub fn delete_record(&self, path: &Path) {
        // The file may have no record.
        let _ = fs::remove_file(self.record_path(path));
    }

    fn record_path(&self, path: &Path) -> PathBuf {
        self.directory.join(format!("{}.json", place_fingerprint(path)))
    }
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

impl AppFile {
    /// Loads the entry that `dormouse connect` has written into this file from the record.
    ///
    /// The entry may launch dormouse under another name or have the URL of another machine, so that
    /// its content alone does not identify it.
    pub fn load_dormouse_entry(&mut self, backups: &Backups) {
        // `disconnect` and `prepare_record` report an unreadable record.
        self.dormouse_entry =
            backups.read_record(&self.path).ok().flatten().map(|record| record.entry);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn record_of_0_1_0_is_read() {
        let record = include_bytes!(concat!(
            "../../tests/golden/0.1.0/data/dormouse/backups/",
            "d55ee1393592f06fe8e1131e52d70bbae05ecb06b1684919de268ac777ee834e.json"
        ));
        let directory = tempfile::tempdir().unwrap();
        let backups = Backups::new(directory.path());
        // The file was here when dormouse was connected. Nothing is there now.
        let path = Path::new("/tmp/dormouse-golden/.cursor/mcp.json");
        fs::write(backups.record_path(path), record).unwrap();
        let record = backups.read_record(path).unwrap().unwrap();
        assert_eq!(record.path, path);
        let OriginalFile::Copy(copy) = &record.before else { panic!("{record:?}") };
        assert!(copy.starts_with("/tmp/dormouse-golden/data/dormouse/backups"));
        let connected = include_bytes!("../../tests/golden/0.1.0/.cursor/mcp.json");
        assert!(record.is_unchanged(connected));
        assert_eq!(record.entry["command"], "/tmp/dormouse-golden/bin/dormouse");
        assert_eq!(json!(record.taken_out), json!({"notes": {"command": "golden-server"}}));
        assert!(record.taken_out_of_projects.is_empty());
    }
}
