//! The servers of an index.

use std::sync::{Arc, OnceLock};

use super::ServerDocuments;
use crate::catalog::Tool;

/// A server as the index reads it.
pub(crate) struct IndexedServer<'a> {
    pub name: &'a str,
    pub description: &'a str,
    pub tools: IndexedTools<'a>,
}

/// The tools of a server.
pub(crate) enum IndexedTools<'a> {
    /// The known tools, with the place for their documents.
    Known {
        tools: &'a [Tool],
        documents: &'a OnceLock<Arc<ServerDocuments>>,
        /// The positions of the tools that can be found here. Another offer stands for the others.
        found: &'a [usize],
    },
    /// The tools are not known before the server is loaded.
    Unknown,
    /// The server offers nothing.
    None,
}
