//! The catalogs of the servers as immutable values, the snapshot of all of them, and the names of
//! tools.
//!
//! Everything except `cache` and `cleanup` is pure. This module does not know how a catalog is
//! fetched, nor in which form hosts see it.

mod cache;
mod cleanup;
mod definition_change;
mod exposed;
mod hidden;
mod inventory;
mod item;
mod pins;
mod record;
mod resolve;
mod search;
mod server_catalog;
mod snapshot;
pub mod tool_names;
mod uri_matcher;

pub use cache::{Cache, CacheError, CatalogKey};
pub use definition_change::DefinitionChange;
pub use exposed::{Exposed, Naming, WithheldReason};
pub use hidden::{hidden_character, hidden_characters};
pub use inventory::{Inventory, Stock, ToolState};
pub use item::{Item, Prompt, Resource, Template, Tool};
pub use pins::{Digests, Pins, watched_part};
pub use record::{Record, RecordError, StoredServer};
pub use resolve::{Collision, ExposedPrompt, Resolved, ResourceRoute, ToolRef};
pub use search::{SearchHit, SearchIndex, SearchTarget, ServerDocuments};
pub use server_catalog::{Changes, Discovery, ProtocolSupport, ServerCatalog, read_items};
pub use snapshot::{Origin, Presence, ServerId, ServerView, ServerVisibility, Snapshot};

use crate::config::hex;
