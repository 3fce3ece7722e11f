//! The names of the offers that hosts have loaded, kept from one run to the next.

use std::{collections::BTreeSet, io, sync::Arc, time::Duration};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{base::run_blocking, store::Store};

/// Delay before another attempt to use the store.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Maximum size of the value, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// A stored value with one name per line.
#[derive(Clone, Debug)]
pub(crate) struct RememberedLoads {
    store: Arc<dyn Store>,
    name: String,
}

impl RememberedLoads {
    /// Keeps the loads in a store, under the fingerprint of their config.
    pub(crate) fn new(store: Arc<dyn Store>, config: String) -> Self {
        Self { store, name: config }
    }

    /// Returns where the names are, for messages.
    pub(in crate::proxy) fn describe(&self) -> String {
        self.store.describe(&self.name)
    }

    /// Reads the names.
    ///
    /// # Errors
    /// When the value cannot be read.
    pub(in crate::proxy) fn read(&self) -> io::Result<BTreeSet<String>> {
        Ok(names_in(&self.store.get(&self.name, MAX_BYTES)?.unwrap_or_default()))
    }

    /// Tries work again that has failed because the store could not be used, until it can. Returns
    /// `None` if the work fails for another reason, which is logged, or dormouse ends.
    pub(in crate::proxy) async fn retry<T: Send + 'static>(
        &self,
        stop: &CancellationToken,
        work: impl Fn(&Self) -> io::Result<T> + Clone + Send + 'static,
    ) -> Option<T> {
        loop {
            stop.run_until_cancelled(sleep(RETRY_DELAY)).await?;
            let (asked, work) = (self.clone(), work.clone());
            match run_blocking(move || work(&asked)).await? {
                Ok(done) => return Some(done),
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                Err(error) => {
                    let path = self.describe();
                    tracing::warn!(path, %error, "cannot use the loaded servers");
                    return None;
                }
            }
        }
    }

    /// Adds a name.
    ///
    /// # Errors
    /// When the value cannot be written.
    pub(in crate::proxy) fn add(&self, name: &str) -> io::Result<()> {
        loop {
            let seen = self.store.version(&self.name)?;
            let mut loaded = self.read()?;
            if !loaded.insert(name.to_owned()) {
                return Ok(());
            }
            // Another process that uses the same config may have added a name.
            if self.store.update(&self.name, seen, &value_of(loaded))? {
                return Ok(());
            }
        }
    }
}

/// Returns the names in a value.
pub(super) fn names_in(value: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(value);
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns the value that holds these names.
pub(super) fn value_of(names: BTreeSet<String>) -> Vec<u8> {
    names.into_iter().map(|name| name + "\n").collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_of_0_1_0_are_read() {
        let value = include_bytes!(concat!(
            "../../tests/golden/0.1.0/data/dormouse/loads/",
            "6ce8ce4ab7e9dd96819ef7efd0afcbcc305930de1cc37b1385f453c4e4bec756"
        ));
        assert_eq!(Vec::from_iter(names_in(value)), ["notes"]);
    }
}
