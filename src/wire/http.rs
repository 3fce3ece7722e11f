//! The builder of the HTTP clients for MCP servers and for authorization servers.

use reqwest::{
    Client, ClientBuilder,
    dns::{Addrs, Name, Resolve, Resolving},
};

use crate::base::resolve_name;

/// Returns a builder after installing a TLS provider, without which building a client fails.
pub(crate) fn http_client_builder() -> ClientBuilder {
    // Fails only if a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().dns_resolver(SystemResolver)
}

/// Resolves names as the system does. The resolver of `reqwest` panics, and its request then hangs,
/// if the system cannot start a thread.
struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses = resolve_name(name.as_str().to_owned()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
