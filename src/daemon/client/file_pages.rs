//! Gives back the pages of files that a thin client has needed for its start only: most of the
//! program, and of the libraries.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    ops::Range,
    ptr, thread,
    time::Duration,
};

/// Time after which a client has done what it does once for each daemon.
const START_TIME: Duration = Duration::from_secs(1);

/// Gives the pages back in the background, after the start.
pub(super) fn give_back_soon() {
    thread::spawn(|| {
        thread::sleep(START_TIME);
        // Without it, the client works as well.
        if let Ok(maps) = File::open("/proc/self/smaps") {
            let _ = give_back(BufReader::new(maps));
        }
    });
}

/// Gives back the pages of all mappings that have only pages of files. What is used again is mapped
/// again when it is, from the memory in which the system keeps the file for all processes.
#[expect(unsafe_code, reason = "madvise drops pages, which are read from the file again")]
fn give_back(maps: impl BufRead) -> io::Result<()> {
    for mapping in file_mappings(maps)? {
        let start = ptr::with_exposed_provenance_mut(mapping.start);
        // SAFETY: the mapping is private, cannot be written, and has no page that differs from the
        // file, so that its content stays the same (madvise(2), MADV_DONTNEED). A client loads no
        // libraries, so that this holds since it was read.
        unsafe { libc::madvise(start, mapping.len(), libc::MADV_DONTNEED) };
    }
    Ok(())
}

/// Returns the mappings that have resident pages of a file and no others, and cannot be written
/// (`proc_pid_smaps(5)`).
fn file_mappings(maps: impl BufRead) -> io::Result<Vec<Range<usize>>> {
    let (mut found, mut candidate) = (Vec::new(), None);
    for line in maps.lines() {
        let line = line?;
        if let Some(mapping) = read_mapping(&line) {
            candidate = mapping.is_of_file.then_some(mapping.addresses);
        } else if line.starts_with("Anonymous:")
            && let Some(addresses) = candidate.take()
            && line.split_whitespace().nth(1) == Some("0")
        {
            found.push(addresses);
        }
    }
    Ok(found)
}

struct Mapping {
    addresses: Range<usize>,
    /// True for a private mapping of a file that cannot be written.
    is_of_file: bool,
}

/// Reads the first line of a mapping: addresses, permissions, offset, device, inode and path.
fn read_mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let address = |digits| usize::from_str_radix(digits, 16).ok();
    let addresses = address(start)?..address(end)?;
    let is_fixed = matches!(words.next()?, "r--p" | "r-xp");
    let inode: u64 = words.nth(2)?.parse().ok()?;
    Some(Mapping { addresses, is_of_file: is_fixed && inode != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unchanged_pages_of_files_are_given_back() {
        let mapping = |addresses: &str, permissions: &str, inode: u32, changed: u32| {
            format!(
                "{addresses} {permissions} 00000000 fe:00 {inode} /a file\n\
                 Rss: 64 kB\nAnonymous: {changed} kB\nVmFlags: rd mr\n"
            )
        };
        let maps = [
            mapping("1000-2000", "r-xp", 7, 0),
            mapping("2000-3000", "r--p", 7, 4),
            mapping("3000-4000", "rw-p", 7, 0),
            mapping("4000-5000", "r--p", 7, 0),
            mapping("5000-6000", "r--s", 7, 0),
            mapping("6000-7000", "r-xp", 0, 0),
            "7000-8000 r-xp\n".to_owned(),
        ];
        let found = file_mappings(maps.concat().as_bytes()).unwrap();
        assert_eq!(found, [0x1000..0x2000, 0x4000..0x5000]);
    }

    #[test]
    fn program_goes_on_without_the_pages() {
        give_back(BufReader::new(File::open("/proc/self/smaps").unwrap())).unwrap();
        only_unchanged_pages_of_files_are_given_back();
    }
}
