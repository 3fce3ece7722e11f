//! The report on a shared store: its content, and its shortcomings.

use std::{
    io,
    time::{Duration, Instant},
};

use redis::aio::ConnectionManager;
use serde::Serialize;

use super::{RedisStore, SharedStores, Store as _, StoredKind};

/// The state of a shared store.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoreReport {
    /// The server and database, without user and password.
    pub place: String,
    /// The program and its version, such as `Redis 7.0.15`.
    pub software: String,
    /// The duration of one answer, in milliseconds.
    pub latency_ms: f64,
    pub kinds: Vec<StoredKind>,
    /// Texts that tell what the store would lose, or cannot do.
    pub shortcomings: Vec<String>,
}

impl StoreReport {
    /// Looks at a store. Writes and removes a small value.
    ///
    /// # Errors
    /// If the store cannot be used.
    pub(crate) fn of(stores: &SharedStores) -> io::Result<Self> {
        // The first answer includes the connection.
        ping(stores)?;
        let latency = ping(stores)?;
        let mut shortcomings = Vec::new();
        let info = info(stores)?;
        shortcomings.extend(info.shortcomings());
        for store in stores.kinds() {
            if let Err(error) = store.check_writable() {
                shortcomings.push(format!("cannot write {}: {error}", store.kind()));
            }
        }
        if let Err(error) = stores.replicas().check_channel() {
            shortcomings.push(format!(
                "replicas notice each other's changes late: they cannot use the channel: {error}"
            ));
        }
        let kinds = stores.kinds().iter().map(RedisStore::count);
        let kinds = kinds.collect::<io::Result<Vec<StoredKind>>>()?;
        for kind in &kinds {
            shortcomings.extend(kind.shortcomings());
        }
        let place = stores.place().to_owned();
        Ok(Self {
            place,
            software: info.software(),
            latency_ms: millis(latency),
            kinds,
            shortcomings,
        })
    }
}

/// Returns the duration of one answer.
fn ping(stores: &SharedStores) -> io::Result<Duration> {
    let began = Instant::now();
    stores.link().run(|mut connection: ConnectionManager| async move {
        redis::cmd("PING").query_async::<()>(&mut connection).await
    })?;
    Ok(began.elapsed())
}

/// The answer to `INFO`, which is empty if the user may not ask.
struct ServerInfo(String);

fn info(stores: &SharedStores) -> io::Result<ServerInfo> {
    let asked = stores.link().run(|mut connection: ConnectionManager| async move {
        redis::cmd("INFO").query_async::<String>(&mut connection).await
    });
    match asked {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Err(error),
        // The user of the store may not be allowed to ask.
        Err(_) => Ok(ServerInfo(String::new())),
        Ok(text) => Ok(ServerInfo(text)),
    }
}

impl ServerInfo {
    fn value(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
    }

    fn software(&self) -> String {
        match (self.value("valkey_version"), self.value("redis_version")) {
            (Some(version), _) => format!("Valkey {version}"),
            (None, Some(version)) => format!("Redis {version}"),
            (None, None) => "unknown version".to_owned(),
        }
    }

    fn shortcomings(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.0.is_empty() {
            let message = "the user may not run INFO: memory and persistence were not checked";
            return vec![message.to_owned()];
        }
        let policy = self.value("maxmemory_policy").unwrap_or_default();
        let is_limited = self.value("maxmemory").is_some_and(|bytes| bytes != "0");
        if is_limited && policy.starts_with("allkeys") {
            found.push(format!(
                "the server drops values when its memory is full (maxmemory-policy {policy}): set \
                    noeviction, or dormouse must store its logins again"
            ));
        }
        let changes = self.value("rdb_changes_since_last_save");
        let saves = self.value("rdb_saves").is_none_or(|saves| saves != "0");
        if self.value("aof_enabled") == Some("0") && (!saves || changes.is_none()) {
            found.push(
                "the server has not written anything to disk: logins that no replica holds are \
                    lost when it restarts (set appendonly yes)"
                    .to_owned(),
            );
        }
        if self.value("role") == Some("slave") {
            found.push("the server is a read-only replica: name its master".to_owned());
        }
        found
    }
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100_000.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_drops_or_forgets_values_is_reported() {
        let info = |policy: &str, aof: &str| {
            ServerInfo(format!(
                "# Server\r\nredis_version:7.0.15\r\nrole:master\r\nmaxmemory:100\r\n\
                    maxmemory_policy:{policy}\r\nrdb_saves:0\r\naof_enabled:{aof}\r\n"
            ))
        };
        assert_eq!(info("noeviction", "1").shortcomings(), Vec::<String>::new());
        assert_eq!(info("noeviction", "1").software(), "Redis 7.0.15");
        assert_eq!(info("allkeys-lru", "1").shortcomings().len(), 1);
        assert_eq!(info("noeviction", "0").shortcomings().len(), 1);
        assert_eq!(ServerInfo(String::new()).shortcomings().len(), 1);
    }
}
