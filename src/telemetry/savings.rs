//! The estimate of what models did not have to read: the definitions of all tools, at each turn of
//! a model, less the lists that dormouse gave in their place.

use std::{
    collections::HashMap,
    sync::{OnceLock, Weak},
    time::{Duration, SystemTime},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    base::{Lock, run_blocking},
    catalog::{ServerCatalog, estimated_tokens},
    config::ServerConfig,
    protocol::method,
    proxy::{EndedRequest, Fleet},
};

/// Maximum pause within a turn: some hosts make the calls of one turn one after the other.
const MAX_PAUSE: Duration = Duration::from_millis(150);
/// Maximum number of hosts that are told apart, since their names come from outside.
const MAX_HOSTS: usize = 256;
/// The estimator, for reports.
const ESTIMATOR: &str = "4 bytes per token";

/// Counts the turns of models, and the definitions of a fleet that were not sent at them.
pub(super) struct Savings {
    fleet: Weak<Fleet>,
    /// The bytes of the definitions that were stored on disk, by server. Servers that have not been
    /// connected are known from there.
    stored: OnceLock<HashMap<String, u64>>,
    turns: Lock<Turns>,
}

#[derive(Default)]
struct Turns {
    count: u64,
    /// The bytes that were not sent at these turns.
    saved_bytes: u64,
    /// The bytes of results withheld from hosts.
    withheld_bytes: u64,
    /// The hosts by their names: over HTTP, each request of a modern host has its own session.
    hosts: HashMap<String, HostTurns>,
}

#[derive(Default)]
struct HostTurns {
    /// The size of the tool list that the host has, in bytes.
    listed_bytes: u64,
    /// The end of the last call. Calls within [`MAX_PAUSE`] belong to one turn.
    until: Option<SystemTime>,
}

/// An estimate of what was saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SavingsReport {
    /// Turns of models in which a tool was called.
    pub turns: u64,
    /// Bytes of definitions that were not sent: at each turn the definitions of all tools that were
    /// known, less the tool list that the host had.
    pub bytes: u64,
    /// The same in tokens.
    pub tokens: u64,
    /// The estimator of tokens.
    pub estimator: String,
    /// Bytes of results withheld from hosts, since they were above `maxResultBytes`.
    #[serde(default)]
    pub withheld_bytes: u64,
    /// The bytes by server, in proportion to the size of its definitions.
    pub servers: Vec<ServerSavings>,
}

/// The part of one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerSavings {
    pub server: String,
    pub bytes: u64,
    pub tokens: u64,
}

impl Savings {
    pub(super) fn of(fleet: Weak<Fleet>) -> Self {
        Self { fleet, stored: OnceLock::new(), turns: Lock::default() }
    }

    /// Reads the sizes of the stored definitions, once.
    pub(super) async fn learn(&self) {
        let Some(fleet) = self.fleet.upgrade().filter(|_| self.stored.get().is_none()) else {
            return;
        };
        let stored = run_blocking(move || {
            let servers = fleet.operator().stored_catalogs().into_iter();
            let bytes = servers.map(|(config, catalog)| {
                (config.name.clone(), definition_bytes(&config, &catalog))
            });
            bytes.collect()
        });
        if let Some(stored) = stored.await {
            // Set before, if two tasks have learned at the same time.
            let _ = self.stored.set(stored);
        }
    }

    /// Notes what a host was answered. `client`: its name; `result_bytes`: the size of its result.
    /// Returns the bytes that were not sent if a turn began with the request.
    pub(super) fn request_ended(
        &self,
        request: &EndedRequest,
        client: &str,
        result_bytes: Option<usize>,
    ) -> Option<u64> {
        let known_bytes = || self.definitions().iter().map(|(_, bytes)| bytes).sum();
        self.note(request, client, result_bytes, known_bytes)
    }

    /// `known_bytes` returns the size of the definitions of all tools that are known now.
    fn note(
        &self,
        request: &EndedRequest,
        client: &str,
        result_bytes: Option<usize>,
        known_bytes: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let is_list = request.method == method::TOOLS_LIST;
        if !is_list && request.method != method::TOOLS_CALL {
            return None;
        }
        let mut turns = self.turns.lock();
        let turns = &mut *turns;
        if turns.hosts.len() >= MAX_HOSTS && !turns.hosts.contains_key(client) {
            return None;
        }
        let host = turns.hosts.entry(client.to_owned()).or_default();
        if is_list {
            host.listed_bytes = result_bytes.map_or(host.listed_bytes, |bytes| bytes as u64);
            return None;
        }
        let end = request.time.began + request.time.took;
        let is_new = host.until.is_none_or(|until| request.time.began >= until + MAX_PAUSE);
        host.until = host.until.max(Some(end));
        let saved = is_new.then(|| known_bytes().saturating_sub(host.listed_bytes))?;
        turns.count += 1;
        turns.saved_bytes += saved;
        Some(saved)
    }

