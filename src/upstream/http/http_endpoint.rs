//! One URL to which messages are posted and from which streams are read.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use reqwest::{
    Client, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use url::Url;

use super::{super::AttemptError, http_client::HttpClient};
use crate::{
    base::is_exhaustion,
    config::{Mask, Remote},
    peer::CallError,
    wire::{
        Message,
        credentials::{Authorization, Challenge, CredentialError, Credentials, sensitive_headers},
        on_one_line,
        sse::{EventReader, root_cause},
    },
};

const JSON_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS_TYPE: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON_OR_EVENTS_TYPE: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");
/// Maximum number of bytes that are read of a refusal's body, and of characters that are shown of
/// it.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
const MAX_SHOWN_CHARS: usize = 200;
/// Maximum number of authorizations for one request: a token may have expired, another may lack
/// scopes, and both may change in between. A token of a few seconds may expire again while replicas
/// wait for each other.
const MAX_AUTHORIZATION_ATTEMPTS: usize = 8;

#[derive(Clone)]
pub(super) struct HttpEndpoint {
    pub(super) url: Url,
    client: Client,
    /// The headers of the config, for every request.
    headers: HeaderMap,
    /// The source of further authorization, unless the config has one.
    credentials: Option<Arc<dyn Credentials>>,
    pub(super) max_message_bytes: usize,
}

/// The body of a response, by its type.
pub(super) enum ResponseBody {
    Json(Bytes),
    Events(EventReader),
}

impl HttpEndpoint {
    pub(super) fn new(
        remote: &Remote,
        client: &HttpClient,
        credentials: Option<Arc<dyn Credentials>>,
        max_message_bytes: usize,
    ) -> Result<Self, AttemptError> {
        let client = client.get().map_err(AttemptError::Http)?;
        let headers = sensitive_headers(&remote.headers);
        Ok(Self { url: remote.url.clone(), client, headers, credentials, max_message_bytes })
    }

    /// Returns the same server at another of its addresses.
    pub(super) fn at(&self, url: Url) -> Self {
        Self { url, ..self.clone() }
    }

    /// Posts one message. `headers` take precedence over those of the config.
    pub(super) async fn post(
        &self,
        message: &Message,
        headers: HeaderMap,
    ) -> Result<Response, CallError> {
        let body = message.to_bytes();
        let request = || self.client.post(self.url.clone()).body(body.clone());
        self.send(request, [(CONTENT_TYPE, JSON_TYPE), (ACCEPT, JSON_OR_EVENTS_TYPE)], headers)
            .await
    }

    /// Requests a stream of events.
    pub(super) async fn get(&self, headers: HeaderMap) -> Result<Response, CallError> {
        self.send(|| self.client.get(self.url.clone()), [(ACCEPT, EVENTS_TYPE)], headers).await
    }

    pub(super) async fn delete(&self, headers: HeaderMap) -> Result<Response, CallError> {
        self.send(|| self.client.delete(self.url.clone()), [], headers).await
    }

    /// Sends a request, and repeats it if the server has refused the authorization and a better one
    /// is available.
    async fn send<const N: usize>(
        &self,
        request: impl Fn() -> RequestBuilder,
        own: [(HeaderName, HeaderValue); N],
        headers: HeaderMap,
    ) -> Result<Response, CallError> {
        let mut all = self.headers.clone();
        all.extend(own);
        all.extend(headers);
        let Some(credentials) = &self.credentials else {
            return Ok(self.with_mask(send_once(request().headers(all)).await?, None));
        };
        for _ in 0..MAX_AUTHORIZATION_ATTEMPTS {
            let shown = credentials.authorization().await?;
            let response =
                send_once(with_authorization(request().headers(all.clone()), shown.as_ref()))
                    .await?;
            let Some(challenge) = Challenge::of(response.status(), response.headers()) else {
                if let Some(shown) = shown.as_ref().filter(|_| response.status().is_success()) {
                    credentials.accepted(shown);
                }
                return Ok(self.with_mask(response, shown.as_ref()));
            };
            credentials.refused(shown.as_ref(), &challenge).await?;
        }
        let why = "the server refuses every token".to_owned();
        Err(CredentialError::Refused(why).into())
    }

    /// Waits until authorization is available.
    ///
    /// # Errors
    /// If there is none.
    pub(super) async fn wait_for_authorization(&self) -> Result<(), CallError> {
        if let Some(credentials) = &self.credentials {
            credentials.authorization().await?;
        }
        Ok(())
    }

