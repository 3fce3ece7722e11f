//! The estimate of what models did not have to read: the definitions of all tools, at each turn of
//! a model, less the lists that dormouse gave in their place.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call_record::client_name;
use crate::{
    base::Lock,
    catalog::{ServerCatalog, estimated_tokens},
    config::ServerConfig,
    protocol::{ClientIdentity, method},
    proxy::EndedRequest,
};

/// Maximum number of hosts that are told apart, since their names come from outside.
const MAX_HOSTS: usize = 256;
/// The estimator, for reports.
const ESTIMATOR: &str = "4 bytes per token";

/// Counts the turns of models.
#[derive(Default)]
pub(super) struct Savings(Lock<Turns>);

#[derive(Default)]
struct Turns {
    count: u64,
    /// The bytes of the tool lists that hosts had at these turns.
    listed_bytes: u64,
    /// The hosts by their names: over HTTP, each request of a modern host has its own session.
    hosts: HashMap<String, HostTurns>,
}

#[derive(Default)]
struct HostTurns {
    /// The size of the tool list that the host has, in bytes.
    listed_bytes: u64,
    /// The end of the last turn. Calls that overlap belong to one turn.
    until: Option<SystemTime>,
}

/// An estimate of what was saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SavingsReport {
    /// Turns of models in which a tool was called.
    pub turns: u64,
    /// Bytes of definitions that were not sent: the definitions of all tools that are known now,
    /// less the tool lists that hosts had, at each turn.
    pub bytes: u64,
    /// The same in tokens.
    pub tokens: u64,
    /// The estimator of tokens.
    pub estimator: String,
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
    /// Notes what a host was answered. `result_bytes`: the size of its result.
    pub(super) fn request_ended(&self, request: &EndedRequest, result_bytes: Option<usize>) {
        let is_list = request.method == method::TOOLS_LIST;
        if !is_list && request.method != method::TOOLS_CALL {
            return;
        }
        let name = name_of(&request.client);
        let mut turns = self.0.lock();
        let turns = &mut *turns;
        if turns.hosts.len() >= MAX_HOSTS && !turns.hosts.contains_key(&name) {
            return;
        }
        let host = turns.hosts.entry(name).or_default();
        if is_list {
            host.listed_bytes = result_bytes.map_or(host.listed_bytes, |bytes| bytes as u64);
            return;
        }
        let end = request.time.began + request.time.took;
        if host.until.is_none_or(|until| request.time.began >= until) {
            turns.count += 1;
            turns.listed_bytes += host.listed_bytes;
        }
        host.until = host.until.max(Some(end));
    }

    pub(super) fn turns(&self) -> u64 {
        self.0.lock().count
    }

    /// Reports on these servers, with their catalogs as far as those are known.
    pub(super) fn report(
        &self,
        servers: &[(Arc<ServerConfig>, Option<Arc<ServerCatalog>>)],
    ) -> SavingsReport {
        let definitions: Vec<(String, u64)> = servers
            .iter()
            .map(|(config, catalog)| {
                let tools = catalog.iter().flat_map(|catalog| &catalog.tools);
                let shown = tools.filter(|tool| config.offer.tools.allow(&tool.name));
                (config.name.clone(), shown.map(|tool| tool.raw.len() as u64).sum())
            })
            .collect();
        let (turns, listed) = {
            let turns = self.0.lock();
            (turns.count, turns.listed_bytes)
        };
        let all: u64 = definitions.iter().map(|(_, bytes)| bytes).sum();
        let saved = turns.saturating_mul(all).saturating_sub(listed);
        let servers = definitions.into_iter().filter(|_| saved > 0).map(|(server, bytes)| {
            let share = u128::from(saved) * u128::from(bytes) / u128::from(all.max(1));
            let bytes = u64::try_from(share).unwrap_or(u64::MAX);
            ServerSavings { server, bytes, tokens: tokens(bytes) }
        });
        SavingsReport {
            turns,
            bytes: saved,
            tokens: tokens(saved),
            estimator: ESTIMATOR.to_owned(),
            servers: servers.filter(|server| server.bytes > 0).collect(),
        }
    }
}

impl SavingsReport {
    /// Adds what another fleet of the same config has saved.
    pub(crate) fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.bytes += other.bytes;
        self.tokens += other.tokens;
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

fn tokens(bytes: u64) -> u64 {
    estimated_tokens(usize::try_from(bytes).unwrap_or(usize::MAX)) as u64
}

fn name_of(client: &ClientIdentity) -> String {
    client_name(client).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::proxy::TimeSpan;

    fn request(method: &str, began: u64, took: u64) -> EndedRequest {
        EndedRequest {
            id: "1".to_owned(),
            client: Arc::new(ClientIdentity::ourselves()),
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
    fn calls_that_overlap_are_one_turn() {
        let savings = Savings::default();
        savings.request_ended(&request("tools/list", 0, 1), Some(100));
        // The calls end in this order.
        for (began, took) in [(11, 1), (10, 9), (20, 1)] {
            savings.request_ended(&request("tools/call", began, took), Some(5));
        }
        savings.request_ended(&request("resources/read", 30, 1), Some(5));
        assert_eq!(savings.turns(), 2);
        assert_eq!(savings.0.lock().listed_bytes, 200, "the list is in the context at each turn");
    }
}
