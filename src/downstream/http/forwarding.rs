//! Requests whose session, question or result is at another replica, which answers them.

use std::{sync::LazyLock, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use reqwest::Client;

use super::request::refusal;
use crate::{
    base::{SealUse, SealingKeys, now_seconds, with_causes},
    store::Replica,
    wire::http_client_builder,
};

/// The header by which a replica knows that another one has forwarded a request, so that it does
/// not forward it again; see `in_flight_messages.rs` for an exception. Its value is sealed.
const FORWARDED: HeaderName = HeaderName::from_static("dormouse-forwarded");
/// Maximum age of that value. The clocks of replicas may differ by as much.
const MAX_AGE: Duration = Duration::from_mins(2);
/// Maximum time to connect to another replica.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Headers of one connection, which are not forwarded (RFC 9110, section 7.6.1).
const OF_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A request as it was received.
#[derive(Clone)]
pub(super) struct ReceivedRequest {
    pub(super) method: Method,
    /// The path and the query.
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The reason that another replica has not answered a request.
pub(super) enum Unanswered {
    /// It could not be connected, so that it has not seen the request: another one may answer it.
    NotReached,
    /// It has ended, or does not answer any more.
    Lost,
}

/// Has another replica answer a request.
///
/// # Errors
/// If the replica has not answered.
pub(super) async fn forward(
    keys: &SealingKeys,
    replica: &Replica,
    request: ReceivedRequest,
) -> Result<Response, Unanswered> {
    static CLIENT: LazyLock<Option<Client>> = LazyLock::new(|| {
        let client = http_client_builder().connect_timeout(CONNECT_TIMEOUT).no_proxy();
        // A request on a connection that is kept open would be lost if the replica has just ended.
        let client = client.pool_max_idle_per_host(0);
        client.redirect(reqwest::redirect::Policy::none()).build().ok()
    });
    let (Some(client), Some(url)) = (CLIENT.as_ref(), &replica.url) else {
        return Err(Unanswered::NotReached);
    };
    let ReceivedRequest { method, target, mut headers, body } = request;
    remove_headers_of_connection(&mut headers);
    headers.insert(FORWARDED, mark_of_forwarding(keys));
    let url = format!("{}{target}", url.trim_end_matches('/'));
    let answered = client.request(method, url).headers(headers).body(body).send().await;
    match answered {
        Ok(answer) => Ok(passed_on(answer)),
        Err(error) if error.is_connect() => Err(Unanswered::NotReached),
        Err(error) => {
            let error = with_causes(&error);
            tracing::warn!(error, "a request was lost with the replica that had it");
            Err(Unanswered::Lost)
        }
    }
}

/// Returns the answer to a request that was lost with its replica.
pub(super) fn lost() -> Response {
    let message = "the replica that had the request ended before it answered";
    refusal(StatusCode::BAD_GATEWAY, None, message)
}

/// Returns whether another replica has forwarded a request with these headers.
pub(super) fn is_forwarded(keys: &SealingKeys, headers: &HeaderMap) -> bool {
    let sealed = headers.get(FORWARDED).and_then(|value| value.to_str().ok());
    let sealed = sealed.filter(|text| text.len() < 200);
    let sealed = sealed.and_then(|text| BASE64_URL_SAFE_NO_PAD.decode(text).ok());
    let opened = sealed.and_then(|sealed| keys.open(SealUse::Forwarding, b"", &sealed));
    let time = opened.and_then(|time| time.try_into().ok()).map(u64::from_be_bytes);
    time.is_some_and(|time| now_seconds().abs_diff(time) <= MAX_AGE.as_secs())
}

/// Returns whether another replica may have forwarded a request with these headers: its mark may
/// have expired.
pub(super) fn seems_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED)
}

fn mark_of_forwarding(keys: &SealingKeys) -> HeaderValue {
    let sealed = keys.seal(SealUse::Forwarding, b"", &now_seconds().to_be_bytes());
    HeaderValue::try_from(BASE64_URL_SAFE_NO_PAD.encode(sealed)).expect("base64 has no controls")
}

fn passed_on(answer: reqwest::Response) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    remove_headers_of_connection(response.headers_mut());
    *response.body_mut() = Body::from_stream(answer.bytes_stream());
    response
}

fn remove_headers_of_connection(headers: &mut HeaderMap) {
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> = named
        .flat_map(|text| text.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in OF_CONNECTION.into_iter().chain(named) {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> SealingKeys {
        SealingKeys::new([text]).unwrap()
    }

    #[test]
    fn only_replicas_can_mark_a_request_as_forwarded() {
        let (own, foreign) = (
            keys("a key with at least thirty-two bytes"),
            keys("another key with at least thirty-two bytes"),
        );
        let marked = |keys| HeaderMap::from_iter([(FORWARDED, mark_of_forwarding(keys))]);
        assert!(is_forwarded(&own, &marked(&own)));
        assert!(!is_forwarded(&own, &marked(&foreign)) && !is_forwarded(&own, &HeaderMap::new()));
        let old = own.seal(SealUse::Forwarding, b"", &(now_seconds() - 1000).to_be_bytes());
        let old = HeaderValue::try_from(BASE64_URL_SAFE_NO_PAD.encode(old)).unwrap();
        assert!(!is_forwarded(&own, &HeaderMap::from_iter([(FORWARDED, old)])));
    }

    #[test]
    fn headers_of_one_connection_are_removed() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("connection", "close, X-Hop"), ("x-hop", "1"), ("host", "h"), ("keep-alive", "5")]
        {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        remove_headers_of_connection(&mut headers);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["host"]);
    }
}
