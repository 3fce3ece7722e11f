//! Opens the browser of whoever sits at this machine.

use url::Url;

/// Opens an address that has been judged to be a web page's. Whether anything has opened.
pub async fn open_in_browser(address: &Url) -> bool {
    let is_remote = std::env::var_os("SSH_CONNECTION").is_some();
    let is_told = std::env::var_os("BROWSER").is_some_and(|browser| !browser.is_empty());
    if is_remote && !is_told {
        // A browser there would open on nobody's screen.
        return false;
    }
    let address = address.to_string();
    // It waits for what starts the browser.
    let opening = tokio::task::spawn_blocking(move || webbrowser::open(&address).is_ok());
    opening.await.unwrap_or(false)
}
