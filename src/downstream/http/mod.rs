//! Hosts that connect over HTTP: streamable HTTP in both eras, and HTTP+SSE of 2024-11-05.
//!
//! Every host gets a [`Session`](super::Session) like that of the host on stdio. This module adds
//! what is specific to HTTP: access control, the choice of the response that carries a message, and
//! the lifetime of sessions whose hosts are gone.

mod certificate;
mod connections;
mod forwarding;
mod front;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod guard;
mod http_server;
mod http_version;
mod in_flight_messages;
mod legacy;
mod legacy_sse;
mod listening_socket;
mod locality;
mod modern;
mod paths;
mod permissions;
mod person_login_pages;
mod person_login_steps;
mod placement;
mod post_response;
mod principals;
mod protected_resource;
mod quotas;
mod reopening;
mod request;
mod root_paths;
mod routes;
mod sender;
mod session_ticket;
mod sessions;
mod stream;
mod token_hash;

pub(crate) use certificate::{Certificate, CertificateFiles};
pub(crate) use connections::serve as serve_connections;
pub(crate) use guard::{HttpAccess, RefusalLog, only_value};
pub(crate) use http_server::{HttpRoutes, serve};
pub(crate) use listening_socket::ListeningSocket;
pub(crate) use person_login_steps::PersonLogins;
pub(crate) use protected_resource::ProtectedResource;
