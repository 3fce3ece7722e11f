//! `dormouse ui`: a page in the browser that shows the servers and their calls.
//!
//! The command serves the page on a loopback address for as long as it runs, and reaches all
//! processes that serve the config by their control sockets. So no other process listens for it.

mod assets;
mod call_feed;
mod command;
mod config_view;
mod definition_diff;
mod entrance;
mod overview;
mod page;
mod page_logins;
mod routes;
mod sign_in;

pub(super) use command::{router_over_http, run};
