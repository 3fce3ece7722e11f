//! The way of one request to one server, in stages: authorize, lease, approve, send, record.

mod answers;
mod approval;
mod conversation;
mod forward;
mod forward_error;
mod heartbeat;
mod lease;
mod leased_request;
mod logins;
mod rounds;
mod send;

pub(super) use answers::{answered_call, own_result, reply};
pub(super) use approval::{Approval, must_compare};
pub(super) use conversation::Ending;
pub(super) use forward::{Outbound, check_feature, forward};
pub(super) use forward_error::ForwardError;
pub(super) use lease::{lease, lease_asking, upstream};
pub(super) use leased_request::LeasedRequest;
pub(super) use logins::AskLogin;
pub(super) use send::{request, send_leased};
