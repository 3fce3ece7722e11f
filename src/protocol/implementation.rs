//! The identity of dormouse and of its hosts towards servers.

use serde_json::{Value, json};

use super::{ClientIdentity, MODERN_VERSION, Meta};
use crate::wire::Raw;

/// Returns the name and version of dormouse, as `serverInfo` for hosts and as `clientInfo` for
/// servers.
pub(crate) fn implementation() -> Value {
    json!({"name": "dormouse", "title": "dormouse", "version": env!("CARGO_PKG_VERSION")})
}

/// Returns the `_meta` members that every modern request of dormouse carries.
pub(crate) fn client_meta(client: &ClientIdentity) -> [(&'static str, Raw); 3] {
    let info = client.info.clone().unwrap_or_else(|| Raw::encode(&implementation()));
    [
        (Meta::PROTOCOL_VERSION, Raw::encode(MODERN_VERSION.as_str())),
        (Meta::CLIENT_INFO, info),
        (Meta::CLIENT_CAPABILITIES, client.capabilities.clone()),
    ]
}
