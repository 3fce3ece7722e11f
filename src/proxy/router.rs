//! Routing of host requests by method.

use super::{
    Caller, Fleet,
    calls::{self, Call, Feature},
    catalogs, extensions, lists, notifications,
    request_record::RequestRecord,
    resources,
    tasks::{self, is_of_tasks},
    tool_calls,
};
use crate::{
    catalog::{ResourceRoute, ServerId},
    protocol::{Era, adapt, error, has_cursor, method},
    wire::{Outcome, Raw, edit},
};

impl Fleet {
    /// Makes a request a part of a trace, if traces are recorded. `meta`: its `_meta`.
    pub(crate) fn traced(&self, caller: Caller, meta: Option<&Raw>) -> Caller {
        Caller { span: self.events.sink().and_then(|sink| sink.trace(meta)), ..caller }
    }

    /// Answers a request of a host, except for the handshake, which the session answers.
    ///
    /// # Errors
    /// The error object to answer with: the server's own, or one of dormouse.
    pub(crate) async fn handle(
        &self,
        caller: &Caller,
        method: &str,
        params: Option<Raw>,
    ) -> Outcome {
        let Some(sink) = self.events.sink() else {
            return self.route(caller, method, params).await;
        };
        let record = RequestRecord::begin(sink, caller, method, params.as_ref());
        let outcome = self.route(caller, method, params).await;
        record.end(&outcome);
        outcome
    }

    async fn route(&self, caller: &Caller, method: &str, params: Option<Raw>) -> Outcome {
        // Requests other than calls are boxed: a task is as large as the largest way through it,
        // and is moved when it is spawned.
        if caller.request.is_some()
            && let Some(resumed) = Box::pin(self.asking.resume(caller)).await
        {
            return resumed;
        }
        let params = params.map(|params| self.asking.without_answers(caller, params));
        if method == method::TOOLS_CALL && sole_addressee(caller, method, params.as_ref()).is_none()
        {
            let params = params.unwrap_or_else(Raw::empty_object);
            return tool_calls::call_tool(self, caller, &params).await;
        }
        Box::pin(handle_other(self, caller, method, params)).await
    }
}

async fn handle_other(
    fleet: &Fleet,
    caller: &Caller,
    method: &str,
    params: Option<Raw>,
) -> Outcome {
    let era = caller.client.era;
    let own = |result: Raw| Ok(adapt::own_result(method, era, result));
    let given = || params.clone().unwrap_or_else(Raw::empty_object);
    if is_list(method)
        && let Some(listed) = lists::list_of_sole(fleet, caller, method, params.as_ref()).await
    {
        return listed;
    }
    if let Some(server) = sole_addressee(caller, method, params.as_ref()) {
        return calls::answer(fleet, Call::new(server, caller, method, params)).await;
    }
    match (method, era) {
        (method, _) if is_list(method) && has_cursor(&given()) => {
            Err(error::invalid_params("unknown cursor: lists of dormouse have only one page"))
        }
        (method::TOOLS_LIST, _) => own(lists::list_tools(fleet, caller).await?),
        (method::RESOURCES_LIST, _) => own(lists::list_resources(fleet, caller).await?),
        (method::RESOURCE_TEMPLATES_LIST, _) => own(lists::list_templates(fleet, caller).await?),
        (method::RESOURCES_READ, _) => resources::read_resource(fleet, caller, given()).await,
        (method::RESOURCES_SUBSCRIBE, Era::Legacy) => {
            resources::subscribe_resource(fleet, caller, given()).await
        }
        (method::RESOURCES_UNSUBSCRIBE, Era::Legacy) => {
            resources::unsubscribe_resource(fleet, caller, given()).await
        }
        (method::PROMPTS_LIST, _) => own(lists::list_prompts(fleet, caller).await?),
        (method::PROMPTS_GET, _) => get_prompt(fleet, caller, given()).await,
        (method::COMPLETION_COMPLETE, _) => complete(fleet, caller, given()).await,
        (method::LOGGING_SET_LEVEL, Era::Legacy) => {
            notifications::set_log_level(fleet, caller, params).await
        }
        (method, era) if is_of_tasks(era, method) => {
            tasks::handle_task(fleet, caller, method, given()).await
        }
        // These methods belong to a legacy session.
        (
            method::LOGGING_SET_LEVEL | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE,
            Era::Modern,
        ) => Err(error::method_not_found(method)),
        _ => match caller.endpoint().only_server() {
            Some(server) => calls::answer(fleet, Call::new(server, caller, method, params)).await,
            None => extensions::call_extension(fleet, caller, method, params).await,
        },
    }
}

