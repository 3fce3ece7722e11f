//! The catalogs of the servers as immutable values, the snapshot of all of them, and the names of
//! tools.
//!
//! `cache` uses the store, and `catalog_key` looks for the files that a command names; everything
//! else is pure. This module does not know how a catalog is fetched, nor in which form hosts see
//! it.

mod cache;
mod catalog_key;
mod definition_change;
mod exposed;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod hidden;
mod inventory;
mod item;
mod listed_offers;
mod merged_lists;
mod name_parts;
mod offer;
mod offer_choice;
mod offer_id;
mod offer_names;
mod pins;
mod record;
mod search;
mod server_catalog;
mod server_id;
mod snapshot;
mod tool_directory;
pub(crate) mod tool_names;
mod tool_ref;
mod tool_search;
mod uri_matcher;

pub use cache::Cache;
pub(crate) use cache::CacheError;
pub(crate) use catalog_key::CatalogKey;
pub(crate) use definition_change::DefinitionChange;
pub(crate) use exposed::{ExposedCatalog, WithheldReason};
pub(crate) use hidden::{hidden_character, hidden_characters};
pub(crate) use inventory::{Inventory, ToolCounts, ToolState, ToolSummary, estimated_tokens};
pub use item::{Item, Tool};
pub(crate) use item::{Prompt, Resource, Template};
pub(crate) use listed_offers::{ListedOffer, ListedTools};
pub(crate) use merged_lists::{Collision, ExposedPrompt, ResourceRoute};
pub(crate) use offer::{LoadOrigin, Offer, OfferVisibility, Presence};
pub(crate) use offer_choice::OfferChoice;
pub(crate) use offer_id::OfferId;
pub(crate) use pins::{Digests, Pins, watched_part};
pub(crate) use record::{Record, RecordError, StoredServer};
pub(crate) use search::{IndexedOffer, IndexedTools, SearchIndex, ServerDocuments};
pub use search::{SearchHit, SearchTarget};
pub use server_catalog::ServerCatalog;
pub(crate) use server_catalog::{Changes, Discovery, ProtocolSupport, read_items};
pub use server_id::ServerId;
pub use snapshot::Snapshot;
pub(crate) use tool_directory::ToolResolution;
pub use tool_ref::ToolRef;
