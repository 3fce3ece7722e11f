//! Keychains: one that works until it is killed, and session buses with faults.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
};
use tokio_util::task::AbortOnDropHandle;

/// A session bus with a fault.
pub struct FaultyBus {
    directory: tempfile::TempDir,
    _serving: AbortOnDropHandle<()>,
}

#[derive(Clone, Copy)]
pub enum BusFault {
    /// Every connection is refused.
    Refuses,
    /// Every connection is accepted, and gets no answer.
    Hangs,
    /// Every connection is closed after its authentication.
    Closes,
}

impl FaultyBus {
    pub fn with(fault: BusFault) -> Self {
        let directory = tempfile::tempdir().expect("the temporary directory is writable");
        let listener = UnixListener::bind(directory.path().join("bus")).expect("a socket");
        let serving = tokio::spawn(async move {
            if matches!(fault, BusFault::Refuses) {
                // A socket without a listener refuses connections.
                return drop(listener);
            }
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, fault));
            }
        });
        Self { directory, _serving: AbortOnDropHandle::new(serving) }
    }

    pub fn address(&self) -> String {
        address(self.directory.path())
    }
}

async fn answer(mut stream: UnixStream, fault: BusFault) {
    if matches!(fault, BusFault::Hangs) {
        return std::future::pending().await;
    }
    let mut asked = [0; 1024];
    // The client may close first.
    let _ = stream.read(&mut asked).await;
    let _ = stream.write_all(b"OK 0123456789abcdef0123456789abcdef\r\n").await;
    let _ = stream.read(&mut asked).await;
}

fn address(directory: &Path) -> String {
    format!("unix:path={}", directory.join("bus").display())
}

/// GNOME's keychain on a session bus of its own.
pub struct RealKeychain {
    home: tempfile::TempDir,
    bus: Child,
    daemon: Option<Child>,
}

const BUS_CONFIG: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>ADDRESS</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

impl RealKeychain {
    /// Starts a bus, which starts nothing by itself, and an unlocked keychain.
    ///
    /// # Errors
    /// If the Debian packages `dbus` or `gnome-keyring` are missing.
    pub fn start() -> Result<Self, String> {
        let home = tempfile::tempdir().expect("the temporary directory is writable");
        let config = home.path().join("bus.conf");
        fs::write(&config, BUS_CONFIG.replace("ADDRESS", &address(home.path()))).expect("writable");
        let mut bus = Command::new("dbus-daemon");
        bus.arg(format!("--config-file={}", config.display()));
        bus.args(["--nofork", "--nopidfile", "--print-address"]).stdout(Stdio::piped());
        let mut bus =
            bus.spawn().map_err(|error| format!("dbus-daemon is not installed: {error}"))?;
        let mut line = String::new();
        BufReader::new(bus.stdout.take().expect("a pipe"))
            .read_line(&mut line)
            .expect("its address");
        let mut keychain = Self { home, bus, daemon: None };
        keychain.restart()?;
        Ok(keychain)
    }

    /// Starts the keychain again, with its entries.
    ///
    /// # Errors
    /// If it is not installed.
    pub fn restart(&mut self) -> Result<(), String> {
        let mut daemon = Command::new("gnome-keyring-daemon");
        daemon.args(["--foreground", "--unlock", "--components=secrets"]);
        daemon.env("DBUS_SESSION_BUS_ADDRESS", self.address());
        for variable in ["HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"] {
            daemon.env(variable, self.home.path());
        }
        daemon.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let daemon = daemon.spawn();
        let mut daemon =
            daemon.map_err(|error| format!("gnome-keyring-daemon is not installed: {error}"))?;
        daemon.stdin.take().expect("a pipe").write_all(b"password").expect("it reads");
        self.daemon = Some(daemon);
        self.wait_until_it_answers();
        Ok(())
    }

    fn wait_until_it_answers(&self) {
        let service = "--dest=org.freedesktop.secrets";
        let ping = "org.freedesktop.DBus.Peer.Ping";
        for _ in 0..500 {
            let mut command = Command::new("dbus-send");
            command.args(["--session", "--print-reply", service, "/org/freedesktop/secrets", ping]);
            command.env("DBUS_SESSION_BUS_ADDRESS", self.address());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            if command.status().is_ok_and(|status| status.success()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the keychain does not answer");
    }

    pub fn address(&self) -> String {
        address(self.home.path())
    }

    pub fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().expect("it runs");
            daemon.wait().expect("it ran");
        }
    }
}

impl Drop for RealKeychain {
    fn drop(&mut self) {
        self.kill();
        let _ = self.bus.kill();
        let _ = self.bus.wait();
    }
}
