//! Processes that have used up their file descriptors.

use std::fs;

use super::isolation::run;

/// A running process that can open no descriptor until this is dropped.
pub struct DescriptorShortage {
    process: u32,
    limit_before: String,
}

impl DescriptorShortage {
    /// Limits a process to its three standard descriptors, which are all in use. It keeps those
    /// that are open.
    ///
    /// # Errors
    /// The reason that the limit cannot be set.
    pub fn of(process: u32) -> Result<Self, String> {
        let limits = fs::read_to_string(format!("/proc/{process}/limits")).expect("it runs");
        let line = limits.lines().find(|line| line.starts_with("Max open files"));
        let limit = line.and_then(|line| line.split_whitespace().nth(3)).expect("a limit");
        let shortage = Self { process, limit_before: limit.to_owned() };
        shortage.set_limit("3")?;
        Ok(shortage)
    }

    fn set_limit(&self, limit: &str) -> Result<(), String> {
        // The colon leaves the hard limit as it is.
        let limit = format!("--nofile={limit}:");
        run("prlimit", &["--pid", &self.process.to_string(), &limit])
    }
}

impl Drop for DescriptorShortage {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.set_limit(&self.limit_before);
    }
}
