//! Reading resources and subscribing to them.

use rmcp::model::ErrorCode;

use super::{
    Caller, Fleet, Subscriber,
    audience::AttemptId,
    calls::{self, Call, Feature},
    catalogs,
    instance::Instance,
    large_results, personal_resources,
};
use crate::{
    catalog::{ResourceRoute, ServerId},
    peer::CallError,
    protocol::{Era, adapt, error, method},
    wire::{Outcome, Raw, edit},
};

impl Fleet {
    /// Subscribes to a resource at its server. `params` are those of a request of the host's own. A
    /// stream that is cancelled meanwhile removes its subscriptions.
    ///
    /// # Errors
    /// If no server lists the resource, or its server cannot be reached or refuses.
    pub(crate) async fn subscribe(
        &self,
        caller: &Caller,
        subscriber: Subscriber,
        uri: &str,
        params: Option<Raw>,
    ) -> Outcome {
        let server = match find_resource(self, caller, uri).await {
            ResourceRoute::Server(server) => server,
            ResourceRoute::Unlisted => return Err(not_found(caller.client.era, uri)),
        };
        let call = Call::new(server, caller, method::RESOURCES_SUBSCRIBE, params.clone());
        let opened = match calls::open(self, &call).await {
            Ok(opened) => opened,
            Err(error) => return calls::shape(caller, call.method(), Err(error)),
        };
        let (instance, lease) = (opened.instance, &opened.lease);
        let attempt = SubscriptionAttempt::begin(self, (instance, uri.to_owned()), subscriber);
        let answer = calls::upstream(self, instance).subscribe(lease, uri, params).await;
        attempt.finish(&answer);
        opened.close(answer).unwrap_or_else(|error| Err(error::internal(error.to_string())))
    }
}

/// A request for a subscription that a server has not answered. Dropping it ends a subscription
/// that the server may have made.
struct SubscriptionAttempt<'a> {
    fleet: &'a Fleet,
    wanted: (Instance, String),
    id: AttemptId,
}

impl<'a> SubscriptionAttempt<'a> {
    fn begin(fleet: &'a Fleet, wanted: (Instance, String), subscriber: Subscriber) -> Self {
        let id = fleet.audience.subscriptions().begin(wanted.clone(), subscriber);
        Self { fleet, wanted, id }
    }

    fn finish(self, answer: &Result<Outcome, CallError>) {
        let subscriptions = self.fleet.audience.subscriptions();
        match answer {
            Ok(Ok(_)) if subscriptions.succeed(self.id) => {}
            // The host has unsubscribed before the server was noted as subscribed.
            Ok(Ok(_)) => end_later(self.fleet, vec![self.wanted.clone()]),
            // The server has no subscription to end.
            Ok(Err(_)) => drop(subscriptions.fail(self.id)),
            // The attempt is dropped.
            Err(_) => {}
        }
    }
}

impl Drop for SubscriptionAttempt<'_> {
    fn drop(&mut self) {
        // An attempt that has succeeded or was refused is not found.
        let unwanted = self.fleet.audience.subscriptions().fail(self.id);
        end_later(self.fleet, unwanted.into_iter().collect());
    }
}

pub(super) async fn read_resource(fleet: &Fleet, caller: &Caller, params: Raw) -> Outcome {
    let uri = uri_of(&params, method::RESOURCES_READ)?;
    if let Some(kept) = large_results::read_resource(fleet, caller, &uri).await {
        return kept
            .map(|result| adapt::own_result(method::RESOURCES_READ, caller.client.era, result));
    }
    match find_resource(fleet, caller, &uri).await {
        ResourceRoute::Server(server) => {
            fleet.board.note_read(caller.host.principal(), server, &uri);
            let call = Call::new(server, caller, method::RESOURCES_READ, Some(params));
            calls::answer(fleet, call).await
        }
        ResourceRoute::Unlisted => {
            ask_for_unlisted(fleet, caller, (method::RESOURCES_READ, &uri), &params, |_| true).await
        }
    }
}

/// Returns the server of a resource, as soon as it is known.
pub(super) async fn find_resource(fleet: &Fleet, caller: &Caller, uri: &str) -> ResourceRoute {
    match route_resource(fleet, caller, uri) {
        ResourceRoute::Unlisted => {
            catalogs::wait_for_first_attempts(fleet).await;
            route_resource(fleet, caller, uri)
        }
        found @ ResourceRoute::Server(_) => found,
    }
}

/// Returns the server of a resource. At an endpoint of one server every resource is that server's.
pub(super) fn route_resource(fleet: &Fleet, caller: &Caller, uri: &str) -> ResourceRoute {
    if let Some(server) = caller.endpoint().only_server() {
        return ResourceRoute::Server(server);
    }
    if let Some(server) = personal_resources::server_with(fleet, caller, uri) {
        return ResourceRoute::Server(server);
    }
    let route = fleet.board.snapshot_for(&caller.viewer()).merged_lists().route_resource(uri);
    match route {
        ResourceRoute::Unlisted => {
            lister_of(fleet, caller, uri).map_or(route, ResourceRoute::Server)
        }
        ResourceRoute::Server(_) => route,
    }
}

