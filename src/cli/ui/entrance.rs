//! Access to the page: a key that the user shows once, and the session of a browser that has shown
//! it.
//!
//! Other users of the machine can connect to the address, see the ticket in the command line of a
//! browser, and serve pages from other ports of the same host, to which browsers send the same
//! cookies. So a ticket is used up by the first browser, and the cookie is bound to a secret path,
//! which is in no command line.

use axum::{
    extract::Request,
    http::{
        HeaderMap, HeaderName, Method,
        header::{COOKIE, HOST, ORIGIN},
    },
};
use subtle::ConstantTimeEq as _;
use url::Url;

use crate::{
    base::{Lock, random_token},
    config::is_loopback,
    downstream::http::{RefusalLog, only_value},
};

/// Number of random bytes of a ticket, a path and a session.
const SECRET_BYTES: usize = 24;
/// The name of the cookie with the session.
const COOKIE_NAME: &str = "dormouse";
/// The header that requests of the page carry. Pages of other origins cannot send it.
const PAGE_HEADER: HeaderName = HeaderName::from_static("dormouse-page");
/// The header in which browsers say where a request comes from (Fetch Metadata).
const SITE_HEADER: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The path at which a process that serves hosts over HTTP sends users to the form.
pub(super) const HTTP_PATH: &str = "/ui/";

/// The access to one page.
pub(super) struct Entrance {
    key: Key,
    /// With a slash at both ends.
    path: String,
    session: String,
}

/// What opens the page.
enum Key {
    /// A text that opens it once.
    Ticket(Lock<Option<String>>),
    /// The tokens for the API.
    Tokens { tokens: Vec<String>, refusals: RefusalLog },
}

/// The reason that a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is for another host, or from another page.
    CrossOrigin,
    /// It has no session, and a ticket is needed for one.
    NoTicket,
    /// It has no session, and the user can sign in.
    NotSignedIn,
}

impl Entrance {
    /// Makes a page for the user of this machine, at a secret path. Returns it with its ticket.
    pub(super) fn with_ticket() -> (Self, String) {
        let ticket = random_token::<SECRET_BYTES>();
        let key = Key::Ticket(Lock::new(Some(ticket.clone())));
        (Self::new(key, format!("/{}/", random_token::<SECRET_BYTES>())), ticket)
    }

    /// Makes a page for those who have a token for the API, at a secret path below [`HTTP_PATH`].
    pub(super) fn with_tokens(tokens: Vec<String>) -> Self {
        let path = format!("{HTTP_PATH}{}/", random_token::<SECRET_BYTES>());
        Self::new(Key::Tokens { tokens, refusals: RefusalLog::default() }, path)
    }

    fn new(key: Key, path: String) -> Self {
        Self { key, path, session: random_token::<SECRET_BYTES>() }
    }

    /// Returns the path of the page, with a slash at both ends.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the cookie for a browser that has shown a key. A ticket is used up. Returns `None`
    /// for another text, which is logged, or if the ticket was used before.
    pub(super) fn admit(&self, shown: &str) -> Option<String> {
        match &self.key {
            Key::Ticket(ticket) => {
                ticket.lock().take_if(|ticket| is_same(ticket, shown))?;
            }
            Key::Tokens { tokens, refusals } => {
                // All are compared, so that the time taken does not tell which one is near.
                let same = tokens.iter().filter(|token| is_same(token, shown));
                if same.count() == 0 {
                    refusals.note(HTTP_PATH);
                    return None;
                }
            }
        }
        let Self { session, path, .. } = self;
        Some(format!("{COOKIE_NAME}={session}; Path={path}; HttpOnly; SameSite=Strict"))
    }

    /// Checks that a request is for this host, and not from another page.
    pub(super) fn check_origin(&self, request: &Request) -> Result<(), Refusal> {
        let headers = request.headers();
        let host = only_text(headers, &HOST).ok_or(Refusal::CrossOrigin)?;
        // The scheme and the port may be those of a proxy or a tunnel.
        let has_host = |origin: &str| {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
        };
        let has_own_origin =
            !headers.contains_key(ORIGIN) || only_text(headers, &ORIGIN).is_some_and(has_host);
        // Over HTTP, the guard of all paths has checked the name of the host.
        let is_known_host = matches!(self.key, Key::Tokens { .. })
            || Url::parse(&format!("http://{host}")).is_ok_and(|url| is_loopback(&url));
        if is_known_host && has_own_origin { Ok(()) } else { Err(Refusal::CrossOrigin) }
    }

