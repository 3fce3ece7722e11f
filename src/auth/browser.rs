//! Opens the browser of whoever sits at this machine.

use url::Url;

/// Whether there is any sense in opening one: over SSH it would open on nobody's screen.
pub fn can_open_browser() -> bool {
    let is_remote = std::env::var_os("SSH_CONNECTION").is_some();
    let is_told = std::env::var_os("BROWSER").is_some_and(|browser| !browser.is_empty());
    !is_remote || is_told
}

/// Opens an address that has been judged to be a web page's. Whether anything has opened.
pub async fn open_in_browser(address: &Url) -> bool {
    if !can_open_browser() {
        return false;
    }
    let address = address.to_string();
    // It waits for what starts the browser.
    let opening = tokio::task::spawn_blocking(move || webbrowser::open(&address).is_ok());
    opening.await.unwrap_or(false)
}
