//! Operations on a running dormouse, for its commands and its API.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use super::{
    Event, EventSink, Fleet, Overview, RuleWriter, catalogs,
    loading::load_for_all,
    overview::{CatalogSource, overview_of},
    reload,
};
use crate::{
    base::run_blocking,
    catalog::{
        LoadOrigin, Offer, OfferId, SearchHit, SearchTarget, ServerCatalog, ServerId, Snapshot,
    },
    config::{LoginHolder, ServerConfig},
    protocol::ClientIdentity,
    upstream::{LoadError, Phase, RecentLines, StaysAwake},
};

/// The reason that an operation fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OperateError {
    #[error("unknown server {0:?}")]
    Unknown(String),
    #[error("server {server:?} is disabled in the config: run `{command}`")]
    Disabled { server: String, command: String },
    #[error("cannot load a server for all hosts: the config has \"loads\": \"session\"")]
    OfSessions,
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("server {server:?} stays awake: {why}")]
    Awake { server: String, why: StaysAwake },
}

/// Maximum number of results of a search.
const MAX_FOUND: usize = 20;

/// A result of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FoundTool {
    pub server: String,
    /// `null` for a server whose tools are not known before it is loaded.
    pub tool: Option<String>,
    /// The description of the tool, or of the server.
    pub description: String,
    /// What the query and the tool have in common, the strongest first.
    pub reasons: Vec<String>,
}

impl FoundTool {
    fn new(snapshot: &Snapshot, hit: SearchHit) -> Self {
        let (server, tool, description) = match hit.target {
            SearchTarget::Tool(at) => {
                let (offer, tool) = snapshot.tools().tool(at);
                let server = offer.server_name().to_owned();
                (server, Some(tool.name.clone()), tool.description.clone())
            }
            SearchTarget::Offer(at) => {
                let offer = &snapshot.offers[at];
                (offer.name.clone(), None, offer.description.clone().unwrap_or_default())
            }
        };
        Self { server, tool, description, reasons: hit.reasons }
    }
}

/// The operations and reports for the commands and the API.
pub(crate) struct Operator<'a> {
    pub(super) fleet: &'a Fleet,
}

impl Fleet {
    pub(crate) fn operator(&self) -> Operator<'_> {
        Operator { fleet: self }
    }
}

