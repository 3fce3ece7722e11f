//! The memory of servers' processes (Linux).

use std::collections::HashMap;

/// The resident memory of all processes of the machine, by process group.
#[derive(Default)]
pub(crate) struct GroupMemory(HashMap<u32, u64>);

impl GroupMemory {
    /// Looks at all processes. Nothing is known if the system does not tell. Blocks.
    #[cfg(target_os = "linux")]
    pub(crate) fn read() -> Self {
        use nix::unistd::{SysconfVar, sysconf};

        let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
        let Some(page) = page.and_then(|page| u64::try_from(page).ok()) else {
            return Self::default();
        };
        let mut groups = HashMap::new();
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let id = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            let text = id.and_then(|id| std::fs::read_to_string(format!("/proc/{id}/stat")).ok());
            if let Some((group, pages)) = text.as_deref().and_then(group_and_pages) {
                *groups.entry(group).or_default() += pages * page;
            }
        }
        Self(groups)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn read() -> Self {
        Self::default()
    }

    /// Returns the memory of these groups together, in bytes; `None` if nothing is known of them.
    pub(crate) fn of(&self, groups: &[u32]) -> Option<u64> {
        groups.iter().filter_map(|group| self.0.get(group)).copied().reduce(|a, b| a + b)
    }
}

/// Reads the process group and the resident pages (proc(5), `/proc/[pid]/stat`, fields 5 and 24).
/// The name of the program, in parentheses, may contain spaces and parentheses.
#[cfg(target_os = "linux")]
fn group_and_pages(stat: &str) -> Option<(u32, u64)> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let field = |number: usize| fields.split(' ').nth(number - 3);
    Some((field(5)?.parse().ok()?, field(24)?.parse().ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let rest = "S 1 42 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 2048 321 18446744073709551615";
        assert_eq!(group_and_pages(&format!("7 (a) b) {rest}")), Some((42, 321)));
        assert_eq!(group_and_pages("7 (a)"), None);
    }

    #[test]
    fn own_group_has_memory() {
        let own = u32::try_from(nix::unistd::getpgrp().as_raw()).unwrap();
        let memory = GroupMemory::read();
        assert!(memory.of(&[own]).is_some_and(|bytes| bytes > 0));
        assert_eq!(memory.of(&[]), None);
    }
}
