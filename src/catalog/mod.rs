//! The catalogs of the servers as immutable values, the snapshot of all of them, and the names of
//! tools.
//!
//! Everything except `cache` and `cleanup` is pure. This module does not know how a catalog is
//! fetched, nor in which form hosts see it.

use crate::base::hex;
mod cache;
mod cleanup;
mod definition_change;
mod exposed;
mod hidden;
mod inventory;
mod item;
mod merged_lists;
mod pins;
mod record;
mod search;
mod server_catalog;
mod server_view;
mod snapshot;
mod tool_directory;
pub(crate) mod tool_names;
mod tool_ref;
mod uri_matcher;

pub use cache::Cache;
pub(crate) use cache::CatalogKey;
pub(crate) use definition_change::DefinitionChange;
pub use exposed::Exposed;
pub(crate) use exposed::{Naming, WithheldReason};
pub(crate) use hidden::{hidden_character, hidden_characters};
pub(crate) use inventory::{Inventory, Stock, ToolState};
pub use item::{Item, Tool};
pub(crate) use item::{Prompt, Resource, Template};
pub(crate) use merged_lists::{Collision, ResourceRoute};
pub(crate) use pins::{Digests, Pins, watched_part};
pub(crate) use record::{Record, RecordError, StoredServer};
pub(crate) use search::{IndexedServer, IndexedTools, SearchIndex, ServerDocuments};
pub use search::{SearchHit, SearchTarget};
pub use server_catalog::ServerCatalog;
pub(crate) use server_catalog::{Changes, Discovery, ProtocolSupport, read_items};
pub use server_view::ServerId;
pub(crate) use server_view::{Origin, Presence, ServerView, ServerVisibility};
pub use snapshot::Snapshot;
pub(crate) use tool_directory::Resolved;
pub use tool_ref::ToolRef;