async fn get_prompt(fleet: &Fleet, caller: &Caller, params: Raw) -> Outcome {
    let Some(name) = edit::get_str(&params, "name") else {
        return Err(error::invalid_params("prompts/get needs a \"name\""));
    };
    match find_prompt(fleet, caller, &name).await {
        Some((server, own_name)) => {
            let params = renamed(&params, &name, &own_name);
            let call = Call::new(server, caller, method::PROMPTS_GET, Some(params));
            calls::answer(fleet, call).await
        }
        None => Err(error::invalid_params(format!("unknown prompt: {name}"))),
    }
}

/// Returns the server of a prompt and the prompt's name there, as soon as it is known.
async fn find_prompt(fleet: &Fleet, caller: &Caller, name: &str) -> Option<(ServerId, String)> {
    if let Some(found) = resolve_prompt(fleet, caller, name) {
        return Some(found);
    }
    catalogs::wait_for_first_attempts(fleet).await;
    resolve_prompt(fleet, caller, name)
}

/// Returns the server of a prompt and the prompt's name there. At an endpoint of one server every
/// prompt is that server's.
fn resolve_prompt(fleet: &Fleet, caller: &Caller, name: &str) -> Option<(ServerId, String)> {
    if let Some(server) = caller.endpoint().only_server() {
        return Some((server, name.to_owned()));
    }
    fleet.board.snapshot_for(&caller.viewer()).merged_lists().resolve_prompt(name)
}

async fn complete(fleet: &Fleet, caller: &Caller, params: Raw) -> Outcome {
    let reference = edit::get(&params, "ref").unwrap_or_else(Raw::empty_object);
    let (name, uri) = (edit::get_str(&reference, "name"), edit::get_str(&reference, "uri"));
    let (server, reference, feature) = match (name, uri) {
        (Some(name), _) => {
            let Some((server, own_name)) = find_prompt(fleet, caller, &name).await else {
                return Err(error::invalid_params(format!("unknown prompt: {name}")));
            };
            (server, renamed(&reference, &name, &own_name), Feature::Prompts)
        }
        (None, Some(uri)) => match resources::find_resource(fleet, caller, &uri).await {
            ResourceRoute::Server(server) => (server, reference, Feature::Resources),
            ResourceRoute::Unlisted => {
                return Err(error::invalid_params(format!("unknown resource template: {uri}")));
            }
        },
        (None, None) => {
            return Err(error::invalid_params("\"ref\" needs the name of a prompt or a uri"));
        }
    };
    let params = edit::set(&params, "ref", &reference);
    let call = Call::new(server, caller, method::COMPLETION_COMPLETE, Some(params));
    calls::answer(fleet, call.about(feature)).await
}

fn is_list(method: &str) -> bool {
    matches!(
        method,
        method::TOOLS_LIST
            | method::RESOURCES_LIST
            | method::RESOURCE_TEMPLATES_LIST
            | method::PROMPTS_LIST
    )
}

/// Returns the server of a host that talks to it directly, if the server has to judge a malformed
/// request.
fn sole_addressee(caller: &Caller, method: &str, params: Option<&Raw>) -> Option<ServerId> {
    caller.endpoint().passes_through().filter(|_| lacks_address(method, params))
}

/// Returns whether the params lack the name of what a request is about.
fn lacks_address(method: &str, params: Option<&Raw>) -> bool {
    let empty = Raw::empty_object();
    let params = params.unwrap_or(&empty);
    match method {
        method::TOOLS_CALL | method::PROMPTS_GET => edit::get_str(params, "name").is_none(),
        method::RESOURCES_READ => edit::get_str(params, "uri").is_none(),
        method::COMPLETION_COMPLETE => edit::get(params, "ref").is_none(),
        _ => false,
    }
}

/// Replaces the `name` of an object if it differs.
fn renamed(object: &Raw, name: &str, own_name: &str) -> Raw {
    if name == own_name {
        object.clone()
    } else {
        edit::set(object, "name", &Raw::encode(own_name))
    }
}
