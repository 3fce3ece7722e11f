//! Gives back the pages of files that a thin client has needed for its start only: most of the
//! program, and of the libraries.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, BufRead, BufReader},
    ops::Range,
    path::Path,
    ptr,
    sync::mpsc::{self, Sender},
    thread,
    time::Duration,
};

/// Time after which a client has done what it does once for each daemon.
const START_TIME: Duration = Duration::from_secs(1);

/// The pages of files that a client has in memory.
pub(super) struct FilePages {
    starts: Sender<()>,
}

impl FilePages {
    /// Starts the thread that gives pages back. It lives as long as the client, since the end of a
    /// thread needs pages too.
    pub(super) fn start() -> Self {
        let (starts, wait) = mpsc::channel();
        // The client works as well without the thread.
        let _ = thread::Builder::new().spawn(move || {
            while wait.recv().is_ok() {
                thread::sleep(START_TIME);
                let _ = give_back();
            }
        });
        Self { starts }
    }

    /// Gives the pages back in the background, after the start with a daemon.
    pub(super) fn give_back_soon(&self) {
        let _ = self.starts.send(());
    }
}

/// Gives back the pages of the program and its libraries that are as in their files. A page that is
/// used again is mapped again, from the memory in which the system keeps the file.
#[expect(unsafe_code, reason = "madvise drops pages, which are read from the file again")]
fn give_back() -> io::Result<()> {
    let maps = BufReader::new(File::open("/proc/self/smaps")?);
    for mapping in file_mappings(maps, &std::env::current_exe()?)? {
        let start = ptr::with_exposed_provenance_mut(mapping.start);
        // SAFETY: the mapping is private, cannot be written, and has no page that differs from the
        // file, so that its content stays the same (madvise(2), MADV_DONTNEED). It is still there,
        // since the program and its libraries are never unmapped.
        unsafe { libc::madvise(start, mapping.len(), libc::MADV_DONTNEED) };
    }
    Ok(())
}

/// Returns the mappings of the program and its libraries that cannot be written and have no pages
/// of their own, neither in memory nor in swap space (`proc_pid_smaps(5)`).
fn file_mappings(maps: impl BufRead, program: &Path) -> io::Result<Vec<Range<usize>>> {
    let (mut found, mut candidate) = (Vec::new(), None);
    for line in maps.lines() {
        let line = line?;
        if let Some(mapping) = Mapping::read(&line) {
            candidate = mapping.is_code_of(program).then_some(mapping.addresses);
            continue;
        }
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("Anonymous:"), Some("0")) => {}
            (Some("Swap:"), Some("0")) => found.extend(candidate.take()),
            (Some("Anonymous:" | "Swap:"), _) => candidate = None,
            _ => {}
        }
    }
    Ok(found)
}

struct Mapping<'a> {
    addresses: Range<usize>,
    permissions: &'a str,
    path: &'a Path,
}

impl<'a> Mapping<'a> {
    /// Reads the first line of a mapping: addresses, permissions, offset, device, inode and path.
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let address = |digits| usize::from_str_radix(digits, 16).ok();
        let addresses = address(start)?..address(end)?;
        let permissions = words.next()?;
        let path = Path::new(words.nth(3)?.trim_start());
        Some(Self { addresses, permissions, path })
    }

    /// Returns whether it is a private one of the program or of a library, and cannot be written.
    fn is_code_of(&self, program: &Path) -> bool {
        let name = self.path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let is_library = self.path.extension() == Some(OsStr::new("so")) || name.contains(".so.");
        matches!(self.permissions, "r--p" | "r-xp") && (self.path == program || is_library)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unchanged_pages_of_the_program_are_given_back() {
        let mapping = |addresses: &str, permissions: &str, path: &str, changed: [u32; 2]| {
            let [resident, swapped] = changed;
            format!(
                "{addresses} {permissions} 00000000 fe:00 7       {path}\n\
                 Rss: 64 kB\nAnonymous: {resident} kB\nSwap: {swapped} kB\nVmFlags: rd mr\n"
            )
        };
        let program = "/opt/my tools/dormouse";
        let maps = [
            mapping("1000-2000", "r-xp", program, [0, 0]),
            mapping("2000-3000", "r--p", program, [4, 0]),
            mapping("3000-4000", "rw-p", program, [0, 0]),
            mapping("4000-5000", "r--p", "/lib/libc.so.6", [0, 0]),
            mapping("5000-6000", "r--s", program, [0, 0]),
            mapping("6000-7000", "r--p", "/home/a file", [0, 0]),
            mapping("7000-8000", "r--p", program, [0, 4]),
            "8000-9000 r-xp\n".to_owned(),
        ];
        let found = file_mappings(maps.concat().as_bytes(), Path::new(program)).unwrap();
        assert_eq!(found, [0x1000..0x2000, 0x4000..0x5000]);
    }

    #[test]
    fn program_goes_on_without_the_pages() {
        give_back().unwrap();
        only_unchanged_pages_of_the_program_are_given_back();
    }
}
