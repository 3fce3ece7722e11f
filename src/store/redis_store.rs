//! The store in a Redis or Valkey server, which several machines share.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use redis::{Cmd, Pipeline, aio::ConnectionManager};
use tokio::{sync::mpsc, time::Instant};

use super::{
    PruneLimits, Store, StoreHealth, StoreLease, StoredKind, StoredVersion,
    redis_lease::RedisLease,
    redis_link::{RedisLink, perform},
    stored_record::{
        self, FORM, HEAD_BYTES, MARK_BYTES, OVERHEAD_BYTES, RecordMark, RecordProblem, StoredRecord,
    },
};
use crate::base::{Lock, SealingKeys, since_1970};

/// The number of the layout of names. A different layout gets a different number, and does not see
/// these names.
const LAYOUT: u8 = 1;
/// Time after which the record of a removed value is dropped, in seconds: all replicas have seen it
/// by then.
const REMOVAL_SECONDS: u64 = 30 * 24 * 3600;
/// Age at which a known version is read again.
const VERSION_AGE: Duration = Duration::from_millis(500);
/// Maximum number of known versions.
const MAX_VERSIONS: usize = 10_000;
/// Maximum number of names of one kind that are read, the newest first.
const MAX_NAMES: isize = 20_000;
/// Number of values about which the server is asked at once.
const AT_ONCE: usize = 500;

/// Replaces a record, unless a newer version of dormouse wrote it, or it is not the expected one.
/// Arguments: our form, the expected version (`any`, `absent`, or a revision), the record, its time
/// in milliseconds, its name, and the seconds until it expires (0 for never).
const REPLACE: &str = "
local head = redis.call('GETRANGE', KEYS[1], 0, 17)
if #head > 0 and string.byte(head, 1) > tonumber(ARGV[1]) then return 'newer' end
if ARGV[2] == 'absent' then
  if #head > 0 then return 'changed' end
elseif ARGV[2] ~= 'any' and string.sub(head, 3, 18) ~= ARGV[2] then return 'changed' end
local was = #head > 0 and string.byte(head, 2) == 0
if ARGV[6] == '0' then
  redis.call('SET', KEYS[1], ARGV[3])
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[5])
else
  redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[6])
  redis.call('ZREM', KEYS[2], ARGV[5])
  if not was then return 'missing' end
end
return 'done'
";

/// Removes vanished names and surplus values. Arguments: the prefix of the names of values, the
/// time in milliseconds up to which values have vanished, and the maximum number.
const KEEP_NEWEST: &str = "
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[2])
local surplus = redis.call('ZREVRANGE', KEYS[1], ARGV[3], ARGV[3] + 500)
for _, name in ipairs(surplus) do
  redis.call('DEL', ARGV[1] .. name)
  redis.call('ZREM', KEYS[1], name)
end
return #surplus
";

/// The values of one kind in a shared server, sealed with keys that the server does not have.
///
/// A value is a string under `{prefix:kind}:1:value:<name>`; the sorted set `…:index` has the
/// names, by the time at which they were written. The braces keep all values of a kind on one node
/// of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct RedisStore {
    link: Arc<RedisLink>,
    keys: SealingKeys,
    /// `{prefix:kind}:1`.
    root: String,
    kind: &'static str,
    versions: Arc<Lock<HashMap<String, KnownVersion>>>,
}

/// A version that was read from the server.
#[derive(Clone, Copy, Debug)]
struct KnownVersion {
    version: StoredVersion,
    read: Instant,
    /// The time of the last question for it.
    asked: Instant,
}

impl RedisStore {
    pub(super) fn new(
        link: Arc<RedisLink>,
        keys: SealingKeys,
        prefix: &str,
        kind: &'static str,
    ) -> Self {
        let root = format!("{{{prefix}:{kind}}}:{LAYOUT}");
        Self { link, keys, root, kind, versions: Arc::default() }
    }

