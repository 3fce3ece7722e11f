//! A browser of a person: it follows redirects, and keeps cookies by origin.

use std::collections::HashMap;

use url::Url;

use super::http_client_builder;

pub struct Browser {
    client: reqwest::Client,
    /// The public origin of a service, and where it is.
    service: (String, String),
    /// The values of cookies, by origin and name.
    cookies: HashMap<(String, String), String>,
}

/// The page at which a browser ends.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    pub text: String,
    /// The addresses on the way, the last one included.
    pub way: Vec<String>,
}

impl Browser {
    /// Makes a browser for which the service at `public` is at the address `at`.
    pub fn of_service(public: &str, at: &str) -> Self {
        let client = http_client_builder().redirect(reqwest::redirect::Policy::none());
        let service = (public.to_owned(), at.trim_end_matches('/').to_owned());
        Self { client: client.build().unwrap(), service, cookies: HashMap::new() }
    }

    /// Moves the service to another address, as a balancer may.
    pub fn find_service_at(&mut self, at: &str) {
        at.trim_end_matches('/').clone_into(&mut self.service.1);
    }

    pub fn cookies(&self) -> Vec<&str> {
        self.cookies.keys().map(|(_, name)| name.as_str()).collect()
    }

    /// Opens an address, and follows redirects to the end.
    pub async fn visit(&mut self, address: &str) -> Page {
        self.visit_until(address, |_| false).await
    }

    /// As [`visit`](Self::visit), but stops before an address for which `is_end` holds: the page is
    /// empty then.
    pub async fn visit_until(&mut self, address: &str, is_end: impl Fn(&str) -> bool) -> Page {
        let mut way = vec![address.to_owned()];
        for _ in 0..20 {
            let address = way.last().unwrap().clone();
            if is_end(&address) {
                return Page { status: 0, text: String::new(), way };
            }
            let (status, text, next) = self.get(&address).await;
            match next {
                Some(next) => way.push(next),
                None => return Page { status, text, way },
            }
        }
        panic!("too many redirects: {way:?}");
    }

    async fn get(&mut self, address: &str) -> (u16, String, Option<String>) {
        let origin = Url::parse(address).unwrap().origin().ascii_serialization();
        let (public, at) = &self.service;
        let reached = address.replacen(public.as_str(), at, 1);
        let own = self.cookies.iter().filter(|((of, _), _)| *of == origin);
        let cookies: Vec<String> =
            own.map(|((_, name), value)| format!("{name}={value}")).collect();
        let mut request = self.client.get(&reached);
        if !cookies.is_empty() {
            request = request.header("cookie", cookies.join("; "));
        }
        let response = request.send().await.expect("an answer");
        for cookie in response.headers().get_all("set-cookie") {
            let (pair, _) = cookie.to_str().unwrap().split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert((origin.clone(), name.to_owned()), value.to_owned());
        }
        let next = response.headers().get("location");
        let next = next.map(|next| {
            let next = next.to_str().unwrap();
            Url::parse(address).unwrap().join(next).unwrap().to_string()
        });
        (response.status().as_u16(), response.text().await.unwrap(), next)
    }
}
