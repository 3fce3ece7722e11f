//! The socket on which hosts connect, and its end, at which no connection is lost.

use std::{io, net::SocketAddr, time::Duration};

#[cfg(target_os = "linux")]
use socket2::{SockFilter, SockRef};
use tokio::net::{TcpListener, TcpStream};

/// Maximum number of connections in the queue of the socket that are served when it is closed.
const MAX_LAST_CONNECTIONS: usize = 1024;
/// Time for the handshakes that have begun when new ones are turned away.
const HANDSHAKE_TIME: Duration = Duration::from_millis(20);

/// A socket that accepts connections.
pub(crate) struct ListeningSocket {
    listener: TcpListener,
    /// True if another process keeps the socket open when this one ends.
    is_inherited: bool,
}

impl ListeningSocket {
    /// Listens on an address.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub(crate) async fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await?, is_inherited: false })
    }

    /// Uses a socket that another process has opened and keeps open.
    ///
    /// # Errors
    /// When the socket cannot be used.
    pub(crate) fn inherited(socket: std::net::TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { listener: TcpListener::from_std(socket)?, is_inherited: true })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub(super) async fn accept(&self) -> io::Result<TcpStream> {
        Ok(self.listener.accept().await?.0)
    }

    /// Closes the socket, and returns the connections that the system has accepted already: their
    /// hosts would not know whether a request was read. From now on, hosts are refused, and a
    /// balancer asks another replica.
    pub(super) async fn close(self) -> Vec<TcpStream> {
        if !self.is_inherited && turn_away(&self.listener).is_ok() {
            // A connection that was accepted after the last look at the queue would be reset.
            tokio::time::sleep(HANDSHAKE_TIME).await;
        }
        // The runtime only knows of those that it was told of.
        let Ok(listener) = self.listener.into_std() else { return Vec::new() };
        let waiting = std::iter::from_fn(|| listener.accept().ok()).take(MAX_LAST_CONNECTIONS);
        let waiting: Vec<_> = waiting.map(|(stream, _)| stream).collect();
        drop(listener);
        let adopted = waiting.into_iter().map(|stream| {
            stream.set_nonblocking(true)?;
            TcpStream::from_std(stream)
        });
        adopted.filter_map(Result::ok).collect()
    }
}

/// Has the system ignore new connections. Their hosts try again within a second, and are refused
/// then, while a connection in the queue of a socket that is closed is reset.
#[cfg(target_os = "linux")]
fn turn_away(listener: &TcpListener) -> io::Result<()> {
    const FLAGS_OFFSET: u32 = 13;
    const SYN: u32 = 2;
    let instruction = |code: u32, if_set, if_not, value| {
        let code = u16::try_from(code).expect("codes have 16 bits");
        SockFilter::new(code, if_set, if_not, value)
    };
    // A packet begins with the header of TCP. Without SYN, all of it is let through.
    let program = [
        instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, FLAGS_OFFSET),
        instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, SYN),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
    ];
    SockRef::from(listener).attach_filter(&program)
}

#[cfg(not(target_os = "linux"))]
fn turn_away(_: &TcpListener) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