impl Operator<'_> {
    /// Returns a receiver of all events from now on.
    pub(crate) fn events(&self) -> broadcast::Receiver<Event> {
        self.fleet.events.listen()
    }

    /// Tells everything that happens from now on to this sink. The first sink stays.
    pub(crate) fn report_to(&self, sink: Arc<dyn EventSink>) {
        self.fleet.events.set_sink(sink);
    }

    /// Sets the writer of the rules that users agree to. The first one stays.
    pub(crate) fn write_rules_with(&self, writer: Arc<dyn RuleWriter>) {
        let _ = self.fleet.calls.rule_writer.set(writer);
    }

    /// Returns a text that no other fleet has, and that all ids of this one contain.
    pub(crate) fn mark(&self) -> &str {
        self.fleet.asking.mark()
    }

    /// Returns the config of a server that each person has to log in to.
    pub(crate) fn server_with_logins_of_people(&self, name: &str) -> Option<Arc<ServerConfig>> {
        let roster = self.fleet.servers.roster();
        let mut slots = roster.all().map(|(_, slot)| &slot.config);
        let config = slots.find(|config| config.name == name)?;
        let is_of_people = config.enabled && config.connecting.login == LoginHolder::User;
        is_of_people.then(|| config.clone())
    }

    /// Returns the names of the offers that hosts have loaded.
    pub(crate) fn loaded(&self) -> Vec<String> {
        let snapshot = self.fleet.board.snapshot();
        let is_loaded =
            |offer: &&Arc<Offer>| offer.presence.origin() == Some(LoadOrigin::HostsRequest);
        snapshot.offers.iter().filter(is_loaded).map(|offer| offer.name.clone()).collect()
    }

    /// Loads a server or a toolset (`server/toolset`) for all hosts, or wakes the server. Returns
    /// the name of the server.
    ///
    /// # Errors
    /// If there is no such server, or it cannot be connected.
    pub(crate) async fn load(&self, name: &str) -> Result<String, OperateError> {
        let snapshot = self.fleet.board.snapshot();
        let offer = snapshot.offers.iter().find(|offer| offer.name == name);
        let server = offer.map_or(name, |offer| offer.server_name());
        let whole = OfferId::whole(known(self.fleet, server)?);
        if self.fleet.board.has_loads_of_sessions() {
            return Err(OperateError::OfSessions);
        }
        load_for_all(self.fleet, offer.map_or(whole, |offer| offer.id)).await?;
        Ok(server.to_owned())
    }

    /// Puts all instances of a server to sleep that are not in use.
    ///
    /// # Errors
    /// If there is no such server, or an instance must stay awake.
    pub(crate) async fn sleep(&self, name: &str) -> Result<(), OperateError> {
        let server = known(self.fleet, name)?;
        let mut outcome = Ok(());
        for (_, upstream) in
            self.fleet.servers.instances().into_iter().filter(|(at, _)| at.server == server)
        {
            if let Err(why) = upstream.sleep().await {
                outcome = Err(OperateError::Awake { server: name.to_owned(), why });
            }
        }
        outcome
    }

    /// Clears the failed loads of a server, so that an evicted server is offered again. Does
    /// nothing to other servers. Reads from disk.
    ///
    /// # Errors
    /// If there is no such server.
    pub(crate) fn reset(&self, name: &str) -> Result<(), OperateError> {
        let server = known(self.fleet, name)?;
        let status = self.fleet.servers.shared(server).status();
        if status.strikes > 0 || matches!(status.phase, Phase::Evicted | Phase::BackingOff) {
            reload::restart_server(self.fleet, name);
        }
        Ok(())
    }

    /// Returns the state of all servers in config order. Reads known catalogs from disk.
    pub(crate) fn overview(&self) -> Vec<Overview> {
        self.overview_from(CatalogSource::Disk)
    }

    /// Returns the same without reading from disk: catalogs of servers that were not connected are
    /// not known.
    pub(crate) fn overview_in_memory(&self) -> Vec<Overview> {
        self.overview_from(CatalogSource::Memory)
    }

    fn overview_from(&self, source: CatalogSource) -> Vec<Overview> {
        let instances = self.fleet.servers.instances();
        let roster = self.fleet.servers.roster();
        roster.ids().map(|server| overview_of(self.fleet, server, &instances, source)).collect()
    }

    /// Returns the phase of each server, in config order.
    pub(crate) fn phases(&self) -> Vec<Phase> {
        let roster = self.fleet.servers.roster();
        let phases = roster.all().map(|(_, slot)| {
            if slot.shown.enabled { slot.upstream.status().phase } else { Phase::Disabled }
        });
        phases.collect()
    }

    /// Returns the number of attached hosts.
    pub(crate) fn host_count(&self) -> usize {
        self.fleet.audience.hosts().len()
    }

    /// Returns the process groups of all connected instances on this machine.
    pub(crate) fn process_groups(&self) -> Vec<u32> {
        let statuses = self.fleet.servers.instances().into_iter();
        let statuses = statuses.map(|(_, upstream)| upstream.status());
        let awake = statuses.filter(|status| status.phase == Phase::Awake);
        awake.filter_map(|status| status.process_group).collect()
    }

    /// Returns what the attached hosts have said of themselves.
    pub(crate) fn clients(&self) -> Vec<Arc<ClientIdentity>> {
        self.fleet.audience.hosts().iter().filter_map(|host| host.client()).collect()
    }

    /// Searches the tools as an agent can that sees all servers. Returns the best results, best
    /// first.
    pub(crate) async fn search(&self, query: String) -> Vec<FoundTool> {
        catalogs::learn_all(self.fleet).await;
        let snapshot = self.fleet.board.snapshot();
        let searching = run_blocking(move || {
            let found = snapshot.search(&query, None, MAX_FOUND).into_iter();
            found.map(|hit| FoundTool::new(&snapshot, hit)).collect()
        });
        // Without an outcome dormouse ends.
        searching.await.unwrap_or_default()
    }

    /// Returns the last lines of standard error of a server, oldest first, of one instance after
    /// the other.
    ///
    /// # Errors
    /// If there is no such server.
    pub(crate) fn stderr(&self, name: &str) -> Result<Vec<String>, OperateError> {
        let server = known(self.fleet, name)?;
        let instances = self.fleet.servers.instances().into_iter();
        let of_server = instances.filter(|(at, _)| at.server == server);
        Ok(of_server.flat_map(|(_, upstream)| upstream.stderr().items()).collect())
    }

    /// Returns the last lines of standard error of the only server, which change as it writes.
    pub(crate) fn stderr_of_only_server(&self) -> Option<RecentLines> {
        let (_, upstream) = self.fleet.servers.instances().into_iter().next()?;
        Some(upstream.stderr())
    }

    /// Returns the enabled servers with the last catalogs that are stored on disk.
    pub(crate) fn stored_catalogs(&self) -> Vec<(Arc<ServerConfig>, ServerCatalog)> {
        let roster = self.fleet.servers.roster();
        let enabled = roster.all().filter(|(_, slot)| slot.shown.enabled);
        let stored = enabled.filter_map(|(id, slot)| {
            Some((slot.config.clone(), self.fleet.memory.catalogs.last(id)?))
        });
        stored.collect()
    }

    /// Returns the enabled servers with their catalogs, as far as those are in memory.
    pub(crate) fn known_catalogs(&self) -> Vec<(Arc<ServerConfig>, Option<Arc<ServerCatalog>>)> {
        let roster = self.fleet.servers.roster();
        let enabled = roster.all().filter(|(_, slot)| slot.shown.enabled);
        enabled.map(|(_, slot)| (slot.config.clone(), slot.upstream.catalog())).collect()
    }
}

pub(super) fn known(fleet: &Fleet, name: &str) -> Result<ServerId, OperateError> {
    let roster = fleet.servers.roster();
    let found = roster.all().find(|(_, slot)| slot.config.name == name);
    match found {
        Some((id, slot)) if slot.shown.enabled => Ok(id),
        Some(_) => {
            let command = fleet.settings().launch.commands.enable(name);
            Err(OperateError::Disabled { server: name.to_owned(), command })
        }
        None => Err(OperateError::Unknown(name.to_owned())),
    }
}
