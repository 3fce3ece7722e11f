//! The check of addresses at which users log in.

use url::Url;

use super::{LoginError, guarded_client::GuardedClient};

/// Limit against hostile addresses; real ones are far shorter.
const MAX_URL_BYTES: usize = 16 * 1024;

/// Parses an address that the user's browser may open: a web page, and nothing that a shell or
/// another program would interpret (MCP, Security Best Practices, authorization URLs).
pub(super) fn checked_login_url(address: &str, http: &GuardedClient) -> Result<Url, LoginError> {
    let bad = |why: String| LoginError::BadAddress(why);
    let url = Url::parse(address).map_err(|_| bad("not a URL".to_owned()))?;
    if address.len() > MAX_URL_BYTES {
        return Err(bad("too long".to_owned()));
    }
    http.check(&url).map_err(|error| bad(error.to_string()))?;
    Ok(url)
}
