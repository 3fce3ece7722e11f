//! The parts of names that stand for the offers of a snapshot.

use super::{
    Offer,
    name_parts::{NameParts, server_parts, toolset_parts},
};

/// Returns the parts of each offer. The offers of a server stand next to each other.
pub(super) fn name_parts(offers: &[Offer]) -> Vec<NameParts> {
    let servers: Vec<&[Offer]> = offers.chunk_by(|a, b| a.server() == b.server()).collect();
    let names: Vec<&str> = servers.iter().map(|offers| offers[0].server_name()).collect();
    let parts = server_parts(&names);
    let of_server = |(offers, part): (&[Offer], &String)| parts_of_server(offers, part, &parts);
    servers.into_iter().zip(&parts).flat_map(of_server).collect()
}

fn parts_of_server(offers: &[Offer], server: &str, all: &[String]) -> Vec<NameParts> {
    let name = offers[0].server_name();
    let toolsets: Vec<&str> = offers.iter().filter_map(Offer::toolset).collect();
    let mut of_toolsets = toolset_parts(server, name, &toolsets, all).into_iter();
    let parts = offers.iter().map(|offer| {
        let own = offer.toolset().and_then(|_| of_toolsets.next());
        let own = own.unwrap_or_else(|| server.to_owned());
        NameParts { server: server.to_owned(), own, is_bare: false }
    });
    parts.collect()
}
