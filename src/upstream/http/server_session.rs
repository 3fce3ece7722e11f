//! The session of a legacy server over HTTP (2025-11-25, basic/transports, Session Management).

use bytes::Bytes;
use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue},
};

use crate::{
    base::Lock,
    protocol::request_headers,
    wire::{Message, Response, edit, parse_line},
};

const SESSION_HEADER: HeaderName = HeaderName::from_static(request_headers::SESSION_ID);
const VERSION_HEADER: HeaderName = HeaderName::from_static(request_headers::VERSION);

/// The session that the server named in its answer to `initialize`. A modern server has none.
#[derive(Default)]
pub(super) struct ServerSession(Lock<SessionState>);

#[derive(Default)]
struct SessionState {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// True if the server does not know the session any more.
    is_expired: bool,
}

/// A change by the status of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionExpiry {
    /// The status does not concern the session.
    No,
    /// The server has forgotten the session, as this response is the first to show.
    New,
    Known,
}

impl ServerSession {
    /// Returns the headers that name the session in each request.
    pub(super) fn headers(&self) -> HeaderMap {
        let session = self.0.lock();
        let headers = [(SESSION_HEADER, &session.id), (VERSION_HEADER, &session.version)];
        headers.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// Stores the id from the headers of the answer to `initialize`.
    pub(super) fn store_id(&self, answer: &HeaderMap) {
        self.0.lock().id = answer.get(&SESSION_HEADER).cloned();
    }

    /// Stores the negotiated version from the answer to `initialize`.
    pub(super) fn store_version(&self, answer: &Bytes) {
        for message in parse_line(answer) {
            if let Ok(Message::Response(Response { outcome: Ok(result), .. })) = message
                && let Some(version) = edit::get_str(&result, "protocolVersion")
            {
                self.0.lock().version = HeaderValue::try_from(version).ok();
            }
        }
    }

    /// Returns whether a version was negotiated, which only a legacy server does.
    pub(super) fn has_version(&self) -> bool {
        self.0.lock().version.is_some()
    }

    /// Notices that the server has forgotten the session.
    pub(super) fn notice_expiry(&self, status: StatusCode) -> SessionExpiry {
        let mut session = self.0.lock();
        if status != StatusCode::NOT_FOUND || session.id.is_none() {
            SessionExpiry::No
        } else if std::mem::replace(&mut session.is_expired, true) {
            SessionExpiry::Known
        } else {
            SessionExpiry::New
        }
    }

    pub(super) fn is_expired(&self) -> bool {
        self.0.lock().is_expired
    }

    /// Returns whether there is a session that the server knows.
    pub(super) fn is_open(&self) -> bool {
        let session = self.0.lock();
        session.id.is_some() && !session.is_expired
    }
}
