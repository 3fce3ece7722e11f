//! The log of calls and turns on disk: files of one JSON text per line, each written by one
//! process.
//!
//! A process begins a file with its first call, and another when the file is full. It then removes
//! the oldest files of the directory. So nothing is locked, and no line is torn by another process.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::{CallRecord, TurnRecord};
use crate::base::{make_private, make_private_directory, run_blocking, since_1970};

/// Size at which a process begins another file, in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum number of files of a directory.
const MAX_FILES: usize = 256;
/// Size of all files of a directory from which the oldest are removed, in bytes.
const MAX_DIRECTORY_BYTES: u64 = 32 * 1024 * 1024;
/// Maximum number of calls that wait to be written. Further calls are counted as missing.
const MAX_WAITING: usize = 16 * 1024;
/// Maximum size of the arguments and results that wait to be written, in bytes.
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;
/// Maximum length of a line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 4 * 1024 * 1024;
const EXTENSION: &str = "jsonl";

/// The directory with the log of the calls of one config.
#[derive(Clone, Debug)]
pub(crate) struct CallLogDirectory(PathBuf);

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum LogEntry {
    // Tried first: it refuses unknown members, so that a call is never read as a turn.
    Turn(TurnRecord),
    Call(Arc<CallRecord>),
}

/// The sender of entries to the log.
pub(super) struct CallLog {
    lines: mpsc::Sender<LogEntry>,
    counts: Arc<LogCounts>,
}

#[derive(Default)]
struct LogCounts {
    /// Calls that were not written, and are not reported yet.
    missing: AtomicU64,
    /// The size of the arguments and results that wait.
    waiting_bytes: AtomicUsize,
}

/// The task that writes the log; it ends, with all calls written, when its [`CallLog`] is dropped.
pub(super) struct CallLogWriter {
    directory: CallLogDirectory,
    lines: mpsc::Receiver<LogEntry>,
    counts: Arc<LogCounts>,
}

impl CallLogDirectory {
    pub(crate) fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Makes the two ends of a log in this directory. Nothing is created before the first call.
    pub(super) fn open(self) -> (CallLog, CallLogWriter) {
        let (sender, lines) = mpsc::channel(MAX_WAITING);
        let counts = Arc::<LogCounts>::default();
        let log = CallLog { lines: sender, counts: counts.clone() };
        (log, CallLogWriter { directory: self, lines, counts })
    }

    /// Returns the files of the log, oldest first.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let is_log = |path: &PathBuf| path.extension().is_some_and(|it| it == EXTENSION);
        let mut files: Vec<PathBuf> = paths.filter(is_log).collect();
        files.sort();
        files
    }

    /// Returns the path of a new file. Names sort by the time of the beginning.
    fn new_path(&self) -> PathBuf {
        static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = LAST_NUMBER.fetch_add(1, Ordering::Relaxed);
        let now = since_1970().as_millis();
        self.0.join(format!("{now:015}-{}-{number}.{EXTENSION}", std::process::id()))
    }

    /// Creates a file, and removes the oldest ones if all are too many, or too large together.
    fn begin_file(&self) -> io::Result<LogFile> {
        make_private_directory(&self.0)?;
        let mut files = self.files();
        let size = |path: &PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
        let mut all: u64 = files.iter().map(size).sum();
        files.reverse();
        while (all > MAX_DIRECTORY_BYTES - MAX_FILE_BYTES || files.len() >= MAX_FILES)
            && let Some(oldest) = files.pop()
        {
            all -= size(&oldest);
            // Another process may have removed it.
            let _ = fs::remove_file(oldest);
        }
        let path = self.new_path();
        let file = OpenOptions::new().append(true).create_new(true).open(&path)?;
        make_private(&path)?;
        Ok(LogFile { file, path })
    }
}

impl LogEntry {
    /// Returns its time, in the form of RFC 3339.
    fn at(&self) -> &str {
        match self {
            Self::Turn(turn) => &turn.at,
            Self::Call(call) => &call.at,
        }
    }

    /// Returns the size of the arguments and the result.
    fn content_bytes(&self) -> usize {
        match self {
            Self::Turn(_) => 0,
            Self::Call(call) => call.content_bytes(),
        }
    }
}

/// A file that this process writes.
struct LogFile {
    file: File,
    path: PathBuf,
}

impl LogFile {
    /// Returns whether the file has room. Another process may have removed it.
    fn is_usable(&self) -> bool {
        self.path.metadata().is_ok_and(|it| it.len() < MAX_FILE_BYTES)
    }
}

impl CallLog {
    pub(super) fn write(&self, entry: LogEntry) {
        let LogCounts { missing, waiting_bytes } = &*self.counts;
        let bytes = entry.content_bytes();
        let waiting = waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if waiting + bytes > MAX_WAITING_BYTES || self.lines.try_send(entry).is_err() {
            waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            missing.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl CallLogWriter {
    /// Writes calls until there will be no more.
    pub(super) async fn run(mut self) {
        let mut file = None;
        let mut is_failing = false;
        while let Some(first) = self.lines.recv().await {
            let mut entries = vec![first];
            while let Ok(entry) = self.lines.try_recv() {
                entries.push(entry);
            }
            let bytes = entries.iter().map(LogEntry::content_bytes).sum();
            let calls = entries.iter().filter(|entry| matches!(entry, LogEntry::Call(_)));
            let count = u64::try_from(calls.count()).unwrap_or(u64::MAX);
            let (directory, open) = (self.directory.clone(), file.take());
            let written = run_blocking(move || append(&directory, open, &entries)).await;
            self.counts.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            match written {
                Some(Ok(open)) => {
                    file = Some(open);
                    is_failing = false;
                    self.report_missing();
                }
                Some(Err(error)) => {
                    self.counts.missing.fetch_add(count, Ordering::Relaxed);
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(%error, "cannot write the log of calls");
                    }
                }
                // The runtime shuts down.
                None => return,
            }
        }
    }

    fn report_missing(&self) {
        let missing = self.counts.missing.swap(0, Ordering::Relaxed);
        if missing > 0 {
            tracing::warn!(missing, "calls are missing in the log of calls");
        }
    }
}

/// Appends the entries to the file, or to another one if it is full. Returns the file.
fn append(
    directory: &CallLogDirectory,
    open: Option<LogFile>,
    entries: &[LogEntry],
) -> io::Result<LogFile> {
    let mut open = match open.filter(LogFile::is_usable) {
        Some(open) => open,
        None => directory.begin_file()?,
    };
    let mut lines = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut lines, entry)?;
        lines.push(b'\n');
    }
    if let Err(error) = open.file.write_all(&lines) {
        // A disk that is full must not get a new file with each attempt.
        if open.file.metadata().is_ok_and(|it| it.len() == 0) {
            let _ = fs::remove_file(&open.path);
        }
        return Err(error);
    }
    Ok(open)
}

