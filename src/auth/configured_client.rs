//! The client that the config names.

use std::sync::Arc;

use super::{
    auth_client::{AuthClient, ClientError},
    auth_method::AuthMethod,
    discovery::AuthServer,
    login_store::LoginStore,
};
use crate::config::{ClientProof, OAuthClient, Secret};

/// Reads the secret or key of the config's client.
pub(super) async fn secret_of(
    configured: &OAuthClient,
    store: &Arc<LoginStore>,
) -> Result<Option<Secret>, ClientError> {
    match &configured.proof {
        None => Ok(None),
        Some(ClientProof::Secret(secret) | ClientProof::PrivateKey(secret)) => {
            Ok(Some(secret.clone()))
        }
        Some(ClientProof::Keychain(name)) => {
            let asked = name.clone();
            let kept = store.run(move |store| store.secret(&asked)).await;
            let kept = kept.map_err(|error| ClientError::Unreadable(error.to_string()))?;
            kept.map(Some).ok_or_else(|| ClientError::NoSecret(name.clone()))
        }
    }
}

impl AuthClient {
    /// Builds the client that the config names, with an authentication method that this
    /// authorization server supports.
    pub(super) async fn from_config(
        configured: &OAuthClient,
        auth_server: &AuthServer,
        store: &Arc<LoginStore>,
    ) -> Result<Self, ClientError> {
        let secret = secret_of(configured, store).await?;
        let method = match &configured.proof {
            None => AuthMethod::None,
            Some(ClientProof::PrivateKey(_)) => AuthMethod::PrivateKeyJwt,
            Some(_) => auth_server.secret_auth_method(),
        };
        let id = configured.id.clone();
        Ok(Self {
            id,
            method,
            secret,
            key_id: configured.key_id.clone(),
            redirect_uri: None,
            expires_at: None,
            registered_scopes: Vec::new(),
        })
    }
}
