//! A login in a browser of this machine: the callback with which it returns.

use url::Url;

use super::{
    Auth,
    auth_client::AuthClient,
    callback::{Callback, CallbackRequest},
    code_login::{CodeLogin, ReturnPath},
    login_error::LoginError,
    login_page::LoginPage,
    preparation::PreparedLogin,
};
use crate::config::ServerConfig;

/// The redirect URI if the config names none.
const DEFAULT_REDIRECT_URI: &str = "http://127.0.0.1:0/callback";

/// A login that has begun.
pub(crate) struct Login {
    code: CodeLogin,
    callback: Callback,
}

impl Auth {
    /// Begins a login in a browser. Opening the address is left to the caller.
    ///
    /// # Errors
    /// When the server requires no login, or discovery or registration fails.
    pub(crate) async fn begin_browser_login(
        &self,
        server: &ServerConfig,
        more: &[String],
    ) -> Result<Login, LoginError> {
        let prepared = self.prepare_login(server, None, more).await?;
        let authorizer = self.authorizer(server, None);
        let authorizer = authorizer.ok_or_else(|| LoginError::NotRemote(server.name.clone()))?;
        let PreparedLogin { target, before, scopes, .. } = &prepared;
        let default = Url::parse(DEFAULT_REDIRECT_URI).expect("a constant");
        let wanted = target.oauth.redirect_uri.clone().unwrap_or(default);
        let registered = before.as_ref().and_then(AuthClient::registered_for);
        // Wider scopes need a new registration.
        let registered = registered.filter(|client| client.may_ask_for(scopes));
        let (callback, registered) = listen(&wanted, registered).await?;
        let redirect_uri = callback.redirect_uri();
        let registration = target.key.clone();
        let back = ReturnPath { redirect_uri, state_prefix: "", registered, registration };
        let code = self.begin_code_login(prepared, authorizer, back).await?;
        Ok(Login { code, callback })
    }
}

/// Listens at the redirect URI of the registered client if possible, and otherwise at the wanted
/// one, which then needs a new client.
async fn listen(
    wanted: &Url,
    known: Option<AuthClient>,
) -> Result<(Callback, Option<AuthClient>), LoginError> {
    let is_free = wanted.port().unwrap_or(0) == 0;
    let registered = known.as_ref().and_then(|known| known.redirect_uri.as_deref());
    if let Some(registered) = registered.and_then(|uri| Url::parse(uri).ok())
        && (is_free && has_same_host_and_path(&registered, wanted) || registered == *wanted)
        && let Ok(callback) = Callback::listen(&registered).await
    {
        return Ok((callback, known));
    }
    Ok((Callback::listen(wanted).await?, None))
}

fn has_same_host_and_path(one: &Url, other: &Url) -> bool {
    one.host() == other.host() && one.path() == other.path()
}

impl Login {
    /// Returns the address at which the user logs in.
    pub(crate) fn address(&self) -> &Url {
        self.code.address()
    }

    /// Returns a sentence that tells the user the requested scopes; empty if there are none.
    pub(crate) fn asks_for(&self) -> String {
        self.code.asks_for()
    }

    /// Returns the address to which the browser returns.
    pub(crate) fn redirect_uri(&self) -> &Url {
        self.callback.redirect_uri()
    }

    /// Waits, without a limit, for the browser to return. Cancel safe.
    pub(crate) async fn returned(&mut self) -> CallbackRequest {
        self.callback.returned().await
    }

    /// Waits until the user has logged in elsewhere: in another process, or through another entry
    /// that shares the login.
    pub(crate) fn made_elsewhere(&self) -> impl Future<Output = ()> + Send + use<> {
        self.code.made_elsewhere()
    }

    /// Completes the login with a browser's callback, and shows the outcome in the browser. `None`
    /// if the callback is not from this login, which then stays open.
    pub(crate) async fn take(&self, returned: CallbackRequest) -> Option<Result<(), LoginError>> {
        let outcome = self.code.complete(&returned.url).await;
        returned.answer(LoginPage::of(self.code.server(), &outcome)).await;
        (!matches!(outcome, Err(LoginError::Foreign))).then_some(outcome)
    }

    /// Exchanges the code of a callback for tokens. The callback may have reached another machine.
    /// A code is valid once, so that the exchange continues when this future is dropped.
    ///
    /// # Errors
    /// [`LoginError::Foreign`] if the callback is not from this login, which then stays open.
    pub(crate) async fn complete(&self, returned: &Url) -> Result<(), LoginError> {
        self.code.complete(returned).await
    }
}