    pub(super) fn kind(&self) -> &'static str {
        self.kind
    }

    pub(super) fn health(&self) -> &Arc<StoreHealth> {
        self.link.health()
    }

    pub(super) fn keys(&self) -> &SealingKeys {
        &self.keys
    }

    /// Starts to listen to the messages that processes publish.
    pub(super) fn listen(&self) -> mpsc::Receiver<String> {
        self.link.listen(self.channel())
    }

    /// Sends a message to the other processes, without waiting for it.
    pub(super) fn publish(&self, message: &str) {
        let (publish, mut connection) = (self.publication(message), self.link.connection());
        self.link.start(async move {
            if let Err(error) = publish.query_async::<()>(&mut connection).await {
                tracing::debug!(%error, "cannot send a message to other processes");
            }
        });
    }

    /// Checks that messages can be sent and heard.
    ///
    /// # Errors
    /// If the server cannot be used, or the user may not.
    pub(super) fn check_channel(&self) -> io::Result<()> {
        self.ask::<i64>(self.publication("check"))?;
        self.link.check_listening(self.channel())
    }

    fn channel(&self) -> String {
        format!("{}:changes", self.root)
    }

    fn publication(&self, message: &str) -> Cmd {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(self.channel()).arg(message);
        publish
    }

    /// Counts the values, and those that this dormouse cannot read.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub(super) fn count(&self) -> io::Result<StoredKind> {
        let mut counted = StoredKind { kind: self.kind, ..StoredKind::default() };
        for items in self.stored()?.chunks(AT_ONCE) {
            let mut commands = redis::pipe();
            for item in items {
                commands.getrange(self.value_name(&item.name), 0, MARK_BYTES.cast_signed() - 1);
            }
            let heads: Vec<Vec<u8>> = self.ask_all(commands)?;
            let present = items.iter().zip(heads).filter(|(item, _)| item.size > 0);
            for (item, head) in present {
                counted.values += 1;
                counted.bytes += item.size;
                match stored_record::mark_of(&self.keys, &head) {
                    RecordMark::Current | RecordMark::Removed => {}
                    RecordMark::OlderKey => counted.sealed_with_older_key += 1,
                    RecordMark::Unreadable => counted.unreadable += 1,
                    RecordMark::Newer => counted.newer += 1,
                }
            }
        }
        Ok(counted)
    }

    /// Replaces a value, which vanishes after `lifetime`.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub(super) fn put_for(&self, name: &str, value: &[u8], lifetime: Duration) -> io::Result<()> {
        let (record, _) = stored_record::encode(&self.keys, &self.value_name(name), value);
        let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
        let mut commands = redis::pipe();
        let mut set = redis::cmd("SET");
        set.arg(self.value_name(name)).arg(record).arg("PX").arg(millis);
        commands.add_command(set).ignore();
        commands.zadd(self.index_name(), name, now_millis()).ignore();
        self.ask_all(commands)
    }

    /// Removes the names of values that have vanished after `lifetime`, and the oldest values above
    /// a maximum number.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub(super) fn keep_newest(&self, max_values: u64, lifetime: Duration) -> io::Result<()> {
        let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
        let mut script = redis::cmd("EVAL");
        script.arg(KEEP_NEWEST).arg(1).arg(self.index_name()).arg(self.value_name(""));
        script.arg(now_millis().saturating_sub(millis)).arg(max_values);
        self.ask::<u64>(script).map(drop)
    }

    /// Removes a value without a record of that.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub(super) fn delete(&self, name: &str) -> io::Result<()> {
        let mut commands = redis::pipe();
        commands.del(self.value_name(name)).ignore();
        commands.zrem(self.index_name(), name).ignore();
        self.ask_all(commands)
    }

    /// Returns the names of the values that have not vanished.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub(super) fn present_names(&self) -> io::Result<Vec<String>> {
        let (present, gone): (Vec<StoredItem>, Vec<StoredItem>) =
            self.stored()?.into_iter().partition(|item| item.size > 0);
        if !gone.is_empty() {
            let mut commands = redis::pipe();
            for item in gone {
                commands.zrem(self.index_name(), item.name).ignore();
            }
            self.ask_all::<()>(commands)?;
        }
        Ok(present.into_iter().map(|item| item.name).collect())
    }

    fn value_name(&self, name: &str) -> String {
        format!("{}:value:{name}", self.root)
    }

    fn index_name(&self) -> String {
        format!("{}:index", self.root)
    }

    fn ask<T: redis::FromRedisValue + Send + 'static>(&self, command: Cmd) -> io::Result<T> {
        self.link.run(|mut connection: ConnectionManager| async move {
            command.query_async(&mut connection).await
        })
    }

    fn ask_all<T: redis::FromRedisValue + Send + 'static>(
        &self,
        commands: Pipeline,
    ) -> io::Result<T> {
        self.link.run(|mut connection: ConnectionManager| async move {
            commands.query_async(&mut connection).await
        })
    }

    fn head(&self, name: &str) -> io::Result<Vec<u8>> {
        self.ask(head_command(&self.value_name(name)))
    }

    /// Replaces a record. Returns what the server said.
    fn replace(
        &self,
        name: &str,
        expected: &[u8],
        (record, version): (Vec<u8>, StoredVersion),
        seconds: u64,
    ) -> io::Result<String> {
        let mut script = redis::cmd("EVAL");
        script.arg(REPLACE).arg(2).arg(self.value_name(name)).arg(self.index_name());
        script.arg(FORM).arg(expected).arg(record);
        script.arg(now_millis()).arg(name).arg(seconds);
        let said: String = self.ask(script)?;
        match said.as_str() {
            "newer" => Err(unreadable(&RecordProblem::Newer(FORM + 1))),
            "changed" => Ok(said),
            _ => {
                self.note_version(name, version);
                Ok(said)
            }
        }
    }

    fn note_version(&self, name: &str, version: StoredVersion) {
        note_version(&self.versions, name, version);
    }

    /// Returns the values in the order in which they were written, the newest first.
    fn stored(&self) -> io::Result<Vec<StoredItem>> {
        let mut range = redis::cmd("ZREVRANGE");
        range.arg(self.index_name()).arg(0).arg(MAX_NAMES - 1);
        let names: Vec<Vec<u8>> = self.ask(range)?;
        // Other programs may have put anything into the index.
        let names = names.into_iter().filter_map(|name| String::from_utf8(name).ok());
        let names: Vec<String> = names.collect();
        let mut stored = Vec::with_capacity(names.len());
        for names in names.chunks(AT_ONCE) {
            let mut commands = redis::pipe();
            for name in names {
                commands.strlen(self.value_name(name));
            }
            commands.ignore_errors();
            let sizes: Vec<redis::RedisResult<u64>> = self.ask_all(commands)?;
            let pairs = names.iter().cloned().zip(sizes);
            // A value of another type counts as one of no bytes.
            let item = |(name, size): (String, redis::RedisResult<u64>)| StoredItem {
                name,
                size: size.unwrap_or_default(),
            };
            stored.extend(pairs.map(item));
        }
        Ok(stored)
    }

    fn prune_now(&self, limits: &PruneLimits) -> io::Result<()> {
        let (mut values, mut bytes) = (0, 0_u64);
        for StoredItem { name, size } in self.stored()? {
            let counts = limits.counts(&name);
            if counts {
                values += 1;
                bytes = bytes.saturating_add(size);
            }
            // A value of no bytes has expired, or the server has evicted it.
            if size == 0 || counts && (values > limits.max_values || bytes > limits.max_total_bytes)
            {
                self.delete(&name)?;
            }
        }
        Ok(())
    }
}

