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
pub mod tool_names;
mod tool_ref;
mod uri_matcher;

pub use cache::{Cache, CacheError, CatalogKey};
pub use definition_change::DefinitionChange;
pub use exposed::{Exposed, Naming, WithheldReason};
pub use hidden::{hidden_character, hidden_characters};
pub use inventory::{Inventory, Stock, ToolState};
pub use item::{Item, Prompt, Resource, Template, Tool};
pub use merged_lists::{Collision, ExposedPrompt, ResourceRoute};
pub use pins::{Digests, Pins, watched_part};
pub use record::{Record, RecordError, StoredServer};
pub use search::{
    IndexedServer, IndexedTools, SearchHit, SearchIndex, SearchTarget, ServerDocuments,
};
pub use server_catalog::{Changes, Discovery, ProtocolSupport, ServerCatalog, read_items};
pub use server_view::{Origin, Presence, ServerId, ServerView, ServerVisibility};
pub use snapshot::Snapshot;
pub use tool_directory::{Resolved, ToolDirectory};
pub use tool_ref::ToolRef;
