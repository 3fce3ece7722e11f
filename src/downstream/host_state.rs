//! The handshake of a host, and its subscriptions.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::reply_channel::OpenResponse;
use crate::{
    catalog::Changes,
    protocol::{ClientIdentity, Meta, method},
    wire::{Id, Notification, Raw, edit},
};

/// The state of a host's handshake, which determines the notifications that the host receives, and
/// their form.
#[derive(Debug, Default)]
pub(super) enum HostState {
    /// The host has sent nothing yet.
    #[default]
    Silent,
    /// The host has sent `initialize`. It receives no notifications until it is ready.
    Initializing(Arc<ClientIdentity>),
    /// A legacy session, which receives a notification of every change.
    Initialized(Arc<ClientIdentity>),
    /// The host has sent a modern request. It receives the notifications that it subscribes to.
    Modern { client: Arc<ClientIdentity>, listens: Vec<ListenStream> },
}

impl HostState {
    pub(super) fn client(&self) -> Option<&Arc<ClientIdentity>> {
        match self {
            Self::Silent => None,
            Self::Initializing(client)
            | Self::Initialized(client)
            | Self::Modern { client, .. } => Some(client),
        }
    }

    /// Records that the host is ready: it has sent `notifications/initialized`, or a first request,
    /// which implies the same.
    pub(super) fn mark_ready(&mut self) {
        if let Self::Initializing(client) = self {
            *self = Self::Initialized(client.clone());
        }
    }

    /// Records a modern request, and the client that it names.
    pub(super) fn record_modern_request(&mut self, said: &ClientIdentity) {
        match self {
            Self::Modern { client, .. } if **client == *said => {}
            Self::Modern { client, .. } => *client = Arc::new(said.detached()),
            Self::Silent | Self::Initializing(_) | Self::Initialized(_) => {
                let client = Arc::new(said.detached());
                *self = Self::Modern { client, listens: Vec::new() };
            }
        }
    }

    /// Records a stream that is being opened. It carries nothing until it is acknowledged.
    pub(super) fn listen(&mut self, listen: ListenStream) {
        if let Self::Modern { listens, .. } = self {
            listens.push(listen);
        }
    }

    /// Adds a resource to a stream, unless the stream has ended in the meantime.
    pub(super) fn accept_resource(&mut self, id: &Id, uri: String) {
        if let Some(listen) = self.find(id) {
            listen.uris.push(uri);
        }
    }

    /// Adds a task to a stream, unless the stream has ended in the meantime.
    pub(super) fn accept_task(&mut self, id: &Id, task: String) {
        if let Some(listen) = self.find(id) {
            listen.tasks.push(task);
        }
    }

    /// Opens the stream, and returns the notification of that.
    pub(super) fn acknowledge(&mut self, id: &Id) -> Option<Notification> {
        let listen = self.find(id)?;
        listen.is_open = true;
        Some(listen.acknowledgement())
    }

    fn find(&mut self, id: &Id) -> Option<&mut ListenStream> {
        let Self::Modern { listens, .. } = self else { return None };
        listens.iter_mut().find(|listen| listen.id == *id)
    }

    /// Ends the stream that the request `id` opened. Returns whether there was one.
    pub(super) fn end_stream(&mut self, id: &Id) -> bool {
        let Self::Modern { listens, .. } = self else { return false };
        let before = listens.len();
        listens.retain(|listen| listen.id != *id);
        listens.len() < before
    }

    /// Returns the notifications that tell this host of `changes`: tools, then resources, then
    /// prompts.
    pub(super) fn announcements(&self, changes: Changes) -> Vec<Notification> {
        let lists = [
            (changes.tools, method::TOOLS_LIST_CHANGED, ListenStream::wants_tools as ListFilter),
            (changes.resources, method::RESOURCES_LIST_CHANGED, ListenStream::wants_resources),
            (changes.prompts, method::PROMPTS_LIST_CHANGED, ListenStream::wants_prompts),
        ];
        let to_tell = lists.into_iter().filter(|(is_changed, ..)| *is_changed);
        to_tell.flat_map(|(_, method, wants)| self.notifications_for(method, None, wants)).collect()
    }