struct StoredItem {
    name: String,
    size: u64,
}

impl Store for RedisStore {
    fn get(&self, name: &str, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
        let mut range = redis::cmd("GETRANGE");
        let max = max_bytes.saturating_add(OVERHEAD_BYTES).min(i64::MAX.cast_unsigned());
        range.arg(self.value_name(name)).arg(0).arg(max);
        let record: Vec<u8> = self.ask(range)?;
        if record.is_empty() {
            return Ok(None);
        }
        if record.len() as u64 > max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        match stored_record::decode(&self.keys, &self.value_name(name), &record) {
            Ok(StoredRecord::Value(value)) if value.len() as u64 > max_bytes => {
                Err(io::ErrorKind::FileTooLarge.into())
            }
            Ok(StoredRecord::Value(value)) => Ok(Some(value)),
            Ok(StoredRecord::Removed) => Ok(None),
            Err(problem) => Err(unreadable(&problem)),
        }
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(stored_record::is_value(&self.head(name)?))
    }

    fn version(&self, name: &str) -> io::Result<StoredVersion> {
        let version = stored_record::version_of(&self.head(name)?);
        self.note_version(name, version);
        Ok(version)
    }

    fn known_version(&self, name: &str, max_age: Duration) -> Option<StoredVersion> {
        let mut versions = self.versions.lock();
        let known = versions.get_mut(name).filter(|known| known.read.elapsed() < max_age)?;
        let version = known.version;
        let is_due = known.asked.elapsed() >= VERSION_AGE;
        if is_due {
            known.asked = Instant::now();
        }
        drop(versions);
        if is_due && self.link.health().outage().is_none() {
            let (mut connection, health) = (self.link.connection(), self.link.health().clone());
            let (command, name) = (head_command(&self.value_name(name)), name.to_owned());
            let versions = self.versions.clone();
            self.link.start(async move {
                let head = command.query_async::<Vec<u8>>(&mut connection);
                if let Ok(head) = perform(head, &health).await {
                    note_version(&versions, &name, stored_record::version_of(&head));
                }
            });
        }
        Some(version)
    }

