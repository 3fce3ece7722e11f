//! The way of one request to one server, in stages: authorize, permit, lease, approve, send,
//! record, shape.

mod approval;
mod ask_user;
mod authorize;
mod call;
mod conversation;
mod denial;
mod forward_error;
mod heartbeat;
mod lease;
mod leased_request;
mod logins;
mod permission_question;
mod permit;
mod pipeline;
mod recorder;
mod rounds;
mod send;
mod shape;
mod shown_value;
mod task_result;

pub(super) use approval::{Approval, must_compare};
pub(super) use authorize::Feature;
pub(super) use call::Call;
pub(super) use forward_error::ForwardError;
pub(super) use lease::{lease, upstream};
pub(super) use logins::AskLogin;
pub(super) use pipeline::{answer, open, run};
pub(super) use recorder::{fault_of, subject_of};
pub(super) use shape::{own_result, shape};