    /// Returns the notifications that tell this host of an update of `uri`.
    pub(super) fn resource_updates(&self, uri: &str, params: &Raw) -> Vec<Notification> {
        let method = method::RESOURCE_UPDATED;
        let bare = without_stream(params);
        self.notifications_for(method, Some(&bare), |listen| {
            listen.uris.iter().any(|other| other == uri)
        })
    }

    /// Returns the notifications that tell this host the status of a task. `shown`: the task's id
    /// as the host knows it.
    pub(super) fn task_updates(&self, shown: &str, params: &Raw) -> Vec<Notification> {
        let bare = without_stream(params);
        self.notifications_for(method::TASK_UPDATED, Some(&bare), |listen| {
            listen.tasks.iter().any(|other| other == shown)
        })
    }

    fn notifications_for(
        &self,
        method: &str,
        params: Option<&Raw>,
        wants: impl Fn(&ListenStream) -> bool,
    ) -> Vec<Notification> {
        let notification = |params| Notification { method: method.to_owned(), params };
        match self {
            Self::Silent | Self::Initializing(_) => Vec::new(),
            Self::Initialized(_) => vec![notification(params.cloned())],
            Self::Modern { listens, .. } => listens
                .iter()
                .filter(|listen| listen.is_open && wants(listen))
                .map(|listen| {
                    let params = params.cloned().unwrap_or_else(Raw::empty_object);
                    notification(Some(listen.marked(&params)))
                })
                .collect(),
        }
    }
}

/// Removes a server's subscription id from the `params` of a notification: it belongs to a stream
/// between dormouse and the server, not to one of the host.
fn without_stream(params: &Raw) -> Raw {
    match edit::get(params, "_meta") {
        Some(meta) => edit::set(params, "_meta", &edit::without(&meta, &[Meta::SUBSCRIPTION_ID])),
        None => params.clone(),
    }
}

type ListFilter = fn(&ListenStream) -> bool;

/// One `subscriptions/listen` stream (2026-07-28, basic/patterns, Subscribe and Notify).
#[expect(clippy::struct_excessive_bools, reason = "the filter of the protocol is three flags")]
#[derive(Clone, Debug)]
pub(super) struct ListenStream {
    pub(super) id: Id,
    tools: bool,
    resources: bool,
    prompts: bool,
    /// The accepted resources.
    pub(super) uris: Vec<String>,
    /// The accepted tasks.
    tasks: Vec<String>,
    /// True after the stream was acknowledged.
    is_open: bool,
    /// Keeps the stream's own response open, if it has one.
    _response: Option<Arc<OpenResponse>>,
}

/// The resources and tasks that a stream subscribes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RequestedTargets {
    pub(super) uris: Vec<String>,
    /// The ids of tasks (SEP-2663, Task Status Notifications).
    pub(super) tasks: Vec<String>,
}

impl ListenStream {
    /// Reads the filter in the `params` of the request, and the resources and tasks that it names.
    pub(super) fn read(
        id: Id,
        params: &Raw,
        response: Option<Arc<OpenResponse>>,
    ) -> (Self, RequestedTargets) {
        let filter = edit::get(params, "notifications").unwrap_or_else(Raw::empty_object);
        let flag = |name| edit::get(&filter, name).is_some_and(|flag| flag.as_bytes() == b"true");
        let named = |name| {
            let names = edit::get(&filter, name).and_then(|names| names.read().ok());
            names.unwrap_or_default()
        };
        let wanted =
            RequestedTargets { uris: named("resourceSubscriptions"), tasks: named("taskIds") };
        let listen = Self {
            id,
            tools: flag("toolsListChanged"),
            resources: flag("resourcesListChanged"),
            prompts: flag("promptsListChanged"),
            uris: Vec::new(),
            tasks: Vec::new(),
            is_open: false,
            _response: response,
        };
        (listen, wanted)
    }

