//! What the servers have, as immutable values: catalogs, the snapshot of all of them, and names.
//!
//! Pure. It must not know how a catalog is fetched, nor in which form it is shown.

mod item;
pub mod names;
mod resolve;
mod search;
mod server;
mod snapshot;
mod template;

pub use item::{Item, Prompt, Resource, Template, Tool};
pub use resolve::{ExposedPrompt, Resolved, ResourceRoute, ToolRef};
pub use search::{Match, search};
pub use server::{Changes, ServerCatalog, read_items};
pub use snapshot::{Origin, Presence, ServerView, Shown, Snapshot};
