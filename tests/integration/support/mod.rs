//! What the tests are written with: servers behind dormouse, dormouse itself, and hosts before it.

mod host;
mod processes;
mod proxy;
mod server;

pub use host::{Host, Modern, text_of};
pub use processes::{alive, descendants, eventually, peak_memory};
pub use proxy::{Proxy, dormouse};
pub use server::Server;
