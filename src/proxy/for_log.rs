//! Text of servers and hosts in the log.

use std::sync::Arc;

use crate::{
    base::shortened,
    config::{Mask, ServerConfig},
};

/// Maximum length of a text, in characters.
const MAX_CHARS: usize = 500;

/// Returns a text for the log: bounded, and without the secrets of these servers.
pub(super) fn for_log(text: &str, servers: &[&Arc<ServerConfig>]) -> String {
    let masked =
        servers.iter().fold(text.to_owned(), |text, server| Mask::of(server).masked(&text));
    shortened(&masked, MAX_CHARS)
}
