//! The credentials of the instance of one person.

use std::sync::Arc;

use super::{LoginStore, authorizer::Authorizer, login_key::LoginKey};
use crate::wire::credentials::{
    Authorization, Challenge, CredentialError, CredentialFuture, Credentials,
};

/// As the [`Authorizer`], but a login at another replica is noticed at the next call only: there
/// may be many people without a login, and the store would be asked about each every second.
pub(super) struct PersonCredentials {
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) store: Arc<LoginStore>,
    pub(super) key: LoginKey,
}

impl Credentials for PersonCredentials {
    fn authorization(
        &self,
    ) -> CredentialFuture<'_, Result<Option<Authorization>, CredentialError>> {
        self.authorizer.authorization()
    }

    fn refused<'a>(
        &'a self,
        shown: Option<&'a Authorization>,
        challenge: &'a Challenge,
    ) -> CredentialFuture<'a, Result<(), CredentialError>> {
        self.authorizer.refused(shown, challenge)
    }

    fn accepted(&self, shown: &Authorization) {
        self.authorizer.accepted(shown);
    }

    fn changed(&self) -> CredentialFuture<'_, ()> {
        Box::pin(async {
            self.store.wait_until_saved(&self.key).await;
            self.authorizer.invalidate();
        })
    }
}
