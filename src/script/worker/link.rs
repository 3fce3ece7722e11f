//! The connection of a script to the owner of the worker, as the functions of the script use it.

use std::{cell::RefCell, io, rc::Rc};

use super::Channel;
use crate::script::message::{FromWorker, ToWorker};

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Link(Rc<RefCell<State>>);

struct State {
    channel: Channel,
    /// The number of requests without an answer.
    waiting: usize,
    /// True once the last message was sent.
    has_ended: bool,
    /// The reason that the owner cannot be reached.
    broken: Option<io::Error>,
}

/// The answer to a request of a script.
pub(super) struct Answer {
    pub(super) id: u32,
    pub(super) is_refusal: bool,
    /// JSON, or the message of a refusal.
    pub(super) text: String,
}

impl Link {
    pub(super) fn new(channel: Channel) -> Self {
        let state = State { channel, waiting: 0, has_ended: false, broken: None };
        Self(Rc::new(RefCell::new(state)))
    }

    /// Sends a message on one line: `is_request` if it will have an answer.
    pub(super) fn send(&self, message: &str, is_request: bool) {
        let mut state = self.0.borrow_mut();
        if state.has_ended || state.broken.is_some() {
            return;
        }
        state.waiting += usize::from(is_request);
        state.broken = state.channel.send_text(message).err();
    }

    /// Sends the last message.
    pub(super) fn end(&self, message: &str) {
        self.send(message, false);
        self.0.borrow_mut().has_ended = true;
    }

    /// Waits for the answer to a request; `None` if the owner is gone.
    pub(super) fn receive(&self) -> Option<Answer> {
        let mut state = self.0.borrow_mut();
        if let Err(error) = state.channel.send(&FromWorker::Waiting) {
            state.broken = Some(error);
            return None;
        }
        let received = state.channel.receive();
        let answer = match received {
            Ok(Some(ToWorker::Answer { id, value })) => {
                Answer { id, is_refusal: false, text: value.get().to_owned() }
            }
            Ok(Some(ToWorker::Refusal { id, message })) => {
                Answer { id, is_refusal: true, text: message }
            }
            Ok(Some(ToWorker::Run(_) | ToWorker::Check { .. }) | None) => {
                state.broken = Some(io::ErrorKind::BrokenPipe.into());
                return None;
            }
            Err(error) => {
                state.broken = Some(error);
                return None;
            }
        };
        state.waiting = state.waiting.saturating_sub(1);
        Some(answer)
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.0.borrow().waiting > 0
    }

    /// Returns whether the script can send nothing more.
    pub(super) fn is_over(&self) -> bool {
        let state = self.0.borrow();
        state.has_ended || state.broken.is_some()
    }

    /// # Errors
    /// If the owner is gone.
    pub(super) fn close(self) -> io::Result<()> {
        self.0.borrow_mut().broken.take().map_or(Ok(()), Err)
    }
}
