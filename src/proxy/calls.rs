//! The way of one request to one server, in stages: authorize, permit, lease, check pins, confirm,
//! send, record, shape.

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
mod open_consent;
mod permission_question;
mod permit;
mod pin_check;
mod pipeline;
mod recorder;
mod rounds;
mod send;
mod shape;
mod shown_value;
mod task_result;

pub(super) use authorize::Feature;
pub(super) use call::Call;
pub(super) use forward_error::ForwardError;
pub(super) use lease::{lease, upstream};
pub(super) use logins::AskLogin;
pub(super) use pin_check::{EvaluatedRequest, must_check_pins};
pub(super) use pipeline::{answer, open, run};
pub(super) use recorder::{fault_of, subject_of};
pub(super) use shape::{own_result, shape};
