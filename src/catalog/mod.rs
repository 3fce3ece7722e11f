//! What the servers have, as immutable values: catalogs, the snapshot of all of them, and names.
//!
//! Pure but for `cache`. It must not know how a catalog is fetched, nor in which form it is shown.

mod cache;
mod change;
mod cleanup;
mod exposed;
mod hidden;
mod inventory;
mod item;
pub mod names;
mod pins;
mod record;
mod resolve;
mod search;
mod server;
mod snapshot;
mod template;

pub use cache::{Cache, CacheError, CatalogKey};
pub use change::Change;
pub use exposed::{Exposed, Naming, Withheld};
pub use hidden::{hidden_character, hidden_characters};
pub use inventory::{Inventory, Stock, ToolState};
pub use item::{Item, Prompt, Resource, Template, Tool};
pub use pins::{Digests, Pins, watched_part};
pub use record::{Kept, Record, RecordError};
pub use resolve::{Collision, ExposedPrompt, Resolved, ResourceRoute, ToolRef};
pub use search::{Documents, Found, Index, Match};
pub use server::{Changes, Discovery, ServerCatalog, Spoken, read_items};
pub use snapshot::{Origin, Presence, ServerId, ServerView, Shown, Snapshot};

use crate::config::hex;
