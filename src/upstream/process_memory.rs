//! The memory of servers' processes (Linux).

/// Returns the resident memory of the processes of these groups together, in bytes. Returns `None`
/// if the system does not tell. Blocks.
#[cfg(target_os = "linux")]
pub(crate) fn memory_of_groups(groups: &[u32]) -> Option<u64> {
    use nix::unistd::{SysconfVar, sysconf};

    if groups.is_empty() {
        return None;
    }
    let page = u64::try_from(sysconf(SysconfVar::PAGE_SIZE).ok()??).ok()?;
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let pages = processes.filter_map(|process| {
        let id: u32 = process.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (group, pages) = group_and_pages(&text)?;
        groups.contains(&group).then_some(pages)
    });
    Some(pages.sum::<u64>() * page)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn memory_of_groups(_: &[u32]) -> Option<u64> {
    None
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
        assert!(memory_of_groups(&[own]).is_some_and(|bytes| bytes > 0));
        assert_eq!(memory_of_groups(&[]), None);
    }
}
