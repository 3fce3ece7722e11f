//! Calls of servers with `pin: block`, whose tools must be what was approved.
//!
//! The catalog of such a server may change with each connection. The host's request is therefore
//! evaluated again when the server is awake, and sent on that connection or not at all.

use super::{
    denial::{Denial, JudgedTool},
    forward_error::ForwardError,
    lease::upstream,
};
use crate::{
    catalog::ServerId,
    config::Pin,
    policy::{Decider, Decision},
    proxy::{Caller, Fleet, instance::Instance},
    surface::Action,
    wire::{Raw, edit},
};

/// The evaluation of a host's request before its server was awake.
pub(in crate::proxy) struct EvaluatedRequest<'a> {
    /// The `params` of the host's request.
    pub(in crate::proxy) params: &'a Raw,
    pub(in crate::proxy) action: &'a Action,
}

/// Returns whether a server's tools must be compared with their pins before a call.
pub(in crate::proxy) fn must_check_pins(fleet: &Fleet, server: ServerId) -> bool {
    fleet.servers.config(server).settings.pin == Pin::Block
}

/// Checks that a request still resolves to the same call on a connection, and that the tool there
/// is the approved one.
///
/// # Errors
/// [`ForwardError::Superseded`] or [`ForwardError::Denied`].
pub(super) async fn check_pins(
    fleet: &Fleet,
    request: &EvaluatedRequest<'_>,
    caller: &Caller,
    instance: Instance,
) -> Result<(), ForwardError> {
    let Action::Forward { server, params, .. } = request.action else { return Ok(()) };
    let evaluated =
        fleet.board.evaluate(&caller.viewer(), request.params, &fleet.context.tasks).await;
    if evaluated != *request.action {
        return Err(ForwardError::Superseded);
    }
    let tool = edit::get_str(params, "name").unwrap_or_default();
    if has_changed(fleet, instance, &tool) {
        let server = fleet.servers.config(*server).name.clone();
        let decision = Decision::denied_by(Decider::Pin);
        let judged = JudgedTool { server, tool, decision };
        return Err(Denial::of(judged, &fleet.settings().launch.commands).into());
    }
    Ok(())
}

/// Returns whether a host's own instance has a tool that differs from what was approved. All hosts
/// share one snapshot, which may show another instance's catalog.
fn has_changed(fleet: &Fleet, instance: Instance, tool: &str) -> bool {
    let catalog = instance.owner.and_then(|_| upstream(fleet, instance).catalog());
    catalog.is_some_and(|catalog| {
        fleet.memory.catalogs.blocked(instance.server, &catalog).contains(tool)
    })
}
