//! Sessions of a fleet whose servers are in memory, with hosts that record what they get.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::{
    SessionModel,
    host_model::HostModel,
    recording_host::{RecordingHost, item},
    scenario::{Action, Item, Millis, RESOURCES, SERVERS},
};
use crate::{
    protocol::{Era, LogLevel, Meta, method},
    proxy::{
        Fleet,
        testing::{MemoryServer, fleet_in_memory, parse_config},
    },
    wire::Raw,
};

/// Returns the config with a number for each server in its environment.
fn config(numbers: [u32; 2]) -> String {
    let [a, b] = numbers.map(|number| json!({"N": number.to_string()}));
    let servers = json!({
        "a": {"command": "a", "startup": "eager", "env": a},
        "b": {"command": "b", "startup": "hybrid", "idleTimeout": "2s", "env": b},
    });
    let timeouts = json!({"request": "5s"});
    json!({"surface": "direct", "timeouts": timeouts, "mcpServers": servers}).to_string()
}

pub(super) struct World {
    start: Instant,
    fleet: Arc<Fleet>,
    servers: [Arc<MemoryServer>; 2],
    hosts: BTreeMap<u8, RecordingHost>,
    /// The hosts that have been detached, which must get nothing more.
    gone: Vec<RecordingHost>,
    /// The version of the tools and of the resources of each server.
    versions: [(u32, u32); 2],
    /// The number of reloads that concerned each server.
    reloads: [u32; 2],
}

/// The messages that a host has got, with their moments.
pub(super) struct GotItems {
    pub(super) slot: u8,
    pub(super) drops: bool,
    pub(super) items: Vec<(Millis, Item)>,
}

impl World {
    /// Starts the fleet, and waits until the servers are known.
    pub(super) fn new() -> Self {
        let servers = SERVERS.map(MemoryServer::prompt);
        let fleet = fleet_in_memory(&config([0; 2]), servers.clone());
        let (hosts, gone, versions, reloads) = Default::default();
        let world = Self { start: Instant::now(), fleet, servers, hosts, gone, versions, reloads };
        for server in 0..SERVERS.len() {
            world.list(server);
        }
        world.fleet.start([]);
        world
    }

    pub(super) async fn advance(&self, to: Millis) {
        sleep_until(self.start + Duration::from_millis(to)).await;
    }

    fn list(&self, server: usize) {
        let name = SERVERS[server];
        let (tools, resources) = self.versions[server];
        let tool = format!("tool{tools}");
        let resource = format!("{name}:resource{resources}");
        let subscribable = RESOURCES.into_iter().filter(|uri| uri.starts_with(name));
        let uris: Vec<&str> = subscribable.chain([resource.as_str()]).collect();
        self.servers[server].list(&["echo", &tool], &uris);
    }

    /// Performs an action here and in the model. Returns whether a change of lists is under way.
    pub(super) async fn act(&mut self, action: &Action, model: &mut SessionModel) -> bool {
        match action {
            Action::Attach { slot, era, drops } if model.attach(*slot, *era) => {
                self.hosts.insert(*slot, RecordingHost::attach(&self.fleet, *drops));
            }
            Action::Detach { slot } if model.detach(*slot) => {
                let host = self.hosts.remove(slot).expect("the model has the host");
                host.detach().await;
                self.gone.push(host);
            }
            Action::Stall { slot } => {
                model.stall(*slot);
                if let Some(host) = self.hosts.get(slot) {
                    host.read(false);
                }
            }
            Action::Read { slot } => {
                model.read(*slot);
                if let Some(host) = self.hosts.get(slot) {
                    host.read(true);
                }
            }
            Action::Initialized { slot } if model.initialized(*slot) => {
                self.hosts[slot].notify(method::INITIALIZED, None);
            }
            Action::Cancel { slot, position } => {
                let ids = model.host(*slot).map(HostModel::cancellable).unwrap_or_default();
                if !ids.is_empty() {
                    let id = ids[usize::from(*position) % ids.len()];
                    let params = Raw::encode(&json!({"requestId": id}));
                    self.hosts[slot].notify(method::CANCELLED, Some(params));
                    model.cancel(*slot, id);
                }
            }
            Action::Die if model.die() => self.servers[1].die(),
            Action::ChangeTools { server } if model.can_change(*server) => {
                model.announce(true);
                self.versions[*server].0 += 1;
                self.list(*server);
                return true;
            }
            Action::ChangeResources { server } if model.can_change(*server) => {
                model.announce(false);
                self.versions[*server].1 += 1;
                self.list(*server);
                return true;
            }
            Action::Reload { server } if model.reload(*server) => {
                self.reloads[*server] += 1;
                self.fleet.reload(parse_config(&config(self.reloads)));
            }
            Action::Update { resource } => self.update(RESOURCES[*resource], model),
            Action::Log { server, level, count } => {
                (0..*count).for_each(|_| self.log(*server, *level, model));
            }
            action => self.request(action, model),
        }
        false
    }

