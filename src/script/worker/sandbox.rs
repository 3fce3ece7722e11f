//! The sandbox of a worker: what the process can no longer do once its script is there.
//!
//! The interpreter has its own limits. These hold if a script breaks out of it.

use std::io;

use crate::script::message::Bounds;

/// Address space of a worker besides the memory of its script, in bytes: the program, the stack,
/// and the texts of messages.
#[cfg(target_os = "linux")]
const OWN_ADDRESS_SPACE: u64 = 1024 * 1024 * 1024;
/// Processor time of a worker besides the own time of its script, in seconds.
#[cfg(unix)]
const OWN_SECONDS: u64 = 2;

/// Takes from this process what a script does not need: files, the network, other processes, and
/// more memory and time than the limits.
///
/// # Errors
/// If the system refuses a limit.
pub(super) fn enter(bounds: Bounds) -> io::Result<()> {
    // Each step takes what the next one does not need.
    #[cfg(target_os = "linux")]
    linux::deny_files_and_network()?;
    #[cfg(unix)]
    limit_resources(bounds)?;
    #[cfg(target_os = "linux")]
    linux::deny_system_calls()?;
    #[cfg(not(unix))]
    let _ = bounds;
    Ok(())
}

#[cfg(unix)]
fn limit_resources(bounds: Bounds) -> io::Result<()> {
    use nix::sys::resource::{Resource, setrlimit};

    let set = |resource, limit| setrlimit(resource, limit, limit).map_err(io::Error::from);
    set(Resource::RLIMIT_CORE, 0)?;
    set(Resource::RLIMIT_FSIZE, 0)?;
    set(Resource::RLIMIT_CPU, bounds.own_time_ms.div_ceil(1000) + OWN_SECONDS)?;
    // macOS has no limit of the address space that holds.
    #[cfg(target_os = "linux")]
    set(Resource::RLIMIT_AS, OWN_ADDRESS_SPACE + 4 * bounds.memory as u64)?;
    // Descriptors that are open stay open.
    set(Resource::RLIMIT_NOFILE, 0)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{collections::BTreeMap, io};

    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset,
        RulesetAttr as _,
    };
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

    /// The system calls of a process with one thread that reads, writes and computes.
    const ALLOWED: &[libc::c_long] = &[
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_brk,
        libc::SYS_mmap,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_sched_yield,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    pub(super) fn deny_system_calls() -> io::Result<()> {
        let filter: BpfProgram = SeccompFilter::new(
            ALLOWED.iter().map(|call| (*call, Vec::new())).collect::<BTreeMap<_, _>>(),
            // A call that is not allowed has no effect, and its caller gets an error.
            SeccompAction::Errno(libc::EPERM.unsigned_abs()),
            SeccompAction::Allow,
            TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?,
        )
        .and_then(TryInto::try_into)
        .map_err(io::Error::other)?;
        seccompiler::apply_filter(&filter).map_err(io::Error::other)
    }

    /// Denies what the kernel can deny by itself; older ones lack a part of it.
    pub(super) fn deny_files_and_network() -> io::Result<()> {
        restricted().map_err(io::Error::other)
    }

    fn restricted() -> Result<(), landlock::RulesetError> {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(ABI::V5))?
            .handle_access(AccessNet::from_all(ABI::V5))?
            .create()?;
        ruleset.restrict_self().map(drop)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        fs::File,
        net::TcpStream,
        process::{Command, exit},
    };

    use super::*;

    /// The name of the test that enters the sandbox, for the process that runs it alone.
    const WITHIN: &str = "script::worker::sandbox::tests::attempts_within_the_sandbox";

    #[test]
    fn process_in_the_sandbox_has_no_files_network_processes_or_memory() {
        let program = std::env::current_exe().unwrap();
        let arguments = [WITHIN, "--exact", "--ignored", "--nocapture", "--test-threads=1"];
        let output = Command::new(program).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        for attempt in ["open", "write", "connect", "start", "memory", "signal"] {
            assert!(said.contains(&format!("{attempt} refused")), "{attempt}: {said}");
        }
        assert_eq!(output.status.code(), Some(0), "{said}");
    }

    #[test]
    #[ignore = "run by another test, in a process of its own"]
    fn attempts_within_the_sandbox() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap();
        assert!(File::open("/proc/self/status").is_ok() && TcpStream::connect(address).is_ok());
        let bounds = Bounds { memory: 1_000_000, own_time_ms: 1000, output: 0, at_once: 0 };
        enter(bounds).unwrap();
        let attempts = [
            ("open", File::open("/proc/self/status").is_err()),
            ("write", File::create("/tmp/dormouse-sandbox").is_err()),
            ("connect", TcpStream::connect(address).is_err()),
            ("start", Command::new("/bin/true").spawn().is_err()),
            ("memory", Vec::<u8>::new().try_reserve_exact(8 << 30).is_err()),
            ("signal", nix::sys::signal::kill(nix::unistd::Pid::parent(), None).is_err()),
        ];
        for (attempt, is_refused) in attempts {
            println!("{attempt} {}", if is_refused { "refused" } else { "succeeded" });
        }
        exit(0);
    }
}
