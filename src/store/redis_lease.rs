//! A lease in a shared server: a name that expires unless its holder renews it.

use std::{io, sync::Arc, time::Duration};

use redis::{Cmd, aio::ConnectionManager};
use tokio::task::AbortHandle;

use super::redis_link::{RedisLink, perform};
use crate::base::random_token;

/// Time after which the lease of a process that was killed ends.
const LEASE_TIMEOUT: Duration = Duration::from_secs(5);
const RENEWAL_INTERVAL: Duration = Duration::from_millis(1500);

/// Extends the lease of a holder. Arguments: the holder's token, and milliseconds.
const RENEW: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
";
/// Ends the lease of a holder. Argument: the holder's token.
const RELEASE: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
";

/// A lease that ends when this is dropped, or soon after its process was killed.
pub(super) struct RedisLease {
    link: Arc<RedisLink>,
    name: String,
    /// Tells this holder from others.
    token: String,
    renewing: AbortHandle,
}

impl RedisLease {
    /// Takes the lease; `None` while another process or task has it.
    pub(super) fn try_take(link: &Arc<RedisLink>, name: String) -> io::Result<Option<Self>> {
        let token = random_token::<16>();
        let mut take = redis::cmd("SET");
        take.arg(&name).arg(&token).arg("NX").arg("PX").arg(millis());
        let answer: Option<String> = link.run(|mut connection: ConnectionManager| async move {
            take.query_async(&mut connection).await
        })?;
        if answer.is_none() {
            return Ok(None);
        }
        let renewing = link.start(renew(link.connection(), name.clone(), token.clone()));
        let renewing = renewing.abort_handle();
        Ok(Some(Self { link: link.clone(), name, token, renewing }))
    }
}

impl Drop for RedisLease {
    fn drop(&mut self) {
        self.renewing.abort();
        let release = script(RELEASE, &self.name, &self.token);
        let (mut connection, health) = (self.link.connection(), self.link.health().clone());
        self.link.start(async move {
            // A lease that cannot be released expires.
            let _ = perform(release.query_async::<()>(&mut connection), &health).await;
        });
    }
}

/// Returns the call of a script on one name, with a first argument.
fn script(text: &str, name: &str, token: &str) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(text).arg(1).arg(name).arg(token);
    command
}

fn millis() -> u64 {
    u64::try_from(LEASE_TIMEOUT.as_millis()).unwrap_or(u64::MAX)
}

/// Extends a lease at intervals, until this is aborted or another process has the lease.
async fn renew(mut connection: ConnectionManager, name: String, token: String) {
    loop {
        tokio::time::sleep(RENEWAL_INTERVAL).await;
        let mut renewal = script(RENEW, &name, &token);
        renewal.arg(millis());
        match renewal.query_async::<u64>(&mut connection).await {
            Ok(0) => {
                tracing::warn!(name, "a lease was lost: the store was emptied, or did not answer");
                return;
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "cannot renew a lease"),
        }
    }
}