    fn update(&self, uri: &str, model: &mut SessionModel) {
        if let Some(number) = model.update(uri) {
            let server = &self.servers[super::server_of(uri)];
            let params = Raw::encode(&json!({"uri": uri, "number": number}));
            server.notify(method::RESOURCE_UPDATED, Some(&params));
        }
    }

    fn log(&self, server: usize, level: LogLevel, model: &mut SessionModel) {
        if let Some(number) = model.log(server, level) {
            let params = Raw::encode(&json!({"level": level.name(), "data": number}));
            self.servers[server].notify(method::MESSAGE, Some(&params));
        }
    }

    /// Sends the request of an action, if the action is one.
    fn request(&self, action: &Action, model: &mut SessionModel) {
        let (slot, sent) = match action {
            Action::Initialize { slot } => {
                let client = json!({"name": "host", "version": "1"});
                let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": client});
                (slot, model.initialize(*slot).map(|id| (id, method::INITIALIZE, params)))
            }
            Action::Ping { slot } => {
                (slot, model.ping(*slot).map(|id| (id, method::PING, json!({}))))
            }
            Action::Call { slot, server, delay, level, is_repeated } => {
                let call = model.call(*slot, (*server, *delay), *level, *is_repeated);
                let name = format!("{}__echo", SERVERS[*server]);
                let sent = call.map(|(id, text)| {
                    let arguments = json!({"text": text, "delay": delay});
                    let meta = level.map(|level| json!({Meta::LOG_LEVEL: level.name()}));
                    let meta = meta.unwrap_or_else(|| json!({}));
                    let params = json!({"name": name, "arguments": arguments, "_meta": meta});
                    (id, method::TOOLS_CALL, params)
                });
                (slot, sent)
            }
            Action::Subscribe { slot, resource } => {
                let uri = RESOURCES[*resource];
                let id = model.subscribe(*slot, uri);
                (slot, id.map(|id| (id, method::RESOURCES_SUBSCRIBE, json!({"uri": uri}))))
            }
            Action::Unsubscribe { slot, resource } => {
                let uri = RESOURCES[*resource];
                let id = model.unsubscribe(*slot, uri);
                (slot, id.map(|id| (id, method::RESOURCES_UNSUBSCRIBE, json!({"uri": uri}))))
            }
            Action::SetLevel { slot, level } => {
                let id = model.set_level(*slot, *level);
                let params = json!({"level": level.name()});
                (slot, id.map(|id| (id, method::LOGGING_SET_LEVEL, params)))
            }
            Action::Listen { slot, tools, resources, uris } => {
                let uris: Vec<&str> = uris.iter().map(|at| RESOURCES[*at]).collect();
                let id = model.listen(*slot, (*tools, *resources), &uris);
                let wanted = json!({"toolsListChanged": tools, "resourcesListChanged": resources,
                    "resourceSubscriptions": uris});
                let params = json!({"notifications": wanted});
                (slot, id.map(|id| (id, method::SUBSCRIPTIONS_LISTEN, params)))
            }
            _ => return,
        };
        let Some((id, method, params)) = sent else { return };
        let is_modern = model.has(*slot, Era::Modern);
        self.hosts[slot].request(id, method, &params, is_modern);
    }

    /// Returns what each attached host has got since the last call.
    pub(super) fn take_got(&self) -> Vec<GotItems> {
        let take = |(slot, host): (&u8, &RecordingHost)| {
            let items = host.take_got().into_iter();
            let items = items.map(|(at, message)| (self.millis(at), item(&message))).collect();
            GotItems { slot: *slot, drops: host.drops, items }
        };
        self.hosts.iter().map(take).collect()
    }

    /// Checks that detached hosts have got nothing.
    pub(super) fn check_gone(&self) -> Result<(), String> {
        let got = self.gone.iter().map(RecordingHost::unread);
        match got.sum() {
            0 => Ok(()),
            count => Err(format!("detached hosts have got {count} messages or bytes")),
        }
    }

    /// Checks the subscriptions at the servers, and whether the server that sleeps does so.
    pub(super) fn check_servers(&self, model: &SessionModel) -> Result<(), String> {
        for (position, server) in self.servers.iter().enumerate() {
            let expected = model.subscribed(position);
            let found = server.is_awake().then(|| server.subscribed());
            if expected != found {
                let name = SERVERS[position];
                return Err(format!("{name} is subscribed to {found:?}, expected {expected:?}"));
            }
        }
        Ok(())
    }

    /// Ends everything, and checks that nothing is left.
    pub(super) async fn end(self) -> Result<(), String> {
        self.fleet.stop().await;
        drop(self);
        // The hosts of this test stop reading.
        tokio::time::sleep(Duration::from_millis(1)).await;
        match tokio::runtime::Handle::current().metrics().num_alive_tasks() {
            0 => Ok(()),
            left => Err(format!("{left} tasks are left")),
        }
    }

    fn millis(&self, at: Instant) -> Millis {
        u64::try_from(at.duration_since(self.start).as_millis()).expect("within years")
    }
}
