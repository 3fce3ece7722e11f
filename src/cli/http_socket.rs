//! The socket on which hosts connect over HTTP: one that systemd has opened, or an address of the
//! command line or the config.

use std::net::{Ipv4Addr, SocketAddr, TcpListener as OpenSocket};

use anyhow::Context as _;

use super::UsageError;
use crate::downstream::http::ListeningSocket;

/// The place where hosts connect.
pub(super) enum HttpSocket {
    /// A socket that systemd has opened and keeps open while dormouse is restarted.
    Inherited(OpenSocket),
    /// Addresses to try; dormouse listens on the first that can be bound.
    Addresses(Vec<SocketAddr>),
}

impl HttpSocket {
    /// Returns the socket that systemd has passed to this process (`sd_listen_fds`(3)), or else the
    /// one of an address: `HOST:PORT`, or `:PORT` or `PORT` for loopback. `None` without either.
    /// Call it while the process has one thread, since it takes variables from the environment.
    ///
    /// # Errors
    /// If systemd has passed something else, or the address is none.
    pub(super) fn find(address: Option<&str>) -> anyhow::Result<Option<Self>> {
        let inherited = listenfd::ListenFd::from_env().take_tcp_listener(0);
        let inherited = inherited.context("cannot use the socket that systemd has passed")?;
        if let Some(socket) = inherited {
            return Ok(Some(Self::Inherited(socket)));
        }
        Ok(address.map(addresses).transpose()?.map(Self::Addresses))
    }

    /// Opens the socket.
    ///
    /// # Errors
    /// If no address can be used.
    pub(super) async fn listen(self) -> anyhow::Result<ListeningSocket> {
        match self {
            Self::Inherited(socket) => Ok(ListeningSocket::inherited(socket)?),
            Self::Addresses(addresses) => first_of(&addresses).await,
        }
    }
}

async fn first_of(addresses: &[SocketAddr]) -> anyhow::Result<ListeningSocket> {
    let mut problem = None;
    for address in addresses {
        match ListeningSocket::bind(*address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => problem = Some(error),
        }
    }
    let problem = problem.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into());
    Err(problem).with_context(|| format!("cannot listen on {addresses:?}"))
}

fn addresses(text: &str) -> anyhow::Result<Vec<SocketAddr>> {
    let loopback = |port: &str| port.parse().ok().map(|port| (Ipv4Addr::LOCALHOST, port).into());
    if let Some(address) = loopback(text.strip_prefix(':').unwrap_or(text)) {
        return Ok(vec![address]);
    }
    let found = std::net::ToSocketAddrs::to_socket_addrs(text).map_err(|error| {
        UsageError(format!("cannot listen on {text:?}: {error}; write HOST:PORT"))
    })?;
    Ok(found.collect())
}
