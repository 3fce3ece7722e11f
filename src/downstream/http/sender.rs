//! The sender of a request: the token that it was admitted with, and the owner of that token.

use std::sync::Arc;

use axum::extract::Request;

use super::token_hash::TokenHash;
use crate::{
    identity::Person,
    proxy::{Usage, User},
};

/// The sender of a request, as far as its token tells. The guard attaches it to the request.
#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    pub(super) token_hash: TokenHash,
    /// `None` without a token, or with one that says nothing of its owner.
    pub(super) person: Option<Arc<Person>>,
    /// The use by the person.
    pub(super) usage: Option<Usage>,
}

impl Sender {
    pub(super) fn of(request: &Request) -> Self {
        request.extensions().get::<Self>().cloned().unwrap_or_default()
    }

    pub(super) fn user(&self) -> User {
        self.token_hash.user()
    }
}
