//! A wall clock that jumps, for one program. Its monotonic clock is not changed.

use std::{fs, path::PathBuf};

use super::super::Proxy;

pub struct FakeClock {
    library: PathBuf,
    /// The file with the difference to the real time.
    setting: tempfile::NamedTempFile,
}

impl FakeClock {
    /// Prepares a clock that shows the real time.
    ///
    /// # Errors
    /// If the Debian package `faketime` is missing.
    pub fn new() -> Result<Self, String> {
        let directories = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        let mut libraries =
            directories.map(|directory| directory.path().join("faketime/libfaketime.so.1"));
        let library = libraries.find(|library| library.exists());
        let library = library.ok_or("the package faketime is not installed")?;
        let clock = Self { library, setting: tempfile::NamedTempFile::new().expect("a file") };
        clock.jump_to(0);
        Ok(clock)
    }

    /// Makes the clock show the real time and so many hours more.
    pub fn jump_to(&self, hours: i32) {
        // The library reads the file at each look at the clock, and must not find it empty.
        let next = self.setting.path().with_extension("next");
        fs::write(&next, format!("{hours:+}h\n")).expect("it is writable");
        fs::rename(next, self.setting.path()).expect("it is writable");
    }

    /// Serves the host in a process that sees this clock.
    pub fn on(&self, proxy: Proxy) -> Proxy {
        let variables = self.variables().into_iter();
        // A daemon does not inherit the clock of a client.
        variables.fold(proxy.environment("DORMOUSE_DAEMON", "0"), |proxy, (name, value)| {
            proxy.environment(name, &value)
        })
    }

    /// Returns the variables that make a process see this clock.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("LD_PRELOAD", self.library.to_string_lossy().into_owned()),
            ("FAKETIME_TIMESTAMP_FILE", self.setting.path().to_string_lossy().into_owned()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("NO_FAKE_STAT", "1".to_owned()),
        ]
    }
}