    /// Attaches the secrets of a request to its refusal, so that they are masked in its text.
    fn with_mask(&self, mut response: Response, shown: Option<&Authorization>) -> Response {
        if !response.status().is_success() {
            let values = self.headers.values().cloned().chain(shown.map(Authorization::header));
            let values = values.filter_map(|value| Some(value.to_str().ok()?.to_owned()));
            let mask = Mask::of_request(values, &self.url);
            response.extensions_mut().insert(mask);
        }
        response
    }

    /// Returns the body of a successful response; `None` if it has none that could carry a message.
    /// `silence` is the maximum time without data on a stream.
    pub(super) async fn body(
        &self,
        response: Response,
        silence: Option<Duration>,
    ) -> Result<Option<ResponseBody>, CallError> {
        let media_type = media_type(&response);
        match media_type.as_str() {
            "application/json" => {
                let body = read_all(response, self.max_message_bytes).await?;
                Ok(Some(ResponseBody::Json(on_one_line(body))))
            }
            "text/event-stream" => Ok(Some(ResponseBody::Events(self.events(response, silence)))),
            _ => Ok(None),
        }
    }

    pub(super) fn events(&self, response: Response, silence: Option<Duration>) -> EventReader {
        EventReader::new(response.bytes_stream(), self.max_message_bytes, silence)
    }
}

async fn send_once(request: RequestBuilder) -> Result<Response, CallError> {
    request.send().await.map_err(|error| {
        if is_exhausted(&error) {
            CallError::Exhausted(root_cause(&error))
        } else if error.is_connect()
            || error.is_builder()
            || error.is_request() && error.is_timeout()
        {
            CallError::Unreachable(describe_unreachable(&error))
        } else {
            CallError::Broken(root_cause(&error))
        }
    })
}

/// Returns the cause with the origin of the address only: a path or query may hold secrets.
fn describe_unreachable(error: &reqwest::Error) -> String {
    let cause = root_cause(error);
    match error.url() {
        Some(url) => format!("{}: {cause}", url.origin().ascii_serialization()),
        None => cause,
    }
}

fn is_exhausted(error: &reqwest::Error) -> bool {
    let first: &dyn std::error::Error = error;
    let mut causes = std::iter::successors(Some(first), |cause| cause.source());
    causes.any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(is_exhaustion))
}

fn with_authorization(request: RequestBuilder, shown: Option<&Authorization>) -> RequestBuilder {
    match shown {
        Some(shown) => request.header(AUTHORIZATION, shown.header()),
        None => request,
    }
}

fn media_type(response: &Response) -> String {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    media_type.trim().to_ascii_lowercase()
}

pub(super) fn is_events(response: &Response) -> bool {
    response.status().is_success() && media_type(response) == "text/event-stream"
}

async fn read_all(response: Response, limit: usize) -> Result<Bytes, CallError> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    if let Some(size) = announced.filter(|size| *size > limit) {
        return Err(CallError::Oversized { size, limit });
    }
    let mut body = BytesMut::with_capacity(announced.unwrap_or(0));
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| CallError::Broken(root_cause(&error)))?;
        body.extend_from_slice(&chunk);
        if body.len() > limit {
            return Err(CallError::Oversized { size: body.len(), limit });
        }
    }
    Ok(body.freeze())
}

/// Returns whether a character is visible and takes up its own place.
fn is_visible(c: char) -> bool {
    let is_invisible = matches!(c,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    !c.is_control() && !is_invisible
}

/// A response that is no success: its content and the text that describes it.
pub(super) struct HttpRefusal {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    mask: Mask,
}

impl HttpRefusal {
    pub(super) async fn read(mut response: Response) -> Self {
        let status = response.status();
        let mask = response.extensions_mut().remove().unwrap_or_default();
        // A body that cannot be read is shown as empty.
        let body = read_all(response, MAX_REFUSAL_BYTES).await.unwrap_or_default();
        Self { status, body: on_one_line(body), mask }
    }

    pub(super) fn error(&self) -> CallError {
        let text = String::from_utf8_lossy(&self.body);
        let text = self.mask.masked(&text);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: String =
            words.chars().filter(|c| is_visible(*c)).take(MAX_SHOWN_CHARS).collect();
        let detail = match (self.status, shown.is_empty()) {
            (StatusCode::UNAUTHORIZED, _) => {
                ": the server does not accept the authorization".to_owned()
            }
            (status, _) if status.is_redirection() => ": the server redirects to another \
                place"
                .to_owned(),
            (_, true) => String::new(),
            (_, false) => format!(": {shown}"),
        };
        CallError::Refused { status: self.status.as_u16(), detail }
    }
}
