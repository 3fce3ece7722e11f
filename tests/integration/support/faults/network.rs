//! A network that loses packets and delays them.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::Instant,
};
use tokio_util::task::AbortOnDropHandle;

use super::isolation::{output, run};

/// Loses packets of the network namespace at random.
pub struct PacketLoss;

impl PacketLoss {
    /// Loses so many packets of a hundred.
    ///
    /// # Errors
    /// The reason that the system loses none.
    pub fn of(percent: u32) -> Result<Self, String> {
        let rules = format!(
            "add table inet loss; \
             add chain inet loss input {{ type filter hook input priority 0; }}; \
             add rule inet loss input numgen random mod 100 < {percent} counter drop"
        );
        run("nft", &[&rules]).map(|()| Self)
    }

    /// Returns how many packets were lost so far.
    #[expect(clippy::unused_self, reason = "there is a counter only while the rules are in force")]
    pub fn lost(&self) -> u32 {
        let rules = output("nft", &["list", "table", "inet", "loss"]).expect("it was made");
        let count = rules.split_once("packets ").and_then(|(_, rest)| rest.split_once(' '));
        count.and_then(|(count, _)| count.parse().ok()).expect("a counter")
    }
}

/// A way to an address on which everything needs a while, in both directions.
pub struct SlowLink {
    address: SocketAddr,
    _relaying: AbortOnDropHandle<()>,
}

impl SlowLink {
    pub async fn to(url: &str, delay: Duration) -> Self {
        let url = reqwest::Url::parse(url).expect("a URL");
        let target = url.socket_addrs(|| None).expect("an address")[0];
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let relaying = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let far = TcpStream::connect(target).await.expect("it listens");
                    let ((near_in, near_out), (far_in, far_out)) =
                        (near.into_split(), far.into_split());
                    tokio::join!(pass(near_in, far_out, delay), pass(far_in, near_out, delay));
                });
            }
        });
        Self { address, _relaying: AbortOnDropHandle::new(relaying) }
    }

    /// Returns the URL of a path at the other end.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (give, mut taken) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async move {
        let mut buffer = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let _ = give.send((Instant::now() + delay, buffer[..length].to_vec()));
        }
    };
    let write = async move {
        while let Some((due, bytes)) = taken.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(read, write);
}
