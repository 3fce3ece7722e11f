//! A full run that needs only this program: embedded servers, and a client that shows what an agent
//! sees.

mod client;
mod definitions;
mod embedded_server;
mod scratch;
mod server_table;
mod tour;

pub(crate) use embedded_server::{SERVER_ARGUMENT, serve};
pub(crate) use tour::{DemoStep, tour};
