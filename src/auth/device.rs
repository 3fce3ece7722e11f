//! A login on another device: the user types a short code there, while dormouse polls for the
//! result (RFC 8628).

use std::{sync::Arc, time::Duration};

use oauth2::{DeviceAuthorizationUrl, Scope, StandardDeviceAuthorizationResponse};
use tokio_util::task::TaskTracker;

use super::{
    Auth, LoginTarget,
    auth_client::AuthClient,
    code_login::client_of_config,
    discovery::AuthServer,
    login_error::{LoginError, TokenError},
    login_store::LoginStore,
    login_store_error::LoginStoreError,
    login_url::checked_login_url,
    preparation::PreparedLogin,
    registration::{DEVICE_GRANT, register},
    token_request::{TokenGrant, token_client},
};
use crate::config::{Secret, ServerConfig};

/// Redirect URI of the registered client. No browser uses it; it tells this client from the one for
/// logins in a browser.
const DEVICE_REDIRECT_URI: &str = "http://127.0.0.1/device";

/// Minimum time between two polls, even if the authorization server allows shorter ones.
const MIN_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A login that waits for the user at another device.
pub(crate) struct DeviceLogin {
    target: LoginTarget,
    auth_server: AuthServer,
    client: AuthClient,
    scopes: Vec<String>,
    details: StandardDeviceAuthorizationResponse,
    store: Arc<LoginStore>,
    tasks: TaskTracker,
}

impl Auth {
    /// Begins a login on another device.
    ///
    /// # Errors
    /// When the server requires no login, or the authorization server has no device flow.
    pub(crate) async fn log_in_on_device(
        &self,
        server: &ServerConfig,
        more: &[String],
    ) -> Result<DeviceLogin, LoginError> {
        let PreparedLogin { target, auth_server, before, scopes, .. } =
            self.prepare_login(server, None, more).await?;
        let endpoint = auth_server.string_field("device_authorization_endpoint");
        let endpoint = endpoint.and_then(|url| DeviceAuthorizationUrl::new(url).ok());
        let endpoint = endpoint.ok_or(LoginError::NoDeviceFlow)?;
        let known = before.as_ref().and_then(AuthClient::registered_for);
        let known = known.filter(|client| client.may_ask_for(&scopes));
        let known =
            known.filter(|known| known.redirect_uri.as_deref() == Some(DEVICE_REDIRECT_URI));
        let configured = client_of_config(&target, &auth_server, self.store()).await?;
        let client = match (configured, known) {
            (Some(client), _) | (None, Some(client)) => client,
            (None, None) => {
                register(&auth_server, DEVICE_REDIRECT_URI, &DEVICE_GRANT, &scopes).await?
            }
        };
        let asking = token_client(&client, &auth_server.metadata.token_endpoint)?;
        let asking = asking.set_device_authorization_url(endpoint);
        let request = asking
            .exchange_device_code()
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .add_extra_param("resource", &auth_server.resource);
        let details = request.request_async(&auth_server.http).await;
        let details = details.map_err(|error| TokenError::of(&error, &[]))?;
        let (store, tasks) = (self.store().clone(), self.tasks().clone());
        let login = DeviceLogin { target, auth_server, client, scopes, details, store, tasks };
        login.check_addresses()?;
        Ok(login)
    }
}

impl DeviceLogin {
    /// Checks both addresses like any other login page, because the user opens them in a browser.
    fn check_addresses(&self) -> Result<(), LoginError> {
        for address in [Some(self.address()), self.complete_address()].into_iter().flatten() {
            checked_login_url(address, &self.auth_server.http)?;
        }
        Ok(())
    }

    /// Returns the address of the page at which the user types the code.
    pub(crate) fn address(&self) -> &str {
        self.details.verification_uri().as_str()
    }

    /// Returns the address that includes the code, if the authorization server offers one.
    pub(crate) fn complete_address(&self) -> Option<&str> {
        Some(self.details.verification_uri_complete()?.secret())
    }

    pub(crate) fn code(&self) -> &str {
        self.details.user_code().secret()
    }

    /// Polls until the user has typed the code, or `patience` has passed.
    ///
    /// # Errors
    /// When the code was not typed in time, or the login was refused.
    pub(crate) async fn finish(self, patience: Duration) -> Result<(), LoginError> {
        let asking = token_client(&self.client, &self.auth_server.metadata.token_endpoint)?;
        let request = asking
            .exchange_device_access_token(&self.details)
            .add_extra_param("resource", &self.auth_server.resource);
        let patience = Some(patience.min(self.details.expires_in()));
        let pause = |wanted: Duration| tokio::time::sleep(wanted.max(MIN_POLL_INTERVAL));
        let given = request.request_async(&self.auth_server.http, pause, patience);
        let given = given.await;
        let code = self.details.device_code().secret().as_str();
        let secret = self.client.secret.as_ref().map_or("", Secret::expose);
        let given = given.map_err(|error| TokenError::of(&error, &[code, secret]))?;
        let url = &self.target.remote.url;
        let granted = TokenGrant::of(&given)?;
        let login = granted.into_login(url, &self.auth_server, self.client, self.scopes);
        // Saving continues when the caller is dropped.
        let (store, key) = (self.store, self.target.key);
        let keeping = self.tasks.spawn(async move { store.save(&key, login).await });
        Ok(keeping.await.unwrap_or(Err(LoginStoreError::ShuttingDown))?)
    }
}
