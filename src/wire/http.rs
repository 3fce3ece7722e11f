//! What the HTTP clients for servers, and for those who give tokens for them, are made from.

use reqwest::{Client, ClientBuilder};

/// A builder whose clients can be made: none is without a TLS provider.
pub fn http_client_builder() -> ClientBuilder {
    // An error means that one has been installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
}