/// A reader of the log that gets what is appended later, too.
pub(crate) struct FollowedLog {
    directory: CallLogDirectory,
    /// The number of bytes that have been read of each file.
    positions: BTreeMap<PathBuf, u64>,
}

impl FollowedLog {
    pub(crate) fn new(directory: CallLogDirectory) -> Self {
        Self { directory, positions: BTreeMap::new() }
    }

    /// Returns the calls since the last time, oldest first.
    pub(crate) fn next_calls(&mut self) -> impl Iterator<Item = CallRecord> {
        self.next_entries().into_iter().filter_map(|entry| match entry {
            LogEntry::Call(call) => Some(Arc::unwrap_or_clone(call)),
            LogEntry::Turn(_) => None,
        })
    }

    /// Returns the entries since the last time, oldest first. Other lines are left out: a newer
    /// dormouse may have written them.
    pub(crate) fn next_entries(&mut self) -> Vec<LogEntry> {
        let earlier = std::mem::take(&mut self.positions);
        let mut entries = Vec::new();
        for path in self.directory.files() {
            let mut position = earlier.get(&path).copied().unwrap_or_default();
            // Another process may have removed the file.
            let _ = read_from(&path, &mut position, &mut entries);
            self.positions.insert(path, position);
        }
        entries.sort_by(|a: &LogEntry, b| a.at().cmp(b.at()));
        entries
    }
}

/// Reads the entries from `position` on, and moves it behind them.
fn read_from(path: &Path, position: &mut u64, entries: &mut Vec<LogEntry>) -> io::Result<()> {
    let metadata = path.metadata()?;
    if !metadata.is_file() || metadata.len() <= *position {
        return Ok(());
    }
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(*position))?;
    let mut lines = BufReader::new(file);
    loop {
        let mut line = Vec::new();
        let read = (&mut lines).take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
        let is_whole = line.ends_with(b"\n") || line.len() as u64 == MAX_LINE_BYTES;
        if !is_whole {
            // The rest of the line is not written yet.
            return Ok(());
        }
        *position += read as u64;
        entries.extend(serde_json::from_slice::<LogEntry>(&line).ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(number: u64) -> LogEntry {
        LogEntry::Turn(TurnRecord {
            at: format!("2026-01-01T00:00:00.{number:03}Z"),
            pid: 1,
            client: None,
            saved_tokens: number,
        })
    }

    fn directory() -> (tempfile::TempDir, CallLogDirectory) {
        let place = tempfile::tempdir().unwrap();
        let directory = CallLogDirectory::new(place.path());
        (place, directory)
    }

    #[test]
    fn file_that_another_process_has_removed_is_replaced() {
        let (_place, directory) = directory();
        let first = append(&directory, None, &[turn(1)]).unwrap();
        fs::remove_file(&first.path).unwrap();
        append(&directory, Some(first), &[turn(2)]).unwrap();
        assert_eq!(FollowedLog::new(directory).next_entries(), [turn(2)]);
    }

    #[test]
    fn full_file_is_followed_by_another_and_the_oldest_are_removed() {
        let (_place, directory) = directory();
        let mut open = None;
        for number in 0..12 {
            let written = append(&directory, open.take(), &[turn(number)]).unwrap();
            written.file.set_len(MAX_FILE_BYTES).unwrap();
            open = Some(written);
        }
        let files = u64::try_from(directory.files().len()).unwrap();
        assert!((2..=MAX_DIRECTORY_BYTES / MAX_FILE_BYTES).contains(&files), "{files}");
    }

    #[test]
    fn number_of_files_is_bounded() {
        let (_place, directory) = directory();
        for number in 0..MAX_FILES as u64 + 20 {
            append(&directory, None, &[turn(number)]).unwrap();
        }
        assert_eq!(directory.files().len(), MAX_FILES);
        let entries = FollowedLog::new(directory).next_entries();
        assert_eq!(entries.last(), Some(&turn(MAX_FILES as u64 + 19)));
    }

    #[test]
    fn line_is_read_when_it_is_whole() {
        let (_place, directory) = directory();
        let mut open = append(&directory, None, &[turn(1)]).unwrap();
        let mut log = FollowedLog::new(directory);
        assert_eq!(log.next_entries(), [turn(1)]);
        let line = serde_json::to_string(&turn(2)).unwrap();
        open.file.write_all(&line.as_bytes()[..10]).unwrap();
        assert!(log.next_entries().is_empty());
        open.file.write_all(format!("{}\nnot JSON\n", &line[10..]).as_bytes()).unwrap();
        assert_eq!(log.next_entries(), [turn(2)]);
    }
}
