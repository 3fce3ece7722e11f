//! The program as hosts and servers see it.

mod activate;
mod clients;
mod commands;
mod crossing;
mod eras;
mod fidelity;
mod hostile;
mod http;
mod imports;
mod lifecycle;
mod loading;
mod matrix;
mod messages;
mod real_servers;
mod remote;
mod resources;
mod sharing;
mod support;
mod surface;
