//! One page, as the handlers of its requests have it.

use std::sync::Arc;

use axum::{Json, http::StatusCode};

use super::{
    config_view::ConfigView,
    entrance::{Entrance, Refusal},
    page_logins::PageLogins,
};
use crate::{base::run_blocking, control::ApiError};

/// A page, with everything that its handlers need.
#[derive(Clone)]
pub(super) struct Page {
    pub(super) entrance: Arc<Entrance>,
    pub(super) view: Arc<ConfigView>,
    /// `None` if the browser may be on another machine, to which no login returns.
    pub(super) logins: Option<Arc<PageLogins>>,
}

pub(super) type PageResult<T> = Result<Json<T>, ApiError>;

impl Page {
    /// Runs a function that waits for the disk or for other processes.
    pub(super) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce(&ConfigView) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let Self { view, .. } = self;
        run_blocking(move || work(&view)).await.unwrap_or_else(|| Err(ApiError::shutting_down()))
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let (status, message) = match refusal {
            Refusal::CrossOrigin => {
                (StatusCode::FORBIDDEN, "this request is for another host, or from another page")
            }
            Refusal::NoTicket => (
                StatusCode::UNAUTHORIZED,
                "the session of this page has ended: run `dormouse ui` again",
            ),
            Refusal::NotSignedIn => {
                (StatusCode::UNAUTHORIZED, "the session of this page has ended: sign in again")
            }
        };
        Self::new(status, message)
    }
}
