//! The parts of a running dormouse: servers, published snapshot, hosts, and the requests between
//! them.

use std::sync::{Arc, OnceLock, Weak};

use super::{
    Caller, Endpoint, EndpointChoice, Host, asking::Asking, audience::Audience, board::Board,
    catalog_memory::CatalogMemory, consents::Consents, events::Events,
    extension_lists::ExtensionLists, host_memory::HostMemory, in_flight::InFlight,
    instance::Instance, learned_shapes::LearnedShapes, open_logins::OpenLogins,
    remembered_loads::RememberedLoads, results::KeptResults, rule_writer::RuleWriter,
    script_slots::ScriptSlots, servers::Servers, task_table::TaskTable,
};
use crate::{
    catalog::{Offer, OfferId, Presence, ServerId},
    config::{Settings, Wrapping},
    upstream::{Context, Upstream},
    wire::Raw,
};

/// A running dormouse. Its methods are what sessions of hosts and operators use; each file of this
/// folder that implements some of them says what they do.
///
/// The parts are visible in this folder because flows combine them. The state of a part is private
/// to it.
pub(crate) struct Fleet {
    pub(super) this: Weak<Self>,
    pub(super) context: Context,
    pub(super) servers: Servers,
    pub(super) board: Board,
    pub(super) audience: Audience,
    pub(super) asking: Asking,
    pub(super) calls: CallState,
    pub(super) extensions: ExtensionState,
    pub(super) memory: FleetMemory,
    pub(super) events: Events,
}

/// The state that is also kept in stores.
pub(super) struct FleetMemory {
    pub(super) catalogs: CatalogMemory,
    /// The offers that hosts have loaded, if loads are remembered.
    pub(super) loads: Option<RememberedLoads>,
    pub(super) hosts: HostMemory,
}

/// The state of calls beyond their own tasks.
pub(super) struct CallState {
    pub(super) in_flight: InFlight,
    /// The logins that calls wait for.
    pub(super) logins: OpenLogins,
    /// The consents of users to calls about which a policy had them asked.
    pub(super) consents: Consents,
    pub(super) rule_writer: OnceLock<Arc<dyn RuleWriter>>,
    /// The results that were cut.
    pub(super) results: KeptResults,
    pub(super) shapes: LearnedShapes,
    pub(super) script_slots: ScriptSlots,
}

impl CallState {
    pub(super) fn new(results: KeptResults) -> Self {
        let (in_flight, logins, consents, rule_writer) = Default::default();
        let (shapes, script_slots) = Default::default();
        Self { in_flight, logins, consents, rule_writer, results, shapes, script_slots }
    }
}

/// The state of extensions of the protocol.
pub(super) struct ExtensionState {
    pub(super) tasks: TaskTable,
    pub(super) lists: ExtensionLists,
}

impl Fleet {
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.board.settings()
    }

    /// Returns the endpoint of all servers for a host with this choice.
    pub(crate) fn endpoint(&self, choice: EndpointChoice) -> Endpoint {
        let EndpointChoice { surface, profile } = choice;
        let settings = self.settings();
        let is_wrapped = settings.launch.wrapping != Wrapping::None;
        let only =
            is_wrapped.then(|| self.servers.roster().ids().next()).flatten().map(OfferId::whole);
        let profile = profile.or_else(|| settings.profiles.default_name().cloned());
        let surface = surface.or_else(|| settings.profiles.surface(profile.as_ref()));
        Endpoint { surface: surface.unwrap_or(settings.lists.surface), only, profile }
    }

    /// Returns the endpoint of the server of this name, unless the config or the profile leaves it
    /// out. A host that names no surface gets the one that the config has for the server.
    pub(crate) fn endpoint_of(&self, name: &str, choice: EndpointChoice) -> Option<Endpoint> {
        let surface = choice.surface;
        let whole = self.endpoint(choice);
        let snapshot = self.board.snapshot_at(&whole);
        let is_enabled = |offer: &&Arc<Offer>| {
            offer.id.is_whole() && !matches!(offer.presence, Presence::Disabled)
        };
        let mut offers = snapshot.offers.iter().filter(is_enabled);
        let offer = offers.find(|offer| offer.name == name)?;
        let surface =
            surface.unwrap_or_else(|| self.servers.config(offer.server()).endpoint.surface);
        Some(Endpoint { surface, only: Some(offer.id), ..whole })
    }

    /// Returns the bearer tokens that open only the endpoints of one server, by its name.
    pub(crate) fn tokens_of_servers(&self) -> Vec<(String, Vec<String>)> {
        let roster = self.servers.roster();
        let configs = roster.all().map(|(_, slot)| &slot.config);
        let with_tokens = configs.filter(|config| !config.endpoint.auth_tokens.is_empty());
        with_tokens
            .map(|config| (config.name.clone(), config.endpoint.auth_tokens.clone()))
            .collect()
    }

    /// Returns the definition of the tool that is listed under this name.
    pub(crate) fn listed_tool(&self, endpoint: &Endpoint, name: &str) -> Option<Raw> {
        let snapshot = self.board.snapshot_at(endpoint);
        let (_, tool) = snapshot.tools().tool(snapshot.tools().listed(name)?);
        Some(tool.raw.clone())
    }

    /// Returns the hosts that may use an instance: its owner's, or all that see its server.
    pub(super) fn hosts_of(&self, instance: Instance) -> Vec<Arc<dyn Host>> {
        let mut hosts = self.audience.hosts();
        hosts.retain(|host| {
            instance.is_for(host.as_ref()) && self.board.shows(&host.endpoint(), instance.server)
        });
        hosts
    }

    /// Returns the running instances that a caller uses, of the servers that its endpoint shows.
    pub(super) fn shown_instances(&self, caller: &Caller) -> Vec<(Instance, Upstream)> {
        let endpoint = caller.endpoint();
        let roster = self.servers.roster();
        let shown = roster.ids().filter(|server| self.board.shows(&endpoint, *server));
        let running = shown.filter_map(|server| {
            let instance = self.instance(server, caller);
            Some((instance, self.servers.existing(instance)?))
        });
        running.collect()
    }

    /// Returns the instance of a server that a caller uses.
    pub(super) fn instance(&self, server: ServerId, caller: &Caller) -> Instance {
        self.servers.instance(server, caller.host.as_ref())
    }
}
