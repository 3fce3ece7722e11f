//! From a host's request to whoever answers it.

use super::{Caller, Fleet, resources::reply};
use crate::{
    catalog::ResourceRoute,
    protocol::{Era, adapt, error},
    wire::{Notification, Outcome, Raw, edit},
};

impl Fleet {
    /// Answers a request of a host: everything but the handshake, which is the session's.
    ///
    /// # Errors
    /// The error object to answer with: the server's own, or ours.
    pub async fn handle(&self, caller: &Caller, method: &str, params: Option<Raw>) -> Outcome {
        let era = caller.client.era;
        let own = |result: Raw| Ok(adapt::own_result(method, era, result));
        let given = || params.clone().unwrap_or_else(Raw::empty_object);
        match (method, era) {
            ("tools/list" | "resources/list" | "resources/templates/list" | "prompts/list", _)
                if edit::get(&given(), "cursor")
                    .is_some_and(|cursor| cursor.as_bytes() != b"null") =>
            {
                Err(error::invalid_params("unknown cursor: the lists of dormouse have one page"))
            }
            ("tools/list", _) => own(self.list_tools().await),
            ("tools/call", _) => self.call_tool(caller, &given()).await,
            ("resources/list", _) => own(self.list_resources().await),
            ("resources/templates/list", _) => own(self.list_templates().await),
            ("resources/read", _) => self.read_resource(caller, given()).await,
            ("resources/subscribe", Era::Legacy) => self.subscribe_resource(caller, given()).await,
            ("resources/unsubscribe", Era::Legacy) => {
                self.unsubscribe_resource(caller, given()).await
            }
            ("prompts/list", _) => own(self.list_prompts().await),
            ("prompts/get", _) => self.get_prompt(caller, given()).await,
            ("completion/complete", _) => self.complete(caller, given()).await,
            ("logging/setLevel", Era::Legacy) => own(self.set_log_level(&given())),
            _ if self.settings.single_server => {
                reply(self.forward(0, caller, method, params).await)
            }
            _ => Err(error::method_not_found(method)),
        }
    }

    /// Takes a notification of a host that concerns servers.
    pub fn notice(&self, notification: &Notification) {
        let is_roots = notification.method == "notifications/roots/list_changed";
        if !is_roots && !self.settings.single_server {
            return;
        }
        for lease in self.upstreams().iter().filter_map(crate::upstream::Upstream::awake) {
            if lease.greeting().era == Era::Legacy || !is_roots {
                lease.peer().notify(&notification.method, notification.params.clone());
            }
        }
    }

    async fn get_prompt(&self, caller: &Caller, params: Raw) -> Outcome {
        let Some(name) = edit::get_str(&params, "name") else {
            return Err(error::invalid_params("prompts/get needs a \"name\""));
        };
        match self.resolve_prompt(&name) {
            Some((server, own_name)) => {
                let params = renamed(&params, &name, &own_name);
                reply(self.forward(server, caller, "prompts/get", Some(params)).await)
            }
            None => Err(error::invalid_params(format!("unknown prompt: {name}"))),
        }
    }

    /// The server of a prompt, and its name there. A single server has whatever nobody else can have.
    fn resolve_prompt(&self, name: &str) -> Option<(usize, String)> {
        if self.settings.single_server {
            return Some((0, name.to_owned()));
        }
        self.snapshot().resolve_prompt(name, self.settings.listing)
    }

    async fn complete(&self, caller: &Caller, params: Raw) -> Outcome {
        let reference = edit::get(&params, "ref").unwrap_or_else(Raw::empty_object);
        let (name, uri) = (edit::get_str(&reference, "name"), edit::get_str(&reference, "uri"));
        let (server, reference) = match (name, uri) {
            (Some(name), _) => {
                let Some((server, own_name)) = self.resolve_prompt(&name) else {
                    return Err(error::invalid_params(format!("unknown prompt: {name}")));
                };
                (server, renamed(&reference, &name, &own_name))
            }
            (None, Some(uri)) => {
                match self.snapshot().route_resource(&uri, self.settings.listing) {
                    ResourceRoute::Server(server) => (server, reference),
                    ResourceRoute::Unlisted => {
                        return Err(error::invalid_params(format!(
                            "unknown resource template: {uri}"
                        )));
                    }
                }
            }
            (None, None) => {
                return Err(error::invalid_params("\"ref\" needs the name of a prompt or a uri"));
            }
        };
        let params = edit::set(&params, "ref", &reference);
        reply(self.forward(server, caller, "completion/complete", Some(params)).await)
    }

    fn set_log_level(&self, params: &Raw) -> Raw {
        for upstream in self.upstreams() {
            let (upstream, params) = (upstream.clone(), params.clone());
            self.tasks.spawn(async move { upstream.set_log_level(&params).await });
        }
        Raw::empty_object()
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