    fn loses_values(&self) -> bool {
        true
    }

    fn put(&self, name: &str, value: &[u8]) -> io::Result<()> {
        let record = stored_record::encode(&self.keys, &self.value_name(name), value);
        self.replace(name, b"any", record, 0).map(drop)
    }

    fn update(&self, name: &str, seen: StoredVersion, value: &[u8]) -> io::Result<bool> {
        let record = stored_record::encode(&self.keys, &self.value_name(name), value);
        let expected = seen.revision();
        let expected = expected.as_ref().map_or(&b"absent"[..], |revision| revision.as_slice());
        Ok(self.replace(name, expected, record, 0)? == "done")
    }

    fn remove(&self, name: &str) -> io::Result<bool> {
        let removal = stored_record::encode_removal();
        Ok(self.replace(name, b"any", removal, REMOVAL_SECONDS)? == "done")
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<bool> {
        // A value is sealed for its place, and a damaged one is not worth keeping.
        match self.get(from, u64::MAX) {
            Ok(Some(value)) => self.put(to, &value)?,
            Ok(None) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => self.put(to, b"")?,
            Err(error) => return Err(error),
        }
        self.remove(from)
    }

    fn try_lease(&self, name: &str) -> io::Result<Option<StoreLease>> {
        let name = format!("{}:lease:{name}", self.root);
        Ok(RedisLease::try_take(&self.link, name)?.map(StoreLease::of))
    }

    fn reserve(&self, name: &str, bytes: usize) -> io::Result<Box<dyn Send + Sync>> {
        // A server without memory refuses this as it would refuse the value.
        let mut reserve = redis::cmd("SET");
        let place = format!("{}:reserved:{name}", self.root);
        reserve.arg(&place).arg(vec![b' '; bytes]).arg("PX").arg(1000);
        self.ask::<()>(reserve)?;
        Ok(Box::new(()))
    }

    fn prune(&self, limits: &PruneLimits) {
        if let Err(error) = self.prune_now(limits) {
            tracing::debug!(%error, "cannot remove old values from the store");
        }
    }

    fn check_writable(&self) -> io::Result<()> {
        self.reserve("check", 1).map(drop)
    }

    fn describe(&self, name: &str) -> String {
        format!("{} ({})", self.link.place(), self.value_name(name))
    }
}

fn now_millis() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}

fn head_command(value_name: &str) -> Cmd {
    let mut command = redis::cmd("GETRANGE");
    command.arg(value_name).arg(0).arg(HEAD_BYTES - 1);
    command
}

fn note_version(
    versions: &Lock<HashMap<String, KnownVersion>>,
    name: &str,
    version: StoredVersion,
) {
    let mut versions = versions.lock();
    if versions.len() >= MAX_VERSIONS && !versions.contains_key(name) {
        versions.clear();
    }
    let now = Instant::now();
    versions.insert(name.to_owned(), KnownVersion { version, read: now, asked: now });
}

fn unreadable(problem: &RecordProblem) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.to_string())
}
