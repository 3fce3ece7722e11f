//! The versions of HTTP that connections speak.

use std::{io, time::Duration};

use axum::{
    extract::Request,
    http::{HeaderValue, Version, header::HOST},
};
use rustls::ServerConnection;
use tokio::net::TcpStream;

use super::certificate::HTTP_2;

/// The version of HTTP that a connection speaks from its first byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionVersion {
    Http1,
    Http2,
}

/// The first bytes of a connection of HTTP/2, which begin no request of HTTP/1 (RFC 9113, section
/// 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Time between two looks at a connection that has sent a part of what may be [`PREFACE`].
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

impl ConnectionVersion {
    /// Returns the version that the client of a connection without TLS has chosen, and leaves what
    /// it has sent. Waits for the first bytes; the caller bounds the time.
    ///
    /// # Errors
    /// If the connection breaks.
    pub(super) async fn of_first_bytes(stream: &TcpStream) -> io::Result<Self> {
        let mut shown = [0; PREFACE.len()];
        loop {
            let length = stream.peek(&mut shown).await?;
            if length == PREFACE.len() && shown == PREFACE {
                return Ok(Self::Http2);
            }
            if length == 0 || !PREFACE.starts_with(&shown[..length]) {
                return Ok(Self::Http1);
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Returns the version that both sides of TLS have agreed on.
    pub(super) fn negotiated(connection: &ServerConnection) -> Self {
        if connection.alpn_protocol() == Some(HTTP_2) { Self::Http2 } else { Self::Http1 }
    }
}

/// Adds the `Host` header to a request of HTTP/2, which has the name in its target (RFC 9113,
/// section 8.3.1).
pub(super) fn with_host_header(mut request: Request) -> Request {
    let authority = request.uri().authority().filter(|_| request.version() == Version::HTTP_2);
    let host = authority.and_then(|it| HeaderValue::from_str(it.as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
    request
}
