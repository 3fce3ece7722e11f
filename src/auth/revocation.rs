//! The end of a login: its tokens are made invalid where that can be (RFC 7009), and forgotten.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use oauth2::http::{Request, header};
use url::{Url, form_urlencoded};

use super::{
    Auth, Site, Store,
    client::secret_of,
    credential::{AuthMethod, Credential},
    error::LoginError,
};
use crate::config::{Secret, ServerConfig};

/// What has become of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedOut {
    /// There was none.
    Nothing,
    /// It is forgotten, and the authorization server takes its tokens no more.
    Revoked,
    /// It is forgotten; its tokens are good until they expire. `why`: what the authorization server says, if anything.
    Forgotten { why: Option<String> },
}

impl Auth {
    /// Ends the login of a server. It is forgotten here whatever the authorization server says.
    ///
    /// # Errors
    /// When it cannot be forgotten.
    pub async fn log_out(&self, server: &ServerConfig) -> Result<LoggedOut, LoginError> {
        let site = Site::of(server).ok_or_else(|| LoginError::NotRemote(server.name.clone()))?;
        let store = &self.0.store;
        let held = store.hold(&site.slot).await?;
        // What cannot be read cannot be revoked, but it can be forgotten.
        let login = store.at(&site.slot, Store::read).await.ok().flatten();
        let ended = match login {
            Some(login) => revoke(&site, login, store).await,
            None => LoggedOut::Forgotten { why: Some("what is kept cannot be read".to_owned()) },
        };
        let removed = store.at(&site.slot, move |store, slot| store.remove(slot, &held)).await;
        let was_there = removed?;
        Ok(if was_there { ended } else { LoggedOut::Nothing })
    }
}

async fn revoke(site: &Site, login: Credential, store: &Arc<Store>) -> LoggedOut {
    let forgotten = |why: String| LoggedOut::Forgotten { why: Some(why) };
    let Some(tokens) = &login.tokens else { return LoggedOut::Nothing };
    let Some(endpoint) = login.facts.revocation_endpoint.clone() else {
        return LoggedOut::Forgotten { why: None };
    };
    let Ok(endpoint) = Url::parse(&endpoint) else {
        return forgotten("its revocation endpoint is no URL".to_owned());
    };
    let guard = match site.guard() {
        Ok(guard) => guard,
        Err(error) => return forgotten(error.to_string()),
    };
    let configured = site.oauth.client.as_ref();
    let of_config = match configured {
        Some(client) => secret_of(client, store).await.ok().flatten(),
        None => None,
    };
    let secret = login.client_secret.clone().or(of_config);
    // The end of the one that renews is the end of what it has renewed; others have to be ended one by one.
    let both = [("refresh_token", tokens.refresh.as_ref()), ("access_token", Some(&tokens.access))];
    for (kind, token) in both {
        let Some(token) = token else { continue };
        let request = request(&endpoint, &login, secret.as_ref(), kind, token);
        match guard.execute(request).await {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => {
                return forgotten(format!("HTTP status {}", response.status().as_u16()));
            }
            Err(error) => return forgotten(error.to_string()),
        }
    }
    LoggedOut::Revoked
}

fn request(
    endpoint: &Url,
    login: &Credential,
    secret: Option<&Secret>,
    kind: &str,
    token: &Secret,
) -> Request<Vec<u8>> {
    let id = login.facts.client_id.as_str();
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("token", token.expose()).append_pair("token_type_hint", kind);
    let request = Request::post(endpoint.as_str())
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let request = match (login.facts.method, secret) {
        (AuthMethod::ClientSecretBasic, Some(secret)) => {
            // As at the token endpoint (RFC 6749 section 2.3.1).
            let [id, secret] = [id, secret.expose()]
                .map(|text| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>());
            let shown = BASE64_STANDARD.encode(format!("{id}:{secret}"));
            request.header(header::AUTHORIZATION, format!("Basic {shown}"))
        }
        (AuthMethod::ClientSecretPost, Some(secret)) => {
            form.append_pair("client_id", id).append_pair("client_secret", secret.expose());
            request
        }
        _ => {
            form.append_pair("client_id", id);
            request
        }
    };
    request.body(form.finish().into_bytes()).expect("a URL, and headers of plain text")
}