    /// Checks that a request to the page or its API is from a browser that was admitted.
    pub(super) fn check(&self, request: &Request) -> Result<(), Refusal> {
        self.check_origin(request)?;
        let headers = request.headers();
        if !self.has_session(headers) {
            let is_ticket = matches!(self.key, Key::Ticket(_));
            return Err(if is_ticket { Refusal::NoTicket } else { Refusal::NotSignedIn });
        }
        let is_read = *request.method() == Method::GET;
        let site = headers.get(SITE_HEADER).and_then(|site| site.to_str().ok());
        let is_from_page =
            site.is_none_or(|site| site == "same-origin") && headers.contains_key(PAGE_HEADER);
        if is_read || is_from_page { Ok(()) } else { Err(Refusal::CrossOrigin) }
    }

    fn has_session(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
        pairs.any(|pair| {
            let (name, value) = pair.trim().split_once('=').unwrap_or_default();
            name == COOKIE_NAME && is_same(&self.session, value)
        })
    }
}

fn only_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    only_value(headers, name)?.to_str().ok()
}

fn is_same(secret: &str, shown: &str) -> bool {
    secret.as_bytes().ct_eq(shown.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(method: &str, headers: &[(&str, &str)]) -> Request {
        let request = Request::builder().method(method).uri("/x/");
        let request = request.header("host", "127.0.0.1:4000");
        let with = |request: axum::http::request::Builder, (name, value): &(&str, &str)| {
            request.header(*name, *value)
        };
        headers.iter().fold(request, with).body(Body::empty()).unwrap()
    }

    /// Makes a page and opens it. Returns the cookie as browsers send it.
    fn opened() -> (Entrance, String) {
        let (entrance, ticket) = Entrance::with_ticket();
        let cookie = entrance.admit(&ticket).unwrap();
        (entrance, cookie.split(';').next().unwrap().to_owned())
    }

    #[test]
    fn ticket_admits_one_browser() {
        let (entrance, ticket) = Entrance::with_ticket();
        assert!(entrance.admit("another").is_none());
        let cookie = entrance.admit(&ticket).unwrap();
        assert!(cookie.ends_with(&format!("Path={}; HttpOnly; SameSite=Strict", entrance.path())));
        assert!(entrance.admit(&ticket).is_none());
        assert!(entrance.admit("").is_none(), "nothing is not a ticket");
    }

    #[test]
    fn token_admits_any_number_of_browsers() {
        let entrance = Entrance::with_tokens(vec!["one".to_owned(), "two".to_owned()]);
        for (shown, is_admitted) in
            [("one", true), ("two", true), ("two", true), ("three", false), ("", false)]
        {
            assert_eq!(entrance.admit(shown).is_some(), is_admitted, "{shown}");
        }
    }

    #[test]
    fn page_is_for_the_admitted_browser() {
        let (entrance, cookie) = opened();
        let check = |headers: &[(&str, &str)]| entrance.check(&request("GET", headers));
        assert_eq!(check(&[]), Err(Refusal::NoTicket));
        assert_eq!(check(&[("cookie", "dormouse=other")]), Err(Refusal::NoTicket));
        assert_eq!(check(&[("cookie", &cookie)]), Ok(()));
        let among_others = format!("a=b; {cookie}; c");
        assert_eq!(check(&[("cookie", &among_others)]), Ok(()));
    }

    #[test]
    fn other_pages_change_nothing() {
        let (entrance, cookie) = opened();
        let check = |headers: &[(&str, &str)]| {
            let session = [("cookie", cookie.as_str())];
            entrance.check(&request("POST", &[&session, headers].concat()))
        };
        let page = ("dormouse-page", "1");
        assert_eq!(check(&[]), Err(Refusal::CrossOrigin));
        assert_eq!(check(&[page]), Ok(()));
        assert_eq!(check(&[page, ("origin", "http://127.0.0.1:4000")]), Ok(()));
        assert_eq!(check(&[page, ("origin", "http://127.0.0.1:9000")]), Err(Refusal::CrossOrigin));
        assert_eq!(check(&[page, ("origin", "null")]), Err(Refusal::CrossOrigin));
        assert_eq!(check(&[page, ("sec-fetch-site", "same-site")]), Err(Refusal::CrossOrigin));
    }

    #[test]
    fn other_host_names_are_refused() {
        let (entrance, cookie) = opened();
        for (host, expected) in [
            ("localhost:9000", Ok(())),
            ("[::1]:4000", Ok(())),
            ("rebound.example:4000", Err(Refusal::CrossOrigin)),
            ("127.0.0.1@rebound.example", Err(Refusal::CrossOrigin)),
            ("", Err(Refusal::CrossOrigin)),
        ] {
            let request = Request::builder().uri("/x/").header("host", host);
            let request = request.header("cookie", &cookie).body(Body::empty()).unwrap();
            assert_eq!(entrance.check(&request), expected, "{host}");
        }
    }
}
