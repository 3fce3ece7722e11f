//! A channel of a shared store, on which processes send each other messages. Some may be lost.

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use redis::{Client, RedisResult, aio::PubSub};
use tokio::sync::mpsc;

use super::store_health::StoreHealth;

/// Interval of the checks whether an idle connection still works.
const CHECK_INTERVAL: Duration =
    if cfg!(test) { Duration::from_millis(5) } else { Duration::from_secs(5) };
/// Delay before another attempt to connect.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum time to connect, and for one answer.
const STEP_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum length of a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 1024;
/// Maximum number of messages that wait.
pub(super) const MAX_WAITING: usize = 1000;

/// Listens to one channel.
pub(super) struct Listener {
    pub(super) client: Client,
    pub(super) channel: String,
    pub(super) health: Arc<StoreHealth>,
    pub(super) heard: mpsc::Sender<String>,
}

impl Listener {
    /// Listens until nobody hears it, and connects again after a failure.
    pub(super) async fn run(self) {
        let listening = async {
            let mut has_failed = false;
            loop {
                if self.health.outage().is_none()
                    && let Err(error) = self.listen().await
                    && self.health.outage().is_none()
                    && !std::mem::replace(&mut has_failed, true)
                {
                    let channel = &self.channel;
                    tracing::warn!(channel, %error, "cannot listen to other replicas");
                }
                tokio::time::sleep(RETRY_DELAY).await;
            }
        };
        tokio::select! {
            () = listening => {}
            () = self.heard.closed() => {}
        }
    }

    /// Listens on one connection until it ends.
    async fn listen(&self) -> RedisResult<()> {
        let mut connection: PubSub = within(self.client.get_async_pubsub()).await?;
        within(connection.subscribe(&self.channel)).await?;
        let (mut commands, mut messages) = connection.split();
        loop {
            match tokio::time::timeout(CHECK_INTERVAL, messages.next()).await {
                Ok(Some(message)) => self.pass_on(message.get_payload_bytes()),
                Ok(None) => return Ok(()),
                // The answer is an array while a connection listens.
                Err(_) => within(commands.ping::<redis::Value>()).await.map(drop)?,
            }
        }
    }

    fn pass_on(&self, message: &[u8]) {
        let message = std::str::from_utf8(message).ok();
        if let Some(message) = message.filter(|message| message.len() <= MAX_MESSAGE_BYTES) {
            // A message that does not fit into the queue is lost.
            let _ = self.heard.try_send(message.to_owned());
        }
    }
}

/// Checks that the messages of a channel can be heard.
pub(super) async fn check(client: Client, channel: String) -> RedisResult<()> {
    let mut connection: PubSub = within(client.get_async_pubsub()).await?;
    within(connection.subscribe(&channel)).await
}

async fn within<T>(answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    match tokio::time::timeout(STEP_TIMEOUT, answer).await {
        Ok(answered) => answered,
        Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{SharedStores, redis_server::RedisServer};

    /// Sends a message until it is heard: a process may have just begun to listen.
    async fn is_heard(teller: &SharedStores, heard: &mut mpsc::Receiver<String>, message: &str) {
        let telling = async {
            loop {
                teller.replicas().publish(message);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let hearing = async { while heard.recv().await.as_deref() != Some(message) {} };
        tokio::select! {
            () = telling => {}
            () = hearing => {}
            () = tokio::time::sleep(Duration::from_mins(1)) => panic!("{message} was not heard"),
        }
    }

    #[tokio::test]
    async fn idle_connection_stays() {
        let Some(server) = RedisServer::start() else { return };
        let (teller, listener) = (server.stores(), server.stores());
        let mut heard = listener.replicas().listen();
        is_heard(&teller, &mut heard, "first").await;
        let connections = || server.command(&["INFO", "stats"]);
        let received = |stats: &str| {
            let mut lines = stats.lines();
            let line = lines.find_map(|it| it.strip_prefix("total_commands_processed:")).unwrap();
            line.trim().parse::<u64>().unwrap()
        };
        let ids = || server.command(&["CLIENT", "LIST", "TYPE", "PUBSUB"]);
        let (before, first) = (received(&connections()), ids());
        // Each check is a command.
        while received(&connections()) < before + 100 {}
        let id = |list: &str| list.split_whitespace().next().map(str::to_owned);
        assert!(first.starts_with("id="), "{first}");
        assert_eq!(id(&ids()), id(&first));
    }

    #[tokio::test]
    async fn messages_are_heard_again_after_an_outage() {
        let Some(mut server) = RedisServer::start() else { return };
        let (teller, listener) = (server.stores(), server.stores());
        let mut heard = listener.replicas().listen();
        is_heard(&teller, &mut heard, "first").await;
        server.restart();
        is_heard(&teller, &mut heard, "second").await;
    }
}
