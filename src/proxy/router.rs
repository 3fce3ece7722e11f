//! From a host's request to whoever answers it.

use super::{
    Caller, Fleet, calls::Outbound, lists::has_cursor, resources::reply, tasks::is_of_tasks,
};
use crate::{
    catalog::{ResourceRoute, ServerId},
    protocol::{Era, adapt, error, method},
    wire::{Outcome, Raw, edit},
};

impl Fleet {
    /// Answers a request of a host: everything but the handshake, which is the session's.
    ///
    /// # Errors
    /// The error object to answer with: the server's own, or ours.
    pub async fn handle(&self, caller: &Caller, method: &str, params: Option<Raw>) -> Outcome {
        // Requests other than calls are boxed: a task is as large as the largest way through it, and is
        // moved when it is spawned.
        if caller.request.is_some()
            && let Some(resumed) = Box::pin(self.asking.resume(caller)).await
        {
            return resumed;
        }
        let params = params.map(|params| self.asking.without_answers(params));
        match params {
            Some(params)
                if method == method::TOOLS_CALL && !is_left_to_sole(caller, method, &params) =>
            {
                self.call_tool(caller, &params).await
            }
            params => Box::pin(self.handle_other(caller, method, params)).await,
        }
    }

    async fn handle_other(&self, caller: &Caller, method: &str, params: Option<Raw>) -> Outcome {
        let era = caller.client.era;
        let own = |result: Raw| Ok(adapt::own_result(method, era, result));
        let given = || params.clone().unwrap_or_else(Raw::empty_object);
        if is_list(method)
            && let Some(listed) = self.list_of_sole(caller, method, params.as_ref()).await
        {
            return listed;
        }
        if let Some(server) = caller.endpoint().passes_through()
            && is_left_to_sole(caller, method, &given())
        {
            return reply(self.forward(Outbound::new(server, caller, method, params)).await);
        }
        match (method, era) {
            (method, _) if is_list(method) && has_cursor(&given()) => {
                Err(error::invalid_params("unknown cursor: the lists of dormouse have one page"))
            }
            (method::TOOLS_LIST, _) => own(self.list_tools(caller).await?),
            (method::TOOLS_CALL, _) => self.call_tool(caller, &given()).await,
            (method::RESOURCES_LIST, _) => own(self.list_resources(caller).await?),
            (method::RESOURCE_TEMPLATES_LIST, _) => own(self.list_templates(caller).await?),
            (method::RESOURCES_READ, _) => self.read_resource(caller, given()).await,
            (method::RESOURCES_SUBSCRIBE, Era::Legacy) => {
                self.subscribe_resource(caller, given()).await
            }
            (method::RESOURCES_UNSUBSCRIBE, Era::Legacy) => {
                self.unsubscribe_resource(caller, given()).await
            }
            (method::PROMPTS_LIST, _) => own(self.list_prompts(caller).await?),
            (method::PROMPTS_GET, _) => self.get_prompt(caller, given()).await,
            (method::COMPLETION_COMPLETE, _) => self.complete(caller, given()).await,
            (method::LOGGING_SET_LEVEL, Era::Legacy) => self.set_log_level(caller, params).await,
            (method, era) if is_of_tasks(era, method) => {
                self.handle_task(caller, method, given()).await
            }
            // These belong to a legacy session.
            (
                method::LOGGING_SET_LEVEL
                | method::RESOURCES_SUBSCRIBE
                | method::RESOURCES_UNSUBSCRIBE,
                Era::Modern,
            ) => Err(error::method_not_found(method)),
            _ => match caller.endpoint().only {
                Some(server) => {
                    reply(self.forward(Outbound::new(server, caller, method, params)).await)
                }
                None => self.call_extension(caller, method, params).await,
            },
        }
    }

    async fn get_prompt(&self, caller: &Caller, params: Raw) -> Outcome {
        let Some(name) = edit::get_str(&params, "name") else {
            return Err(error::invalid_params("prompts/get needs a \"name\""));
        };
        match self.resolve_prompt(caller, &name) {
            Some((server, own_name)) => {
                let params = renamed(&params, &name, &own_name);
                reply(
                    self.forward(Outbound::new(server, caller, method::PROMPTS_GET, Some(params)))
                        .await,
                )
            }
            None => Err(error::invalid_params(format!("unknown prompt: {name}"))),
        }
    }

    /// The server of a prompt, and its name there. A single server has whatever nobody else can have.
    fn resolve_prompt(&self, caller: &Caller, name: &str) -> Option<(ServerId, String)> {
        if let Some(server) = caller.endpoint().only {
            return Some((server, name.to_owned()));
        }
        self.board.snapshot_for(caller.viewer()).resolve_prompt(name)
    }

    async fn complete(&self, caller: &Caller, params: Raw) -> Outcome {
        let reference = edit::get(&params, "ref").unwrap_or_else(Raw::empty_object);
        let (name, uri) = (edit::get_str(&reference, "name"), edit::get_str(&reference, "uri"));
        let (server, reference, method) = match (name, uri) {
            (Some(name), _) => {
                let Some((server, own_name)) = self.resolve_prompt(caller, &name) else {
                    return Err(error::invalid_params(format!("unknown prompt: {name}")));
                };
                (server, renamed(&reference, &name, &own_name), "prompts/")
            }
            (None, Some(uri)) => match self.route_resource(caller, &uri) {
                ResourceRoute::Server(server) => (server, reference, "resources/"),
                ResourceRoute::Unlisted => {
                    return Err(error::invalid_params(format!("unknown resource template: {uri}")));
                }
            },
            (None, None) => {
                return Err(error::invalid_params("\"ref\" needs the name of a prompt or a uri"));
            }
        };
        if let Err(refusal) = self.check_feature(server, method) {
            return Err(error::internal(refusal.to_string()));
        }
        let params = edit::set(&params, "ref", &reference);
        reply(
            self.forward(Outbound::new(server, caller, method::COMPLETION_COMPLETE, Some(params)))
                .await,
        )
    }
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

/// Whether a request is malformed, and the server of a host that talks to it alone has its own words for that.
fn is_left_to_sole(caller: &Caller, method: &str, params: &Raw) -> bool {
    caller.endpoint().passes_through().is_some() && lacks_address(method, params)
}

/// Whether the params of a request for something that a server has do not tell what.
fn lacks_address(method: &str, params: &Raw) -> bool {
    match method {
        method::TOOLS_CALL | method::PROMPTS_GET => edit::get_str(params, "name").is_none(),
        method::RESOURCES_READ => edit::get_str(params, "uri").is_none(),
        method::COMPLETION_COMPLETE => edit::get(params, "ref").is_none(),
        _ => false,
    }
}

/// `object` with its `name` replaced, where that differs.
fn renamed(object: &Raw, name: &str, own_name: &str) -> Raw {
    if name == own_name {
        object.clone()
    } else {
        edit::set(object, "name", &Raw::encode(own_name))
    }
}
