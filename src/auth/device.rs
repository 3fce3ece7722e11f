//! A login on another device: a short code is typed in there, and asked about here until it has been (RFC 8628).

use std::{sync::Arc, time::Duration};

use oauth2::{DeviceAuthorizationUrl, Scope, StandardDeviceAuthorizationResponse};
use tokio_util::task::TaskTracker;

use super::{
    Auth, Site,
    beginning::Beginning,
    client::Client,
    discovery::Discovered,
    error::{LoginError, TokenError},
    guard::judged,
    login::client_of_config,
    registration::{ON_DEVICES, register},
    store::{Store, StoreError},
    token::{Granted, token_client},
};
use crate::config::{Secret, ServerConfig};

/// Where its client would come back to, if it were to. No browser does: that is another client.
const REDIRECT: &str = "http://127.0.0.1/device";

/// However often it lets us ask.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// A login that waits for somebody at another device.
pub struct DeviceLogin {
    site: Site,
    discovered: Discovered,
    client: Client,
    scopes: Vec<String>,
    details: StandardDeviceAuthorizationResponse,
    store: Arc<Store>,
    tasks: TaskTracker,
}

impl Auth {
    /// Begins a login on another device.
    ///
    /// # Errors
    /// When the server wants none, or the authorization server has no device flow.
    pub async fn log_in_elsewhere(
        &self,
        server: &ServerConfig,
        more: &[String],
    ) -> Result<DeviceLogin, LoginError> {
        let Beginning { site, discovered, before, scopes, .. } = self.begin(server, more).await?;
        let endpoint = discovered.text("device_authorization_endpoint");
        let endpoint = endpoint.and_then(|url| DeviceAuthorizationUrl::new(url).ok());
        let endpoint = endpoint.ok_or(LoginError::NoDeviceFlow)?;
        let known = before.as_ref().and_then(Client::registered_for);
        let known = known.filter(|client| client.may_ask_for(&scopes));
        let known = known.filter(|known| known.redirect_uri.as_deref() == Some(REDIRECT));
        let configured = client_of_config(&site, &discovered, &self.0.store).await?;
        let client = match (configured, known) {
            (Some(client), _) | (None, Some(client)) => client,
            (None, None) => register(&discovered, REDIRECT, &ON_DEVICES, &scopes).await?,
        };
        let asking = token_client(&client, &discovered.metadata.token_endpoint)?;
        let asking = asking.set_device_authorization_url(endpoint);
        let request = asking
            .exchange_device_code()
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .add_extra_param("resource", &discovered.resource);
        let details = request.request_async(&discovered.guard).await;
        let details = details.map_err(|error| TokenError::of(&error, &[]))?;
        let (store, tasks) = (self.0.store.clone(), self.0.tasks.clone());
        let login = DeviceLogin { site, discovered, client, scopes, details, store, tasks };
        login.judge()?;
        Ok(login)
    }
}

impl DeviceLogin {
    /// These are opened as any address at which to log in is.
    fn judge(&self) -> Result<(), LoginError> {
        for address in [Some(self.address()), self.complete_address()].into_iter().flatten() {
            judged(address, &self.discovered.guard)?;
        }
        Ok(())
    }

    /// Where the code is to be typed in.
    pub fn address(&self) -> &str {
        self.details.verification_uri().as_str()
    }

    /// The same with the code in it, where there is such a one.
    pub fn complete_address(&self) -> Option<&str> {
        Some(self.details.verification_uri_complete()?.secret())
    }

    pub fn code(&self) -> &str {
        self.details.user_code().secret()
    }

    /// Asks until somebody has typed the code in, or `patience` is over.
    ///
    /// # Errors
    /// When nobody has in time, or it was refused.
    pub async fn finish(self, patience: Duration) -> Result<(), LoginError> {
        let asking = token_client(&self.client, &self.discovered.metadata.token_endpoint)?;
        let request = asking
            .exchange_device_access_token(&self.details)
            .add_extra_param("resource", &self.discovered.resource);
        let patience = Some(patience.min(self.details.expires_in()));
        let pause = |wanted: Duration| tokio::time::sleep(wanted.max(MIN_PAUSE));
        let given = request.request_async(&self.discovered.guard, pause, patience);
        let given = given.await;
        let code = self.details.device_code().secret().as_str();
        let secret = self.client.secret.as_ref().map_or("", Secret::expose);
        let given = given.map_err(|error| TokenError::of(&error, &[code, secret]))?;
        let url = &self.site.remote.url;
        let granted = Granted::of(&given)?;
        let login = granted.into_login(url, &self.discovered, self.client, self.scopes);
        // It goes on when whoever has asked for it has gone.
        let (store, slot) = (self.store, self.site.slot);
        let keeping = self.tasks.spawn(async move { store.keep(&slot, login).await });
        Ok(keeping.await.unwrap_or(Err(StoreError::Ending))?)
    }
}