    /// Builds `notifications/subscriptions/acknowledged`, the first message of the stream.
    fn acknowledgement(&self) -> Notification {
        let mut accepted = Map::new();
        for (name, is_accepted) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if is_accepted {
                accepted.insert(name.to_owned(), Value::Bool(true));
            }
        }
        if !self.uris.is_empty() {
            accepted.insert("resourceSubscriptions".to_owned(), json!(self.uris));
        }
        if !self.tasks.is_empty() {
            accepted.insert("taskIds".to_owned(), json!(self.tasks));
        }
        let params = Raw::encode(&json!({"notifications": accepted}));
        Notification {
            method: method::SUBSCRIPTIONS_ACKNOWLEDGED.to_owned(),
            params: Some(self.marked(&params)),
        }
    }

    /// Builds the result that ends the stream in order.
    pub(super) fn completion(&self) -> Raw {
        self.marked(&Raw::encode(&json!({"resultType": "complete"})))
    }

    /// Adds the stream's id to the `_meta` of `object`.
    fn marked(&self, object: &Raw) -> Raw {
        edit::set_within(object, "_meta", &[(Meta::SUBSCRIPTION_ID, self.id.raw())])
    }

    fn wants_tools(&self) -> bool {
        self.tools
    }

    fn wants_resources(&self) -> bool {
        self.resources
    }

    fn wants_prompts(&self) -> bool {
        self.prompts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Changes = Changes { tools: true, resources: true, prompts: true };

    fn lines(notifications: Vec<Notification>) -> Vec<String> {
        let line = |n: Notification| {
            format!("{} {}", n.method, n.params.map(|p| p.to_string()).unwrap_or_default())
        };
        notifications.into_iter().map(line).collect()
    }

    #[test]
    fn ready_legacy_host_receives_every_change() {
        let mut state = HostState::Initializing(Arc::new(ClientIdentity::ourselves()));
        assert!(state.announcements(ALL).is_empty());
        state.mark_ready();
        assert_eq!(
            lines(state.announcements(ALL)),
            [
                "notifications/tools/list_changed ",
                "notifications/resources/list_changed ",
                "notifications/prompts/list_changed "
            ]
        );
        let params =
            Raw::parse(r#"{"uri":"a","_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#)
                .unwrap();
        assert_eq!(
            lines(state.resource_updates("a", &params)),
            [r#"notifications/resources/updated {"uri":"a","_meta":{}}"#]
        );
    }

    #[test]
    fn modern_host_receives_its_subscriptions_with_the_stream_id() {
        let mut state = HostState::default();
        state.record_modern_request(&ClientIdentity::ourselves());
        assert!(state.announcements(ALL).is_empty());
        let id = Id::new(Raw::parse("\"s\"").unwrap()).unwrap();
        let params = Raw::parse(
            r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a"]}}"#,
        )
        .unwrap();
        let (listen, wanted) = ListenStream::read(id.clone(), &params, None);
        assert_eq!(wanted.uris, ["a"]);
        state.listen(listen);
        state.accept_resource(&id, "a".to_owned());
        assert!(state.announcements(ALL).is_empty(), "nothing comes before the acknowledgement");
        assert!(state.acknowledge(&id).is_some());
        assert_eq!(
            lines(state.announcements(ALL)),
            [concat!(
                "notifications/tools/list_changed ",
                r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}"#
            )]
        );
        let updated = Raw::parse(r#"{"uri":"a"}"#).unwrap();
        assert_eq!(state.resource_updates("a", &updated).len(), 1);
        assert!(state.resource_updates("b", &updated).is_empty());
        assert!(state.end_stream(&id));
        assert!(state.announcements(ALL).is_empty());
    }
}
