//! Opens the browser of the user at this machine.

use crate::base::run_blocking;
use url::Url;

/// Returns whether opening a browser is useful: over SSH or without a display, the user would not
/// see it.
pub(crate) fn can_open_browser() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let needs_display = cfg!(all(unix, not(target_os = "macos")));
    let has_screen =
        !needs_display || ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"].into_iter().any(is_set);
    is_set("BROWSER") || has_screen && !is_set("SSH_CONNECTION")
}

/// Opens a web page's address that was checked before. Returns whether a browser was started.
pub(crate) async fn open_in_browser(address: &Url) -> bool {
    if !can_open_browser() {
        return false;
    }
    let address = address.to_string();
    // Opening waits for the program that starts the browser.
    run_blocking(move || webbrowser::open(&address).is_ok()).await.unwrap_or(false)
}
