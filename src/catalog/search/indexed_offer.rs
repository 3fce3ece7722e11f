//! The offers of an index.

use std::sync::{Arc, OnceLock};

use super::ServerDocuments;
use crate::catalog::Tool;

/// An offer as the index reads it.
pub(crate) struct IndexedOffer<'a> {
    /// The name by which it is loaded.
    pub name: &'a str,
    /// The name of its server, with which its tools are shown.
    pub server_name: &'a str,
    pub description: &'a str,
    pub tools: IndexedTools<'a>,
}

/// The tools of an offer.
pub(crate) enum IndexedTools<'a> {
    /// The known tools, with the place for their documents.
    Known {
        tools: &'a [Tool],
        documents: &'a OnceLock<Arc<ServerDocuments>>,
        /// The positions of the tools that can be found here. Another offer stands for the others.
        found: &'a [usize],
    },
    /// The tools are not known before the offer is loaded.
    Unknown,
    /// The offer has nothing.
    None,
}
