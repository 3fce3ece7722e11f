//! One request of a host to one server.

use super::{authorize::Feature, pin_check::EvaluatedRequest};
use crate::{
    catalog::ServerId,
    proxy::{Caller, instance::Instance},
    upstream::Lease,
    wire::Raw,
};

/// A request of a host to one server, as the stages get it.
pub(in crate::proxy) struct Call<'a> {
    pub(super) server: ServerId,
    pub(super) caller: &'a Caller,
    pub(super) method: &'a str,
    pub(super) params: Option<Raw>,
    /// The part of the server that the config has to allow.
    pub(super) feature: Option<Feature>,
    pub(super) connection: Connection,
    /// The host's request, if the pins of the tools are checked when the server is awake.
    pub(super) pin_checked: Option<EvaluatedRequest<'a>>,
    /// True if dormouse has made a task of a call and has to wait for its result.
    pub(super) is_task: bool,
    /// True if the agent has asked for a tool that changes nothing, by `use_readonly_tool`.
    pub(super) requires_read_only: bool,
}

/// The connection on which a request is sent.
pub(super) enum Connection {
    /// The connection of the caller's instance, which is woken or loaded.
    OfCaller,
    /// This one, which is awake.
    Given(Instance, Lease),
}

impl<'a> Call<'a> {
    pub(in crate::proxy) fn new(
        server: ServerId,
        caller: &'a Caller,
        method: &'a str,
        params: Option<Raw>,
    ) -> Self {
        Self {
            server,
            caller,
            method,
            params,
            feature: Feature::of_method(method),
            connection: Connection::OfCaller,
            pin_checked: None,
            is_task: false,
            requires_read_only: false,
        }
    }

    pub(in crate::proxy) fn method(&self) -> &'a str {
        self.method
    }

    /// Sends the request on this connection only.
    pub(in crate::proxy) fn on(self, instance: Instance, lease: Lease) -> Self {
        Self { connection: Connection::Given(instance, lease), ..self }
    }

    /// Replaces the part of the server that the method belongs to.
    pub(in crate::proxy) fn about(self, feature: Feature) -> Self {
        Self { feature: Some(feature), ..self }
    }

    /// Has the pins of the tools checked when the server is awake.
    pub(in crate::proxy) fn checking_pins(self, request: Option<EvaluatedRequest<'a>>) -> Self {
        Self { pin_checked: request, ..self }
    }

    /// Demands that the tool is marked as read-only.
    pub(in crate::proxy) fn requiring_read_only(self, requires_read_only: bool) -> Self {
        Self { requires_read_only, ..self }
    }

    /// Has the pipeline wait for the result of the task that the request creates.
    pub(in crate::proxy) fn awaiting_task(self, is_task: bool) -> Self {
        Self { is_task, ..self }
    }
}
