//! Values in a shared server that vanish after a time.

use std::{io, time::Duration};

use super::{Store as _, redis_store::RedisStore};

/// The bounds of what is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpiryBounds {
    /// Time after which a value vanishes.
    pub(super) lifetime: Duration,
    /// Maximum number of values. The oldest are removed.
    pub(super) max_values: u64,
    /// Maximum size of one value, in bytes.
    pub(super) max_bytes: usize,
}

/// The values of one kind. A value is replaced without a comparison: a replica that loses a race
/// loses a change of something that expires anyway.
#[derive(Clone, Debug)]
pub(crate) struct ExpiringStore {
    store: RedisStore,
    bounds: ExpiryBounds,
}

impl ExpiringStore {
    pub(super) fn new(store: RedisStore, bounds: ExpiryBounds) -> Self {
        Self { store, bounds }
    }

    /// Returns a value; `None` if there is none, or it has vanished.
    ///
    /// # Errors
    /// If the server cannot be used, or the value is damaged or of a newer dormouse.
    pub(crate) fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.store.get(name, self.bounds.max_bytes as u64)
    }

    /// Removes a value.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.store.delete(name)
    }

    /// Replaces a value, and removes the oldest ones above the maximum number.
    ///
    /// # Errors
    /// If the server cannot be used, or the value is too large.
    pub(crate) fn put(&self, name: &str, value: &[u8]) -> io::Result<()> {
        let ExpiryBounds { lifetime, max_values, max_bytes } = self.bounds;
        if value.len() > max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.store.put_for(name, value, lifetime)?;
        self.store.keep_newest(max_values, lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis_server::RedisServer;

    /// Returns a store of at most two values.
    fn store(server: &RedisServer, lifetime: Duration) -> ExpiringStore {
        let bounds = ExpiryBounds { lifetime, max_values: 2, max_bytes: 5 };
        ExpiringStore::new(server.stores().replicas(), bounds)
    }

    fn put(store: &ExpiringStore, name: &str) {
        store.put(name, b"value").unwrap();
        // Values are ordered by milliseconds.
        std::thread::sleep(Duration::from_millis(2));
    }

    #[test]
    fn newest_values_are_kept() {
        let Some(server) = RedisServer::start() else { return };
        let store = store(&server, Duration::from_hours(1));
        assert!(store.put("a", b"too long").is_err());
        for name in ["a", "b", "c"] {
            put(&store, name);
        }
        assert_eq!(store.get("a").unwrap(), None);
        assert_eq!(store.get("b").unwrap().as_deref(), Some(&b"value"[..]));
        put(&store, "b");
        put(&store, "d");
        assert_eq!(store.store.present_names().unwrap(), ["d", "b"]);
    }

    #[test]
    fn value_vanishes_with_its_name() {
        let Some(server) = RedisServer::start() else { return };
        let passing = store(&server, Duration::from_millis(1));
        put(&passing, "a");
        assert_eq!(passing.get("a").unwrap(), None);
        let names = || server.command(&["ZRANGE", "{p:replicas}:1:index", "0", "-1"]);
        passing.store.put_for("b", b"value", Duration::from_hours(1)).unwrap();
        assert!(names().ends_with('b'), "{}", names());
        std::thread::sleep(Duration::from_millis(2));
        passing.store.keep_newest(2, Duration::from_millis(1)).unwrap();
        assert_eq!(names(), "");
    }
}
