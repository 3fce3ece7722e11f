//! The address on this machine to which the browser returns after a login (RFC 8252 section 7.3).

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};
use tokio_util::task::AbortOnDropHandle;
use url::{Host, Url};

use super::{LoginError, login_page::LoginPage};

/// Maximum number of requests that wait to be handled; a browser sends one.
const MAX_WAITING_REQUESTS: usize = 8;

/// A listener for the browser's return, which ends when it is dropped.
pub(super) struct Callback {
    redirect_uri: Url,
    returned: mpsc::Receiver<CallbackRequest>,
    _serving: Vec<AbortOnDropHandle<()>>,
}

/// A browser's request to the redirect URI, which waits for the page to show.
pub(crate) struct CallbackRequest {
    /// The redirect URI with the query that the authorization server added.
    pub(super) url: Url,
    show: oneshot::Sender<LoginPage>,
}

impl Callback {
    /// Listens at this address; if its port is 0, at a free port.
    pub(super) async fn listen(wanted: &Url) -> Result<Self, LoginError> {
        let port = wanted.port().unwrap_or(0);
        let failed = |cause| LoginError::Callback { address: host_and_port(wanted), cause };
        let listeners = bind_with_retries(wanted, port).await.map_err(failed)?;
        let port = listeners[0].local_addr().map_err(failed)?.port();
        let mut redirect_uri = wanted.clone();
        // The URL has a host, so that setting a port cannot fail.
        let _ = redirect_uri.set_port(Some(port));
        let (returning, returned) = mpsc::channel(MAX_WAITING_REQUESTS);
        let callback_state = CallbackState { redirect_uri: redirect_uri.clone(), returning };
        // The path may contain characters that the router treats as a pattern, so the handler
        // compares it.
        let router = Router::new().fallback(receive_callback).with_state(callback_state);
        let serve = |listener| {
            let router = router.clone();
            AbortOnDropHandle::new(tokio::spawn(async move {
                if let Err(error) = axum::serve(listener, router).await {
                    tracing::warn!(%error, "cannot receive the browser's redirect after a login");
                }
            }))
        };
        let serving = listeners.into_iter().map(serve).collect();
        Ok(Self { redirect_uri, returned, _serving: serving })
    }

    /// Returns the address that the listener is bound to, with its port.
    pub(super) fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    /// Waits for the next request of a browser.
    pub(super) async fn returned(&mut self) -> CallbackRequest {
        match self.returned.recv().await {
            Some(returned) => returned,
            // The listener has ended.
            None => std::future::pending().await,
        }
    }
}

impl CallbackRequest {
    pub(super) async fn answer(self, answer: LoginPage) {
        // The browser may have closed the connection.
        let _ = self.show.send(answer);
        // The caller may exit the process at once, while the page is still being sent.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn host_and_port(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap_or_default(), url.port().unwrap_or(0))
}

/// Binds the listeners, and retries while a login that has just ended still holds the port.
async fn bind_with_retries(wanted: &Url, port: u16) -> std::io::Result<Vec<TcpListener>> {
    const MAX_TRIES: usize = 10;
    for _ in 1..MAX_TRIES {
        match bind(wanted, port).await {
            Err(error) if port != 0 && error.kind() == ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            bound => return bound,
        }
    }
    bind(wanted, port).await
}

/// Binds at least one listener.
async fn bind(wanted: &Url, port: u16) -> std::io::Result<Vec<TcpListener>> {
    let one = match wanted.host() {
        Some(Host::Ipv4(address)) => TcpListener::bind((address, port)).await,
        Some(Host::Ipv6(address)) => TcpListener::bind((address, port)).await,
        _ => return bind_localhost(port).await,
    };
    Ok(vec![one?])
}

/// Binds both loopback addresses: a browser tries both for `localhost`, so that another process at
/// one of them would receive the code.
async fn bind_localhost(port: u16) -> std::io::Result<Vec<TcpListener>> {
    const MAX_TRIES: usize = 8;
    let mut tries = 0;
    loop {
        tries += 1;
        let fourth = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let same_port = fourth.local_addr()?.port();
        match TcpListener::bind((Ipv6Addr::LOCALHOST, same_port)).await {
            Ok(sixth) => return Ok(vec![fourth, sixth]),
            Err(error) if error.kind() != ErrorKind::AddrInUse => return Ok(vec![fourth]),
            Err(_) if port == 0 && tries < MAX_TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

#[derive(Clone)]
struct CallbackState {
    redirect_uri: Url,
    returning: mpsc::Sender<CallbackRequest>,
}

async fn receive_callback(State(place): State<CallbackState>, request: Request) -> Response {
    if request.uri().path() != place.redirect_uri.path() {
        return StatusCode::NOT_FOUND.into_response();
    }
    if request.method() != Method::GET {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let mut url = place.redirect_uri;
    url.set_query(request.uri().query());
    let (show, shown) = oneshot::channel();
    let is_taken = place.returning.send(CallbackRequest { url, show }).await.is_ok();
    match shown.await {
        Ok(answer) if is_taken => answer.into_response(),
        _ => {
            let why = "this login has ended; start it again".to_owned();
            LoginPage::Failed { why }.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use sha2::{Digest as _, Sha256};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn callback_page_hides_the_code_with_the_only_script_it_allows() {
        let wanted = Url::parse("http://127.0.0.1:0/back").unwrap();
        let mut callback = Callback::listen(&wanted).await.unwrap();
        let port = callback.redirect_uri().port().unwrap();
        let mut browser = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = "GET /back?code=c HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        browser.write_all(request.as_bytes()).await.unwrap();
        callback.returned().await.answer(LoginPage::LoggedIn { server: "s".to_owned() }).await;
        let mut page = String::new();
        browser.read_to_string(&mut page).await.unwrap();
        let script = page.split("<script>").nth(1).unwrap().split("</script>").next().unwrap();
        assert!(script.contains("location.pathname"), "{script}");
        let digest = BASE64_STANDARD.encode(Sha256::digest(script));
        assert!(page.contains(&format!("script-src 'sha256-{digest}'")), "{page}");
        assert!(page.contains("name=\"viewport\"") && page.contains("light dark"), "{page}");
    }

    #[tokio::test]
    async fn localhost_port_taken_on_one_address_is_refused() {
        let free = Callback::listen(&Url::parse("http://localhost:0/back").unwrap()).await.unwrap();
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        assert_ne!(free.redirect_uri().port(), Some(0));
        let port = other.local_addr().unwrap().port();
        let wanted = Url::parse(&format!("http://localhost:{port}/back")).unwrap();
        let listened = Callback::listen(&wanted).await;
        assert!(matches!(listened, Err(LoginError::Callback { .. })));
        drop(free);
    }
}