/// Asks for a resource that no server lists, such as the target of a `resource_link`, at those
/// awake servers that the caller sees and for which `is_asked` holds, in config order.
pub(super) async fn ask_for_unlisted(
    fleet: &Fleet,
    caller: &Caller,
    (method, uri): (&str, &str),
    params: &Raw,
    is_asked: impl Fn(ServerId) -> bool,
) -> Outcome {
    let mut refusals = Vec::new();
    let (roster, endpoint) = (fleet.servers.roster(), caller.endpoint());
    let is_shown = |server: &ServerId| fleet.board.shows(&endpoint, *server);
    for server in roster.ids().filter(is_shown).filter(|server| is_asked(*server)) {
        let instance = fleet.instance(server, caller);
        let Some(upstream) = fleet.servers.existing(instance) else { continue };
        let Some(lease) = upstream.awake().filter(|lease| lease.greeting().offers("resources"))
        else {
            continue;
        };
        let call = Call::new(server, caller, method, Some(params.clone()));
        let call = call.about(Feature::Resources).on(instance, lease);
        match calls::run(fleet, call).await {
            Ok(Ok(result)) => return Ok(result),
            Ok(Err(refusal)) => refusals.push(refusal),
            Err(cause) => {
                let server = upstream.name();
                tracing::debug!(server, %cause, uri, "server did not return the resource");
            }
        }
    }
    match <[Raw; 1]>::try_from(refusals) {
        // The refusal of the only server that was asked is the answer.
        Ok([refusal]) => Err(refusal),
        Err(_) => Err(not_found(caller.client.era, uri)),
    }
}

pub(super) async fn subscribe_resource(fleet: &Fleet, caller: &Caller, params: Raw) -> Outcome {
    let uri = uri_of(&params, method::RESOURCES_SUBSCRIBE)?;
    let subscriber = Subscriber { host: caller.host.id(), stream: None };
    fleet.subscribe(caller, subscriber, &uri, Some(params)).await
}

/// Removes a host's subscription. Without another subscriber the server is asked to end it.
pub(super) async fn unsubscribe_resource(fleet: &Fleet, caller: &Caller, params: Raw) -> Outcome {
    let uri = uri_of(&params, method::RESOURCES_UNSUBSCRIBE)?;
    let subscriber = Subscriber { host: caller.host.id(), stream: None };
    let unwanted =
        fleet.audience.subscriptions().remove(|wanted, of| wanted.1 == uri && *of == subscriber);
    let mut outcome = Ok(Raw::empty_object());
    for (instance, uri) in unwanted {
        outcome = end_subscription(fleet, instance, &uri, Some(params.clone())).await;
    }
    outcome
}

/// Has servers end subscriptions, without waiting for that.
pub(super) fn end_later(fleet: &Fleet, unwanted: Vec<(Instance, String)>) {
    let Some(owned) = fleet.this.upgrade().filter(|_| !unwanted.is_empty()) else { return };
    fleet.context.tasks.spawn(async move {
        for (instance, uri) in unwanted {
            if owned.audience.subscriptions().contains(&(instance, uri.clone())) {
                // Another host has subscribed since.
                continue;
            }
            if let Err(refusal) = end_subscription(&owned, instance, &uri, None).await {
                tracing::debug!(uri, %refusal, "cannot unsubscribe");
            }
        }
    });
}

async fn end_subscription(
    fleet: &Fleet,
    instance: Instance,
    uri: &str,
    params: Option<Raw>,
) -> Outcome {
    let Some(upstream) = fleet.servers.existing(instance) else {
        return Ok(Raw::empty_object());
    };
    let Some(lease) = upstream.awake() else {
        upstream.forget_subscription(uri);
        return Ok(Raw::empty_object());
    };
    let ended = upstream.unsubscribe(&lease, uri, params).await;
    ended.unwrap_or_else(|cause| Err(error::internal(cause.to_string())))
}

pub(super) fn relay_update(fleet: &Fleet, instance: Instance, uri: &str, params: &Raw) {
    let wanted_by = fleet.audience.subscriptions().hosts_of(&(instance, uri.to_owned()));
    for host in fleet.audience.hosts().iter().filter(|host| wanted_by.contains(&host.id())) {
        host.resource_updated(uri, params);
    }
}

fn uri_of(params: &Raw, method: &str) -> Result<String, Raw> {
    edit::get_str(params, "uri")
        .ok_or_else(|| error::invalid_params(format!("{method} needs a \"uri\"")))
}

/// Returns the error for an unknown resource, with the code of the host's revision.
fn not_found(era: Era, uri: &str) -> Raw {
    let code = match era {
        Era::Legacy => ErrorCode::RESOURCE_NOT_FOUND,
        Era::Modern => ErrorCode::INVALID_PARAMS,
    };
    error::error(code, format!("unknown resource: {uri}"))
}

/// Returns the live server that has listed a URI for an extension only.
fn lister_of(fleet: &Fleet, caller: &Caller, uri: &str) -> Option<ServerId> {
    let having = fleet.extensions.lists.having(uri);
    let snapshot = fleet.board.snapshot_for(&caller.viewer());
    let mut live = snapshot.live();
    live.find(|(_, view, _)| having.contains(&view.server())).map(|(_, view, _)| view.server())
}
