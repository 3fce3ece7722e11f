//! Opens the browser of whoever sits at this machine.

use crate::base::run_blocking;
use url::Url;

/// Whether there is any sense in opening one: over SSH, or without a screen, nobody would see it.
pub fn can_open_browser() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let needs_display = cfg!(all(unix, not(target_os = "macos")));
    let has_screen =
        !needs_display || ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"].into_iter().any(is_set);
    is_set("BROWSER") || has_screen && !is_set("SSH_CONNECTION")
}

/// Opens an address that has been judged to be a web page's. Whether anything has opened.
pub async fn open_in_browser(address: &Url) -> bool {
    if !can_open_browser() {
        return false;
    }
    let address = address.to_string();
    // It waits for what starts the browser.
    run_blocking(move || webbrowser::open(&address).is_ok()).await.unwrap_or(false)
}
