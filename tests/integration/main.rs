//! The program as hosts and servers see it.

mod activate;
mod catalogs;
mod clients;
mod commands;
mod control;
mod crossing;
mod dialects;
mod editing;
mod eras;
mod fidelity;
mod groups;
mod hostile;
mod http;
mod imports;
mod lifecycle;
mod loading;
mod matrix;
mod messages;
mod real_servers;
mod reload;
mod remote;
mod resources;
mod sharing;
mod support;
mod surface;
mod tooling;