    /// Notes that a host has got a preview of a result, without this number of its bytes.
    pub(super) fn result_cut(&self, withheld: usize) {
        self.turns.lock().withheld_bytes += withheld as u64;
    }

    /// Returns the size of the definitions of each server, as far as they are known.
    fn definitions(&self) -> Vec<(String, u64)> {
        let Some(fleet) = self.fleet.upgrade() else { return Vec::new() };
        let servers = fleet.operator().known_catalogs().into_iter();
        let definitions = servers.map(|(config, catalog)| {
            let stored = || self.stored.get()?.get(&config.name).copied();
            let bytes = match catalog {
                Some(catalog) => definition_bytes(&config, &catalog),
                None => stored().unwrap_or_default(),
            };
            (config.name.clone(), bytes)
        });
        definitions.collect()
    }

    pub(super) fn saved_tokens(&self) -> u64 {
        tokens(self.turns.lock().saved_bytes)
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns.lock().count
    }

    /// Reports what was saved since the start.
    pub(super) fn report(&self) -> SavingsReport {
        let definitions = self.definitions();
        let (turns, saved, withheld_bytes) = {
            let turns = self.turns.lock();
            (turns.count, turns.saved_bytes, turns.withheld_bytes)
        };
        let all: u64 = definitions.iter().map(|(_, bytes)| bytes).sum();
        let servers = definitions.into_iter().map(|(server, bytes)| {
            let share = u128::from(saved) * u128::from(bytes) / u128::from(all.max(1));
            let bytes = u64::try_from(share).unwrap_or(u64::MAX);
            ServerSavings { server, bytes, tokens: tokens(bytes) }
        });
        SavingsReport {
            turns,
            bytes: saved,
            tokens: tokens(saved),
            estimator: ESTIMATOR.to_owned(),
            withheld_bytes,
            servers: servers.filter(|server| server.bytes > 0).collect(),
        }
    }
}

impl SavingsReport {
    /// Returns the report of no fleet.
    pub(crate) fn none() -> Self {
        Self { estimator: ESTIMATOR.to_owned(), ..Self::default() }
    }

    /// Adds what another fleet of the same config has saved.
    pub(crate) fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.bytes += other.bytes;
        self.tokens += other.tokens;
        self.withheld_bytes += other.withheld_bytes;
        self.estimator.clone_from(&other.estimator);
        for theirs in &other.servers {
            match self.servers.iter_mut().find(|own| own.server == theirs.server) {
                Some(own) => {
                    own.bytes += theirs.bytes;
                    own.tokens += theirs.tokens;
                }
                None => self.servers.push(theirs.clone()),
            }
        }
    }
}

/// Returns the size of the definitions of the tools that are shown.
fn definition_bytes(config: &ServerConfig, catalog: &ServerCatalog) -> u64 {
    let shown = catalog.tools.iter().filter(|tool| config.offer.tools.allow(&tool.name));
    shown.map(|tool| tool.raw.len() as u64).sum()
}

fn tokens(bytes: u64) -> u64 {
    estimated_tokens(usize::try_from(bytes).unwrap_or(usize::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{protocol::ClientIdentity, proxy::TimeSpan};

    fn request(method: &str, began: u64, took: u64) -> EndedRequest {
        EndedRequest {
            id: "1".to_owned(),
            client: std::sync::Arc::new(ClientIdentity::ourselves()),
            method: method.to_owned(),
            subject: None,
            time: TimeSpan {
                began: SystemTime::UNIX_EPOCH + Duration::from_secs(began),
                took: Duration::from_secs(took),
            },
            fault: None,
            span: None,
        }
    }

    #[test]
    fn calls_that_follow_each_other_at_once_are_one_turn() {
        let savings = Savings::of(Weak::new());
        let ended = |request, bytes| savings.note(&request, "host", Some(bytes), || 1000);
        assert_eq!(ended(request("tools/list", 0, 1), 100), None);
        // The calls end in this order.
        assert_eq!(ended(request("tools/call", 11, 1), 5), Some(900));
        assert_eq!(ended(request("tools/call", 10, 9), 5), None);
        assert_eq!(ended(request("tools/call", 20, 1), 5), Some(900));
        assert_eq!(ended(request("resources/read", 30, 1), 5), None);
        assert_eq!(savings.turns(), 2);
        assert_eq!(
            savings.turns.lock().saved_bytes,
            1800,
            "the list is in the context at each turn"
        );
    }
}
