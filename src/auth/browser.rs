//! The browser of the user at this machine.

use std::sync::Arc;

use url::Url;

use crate::base::run_blocking;

/// The way to a user's browser. Clones are cheap.
#[derive(Clone)]
pub(crate) enum Browser {
    /// On the screen of this process.
    Here,
    /// On the screen of another process of the user, which opens it.
    There { can_open: bool, open: Arc<dyn Fn(&Url) + Send + Sync> },
}

impl Browser {
    /// Returns whether opening a browser is useful.
    pub(crate) fn can_open(&self) -> bool {
        match self {
            Self::Here => {
                has_screen(|name| std::env::var_os(name).is_some_and(|it| !it.is_empty()))
            }
            Self::There { can_open, .. } => *can_open,
        }
    }

    /// Opens a web page's address that was checked before. Returns whether a browser was started,
    /// as far as this process can tell.
    pub(crate) async fn open(&self, address: &Url) -> bool {
        if !self.can_open() {
            return false;
        }
        match self {
            Self::Here => {
                let address = address.to_string();
                // Opening waits for the program that starts the browser.
                run_blocking(move || open_here(&address)).await.unwrap_or(false)
            }
            Self::There { open, .. } => {
                open(address);
                true
            }
        }
    }
}

/// Opens an address on this thread. Returns whether a browser was started.
pub(crate) fn open_here(address: &str) -> bool {
    webbrowser::open(address).is_ok()
}

/// Returns whether a process with these variables can show a browser to its user: over SSH or
/// without a display, the user would not see it. `is_set`: whether a variable has a value.
pub(crate) fn has_screen(is_set: impl Fn(&str) -> bool) -> bool {
    let needs_display = cfg!(all(unix, not(target_os = "macos")));
    let displays = ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"];
    let has_display = !needs_display || displays.into_iter().any(&is_set);
    is_set("BROWSER") || has_display && !is_set("SSH_CONNECTION")
}
