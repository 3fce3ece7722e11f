//! The builder of the HTTP clients for MCP servers and for authorization servers.

use reqwest::{Client, ClientBuilder};

/// Returns a builder after installing a TLS provider, without which building a client fails.
pub(crate) fn http_client_builder() -> ClientBuilder {
    // Fails only if a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
}
