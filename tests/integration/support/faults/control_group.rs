//! Control groups, which limit the memory and the number of processes, in either version.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

const ROOT: &str = "/sys/fs/cgroup";

/// A control group until this is dropped. All its processes must have ended by then.
pub struct ControlGroup {
    directory: PathBuf,
    is_unified: bool,
}

impl ControlGroup {
    /// Makes a group with this controller below that of the test process, or in the root of the
    /// unified hierarchy.
    ///
    /// # Errors
    /// The reason that this machine lets the test make none.
    pub fn with(controller: &str) -> Result<Self, String> {
        let offered = fs::read_to_string(Path::new(ROOT).join("cgroup.controllers"));
        let is_unified =
            offered.is_ok_and(|offered| offered.split_whitespace().any(|one| one == controller));
        let parent = if is_unified { PathBuf::from(ROOT) } else { own_group(controller)? };
        let name = format!("dormouse-{controller}-{}", std::process::id());
        let directory = (0..).map(|number| parent.join(format!("{name}-{number}")));
        let directory = directory.into_iter().find(|path| !path.exists()).expect("a free name");
        fs::create_dir(&directory)
            .map_err(|error| format!("control groups need root: {}: {error}", parent.display()))?;
        Ok(Self { directory, is_unified })
    }

    fn write(&self, file: &str, value: &str) {
        let file = self.directory.join(file);
        fs::write(&file, value).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    /// Returns a command of a shell that moves itself into the group.
    pub fn joining(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.directory.display())
    }

    /// Moves a process into the group, with all its threads.
    pub fn add(&self, process: u32) {
        self.write("cgroup.procs", &process.to_string());
    }

    pub fn limit_memory(&self, bytes: u64) {
        let file = if self.is_unified { "memory.max" } else { "memory.limit_in_bytes" };
        self.write(file, &bytes.to_string());
    }

    /// Limits the number of processes and threads; `None` for no limit.
    pub fn limit_processes(&self, limit: Option<u32>) {
        self.write("pids.max", &limit.map_or("max".to_owned(), |limit| limit.to_string()));
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // The kernel may take a moment to forget an ended process.
        for _ in 0..100 {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns the directory of the group that the test process is in, for a controller of version 1.
fn own_group(controller: &str) -> Result<PathBuf, String> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|one| one == controller).then(|| path.to_owned())
    });
    let own = own.ok_or_else(|| format!("there is no control group for {controller}"))?;
    Ok(Path::new(ROOT).join(controller).join(own.trim_start_matches('/')))
}
