//! A browser that has opened the page of `dormouse ui`.

use std::process::Stdio;

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use super::http_client;

/// The page of a running `dormouse ui`.
pub struct Page {
    /// Ends with the value.
    _process: Child,
    /// The address that opens the page once.
    pub opening: String,
}

/// The page as a browser has it.
pub struct OpenPage {
    _page: Page,
    client: Client,
    /// The address of the page, with a slash at the end.
    pub address: String,
    pub cookie: String,
}

impl Page {
    /// `command`: `dormouse ui --no-browser`, for some config.
    pub async fn serve(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.kill_on_drop(true).spawn().expect("it runs");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let opening = lines.next_line().await.expect("UTF-8").expect("the address");
        Self { _process: process, opening }
    }

    /// Returns the address with another path.
    pub fn at(&self, path: &str) -> String {
        let (origin, _) = self.opening.split_once("/open/").expect("an address with a ticket");
        format!("{origin}{path}")
    }

    /// Opens the page.
    pub async fn open(self) -> OpenPage {
        let client = http_client();
        let answer = client.get(&self.opening).send().await.expect("an answer");
        let cookie = answer.headers()["set-cookie"].to_str().expect("ASCII").to_owned();
        let body = answer.text().await.expect("UTF-8");
        let (_, path) = body.split_once("url=").expect("the path of the page");
        let (path, _) = path.split_once('"').expect("the end of an attribute");
        let cookie = cookie.split(';').next().expect("a pair").to_owned();
        OpenPage { address: self.at(path), client, cookie, _page: self }
    }
}

impl OpenPage {
    /// Returns a request without a cookie.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.address))
    }

    /// Returns the answer to a GET of the page.
    pub async fn get(&self, path: &str) -> Value {
        let request = self.request(Method::GET, path).header("cookie", &self.cookie);
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("UTF-8");
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Returns the answer to a GET of the page as soon as it is as expected.
    pub async fn get_when(&self, path: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..200 {
            let answer = self.get(path).await;
            if is_expected(&answer) {
                return answer;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{path} is never as expected");
    }

    /// Returns the state of a server.
    pub async fn server(&self, name: &str) -> Value {
        let overview = self.get("api/overview").await;
        let mut servers = overview["servers"].as_array().expect("a list").iter();
        servers.find(|server| server["name"] == *name).expect("it is shown").clone()
    }

    /// Sends a request of the page. Returns the answer, or its error if it was refused.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let request = self.request(Method::POST, path).header("cookie", &self.cookie);
        let request = request.header("dormouse-page", "1");
        let request = request.header("content-type", "application/json").body(body.to_string());
        let answer = request.send().await.expect("an answer");
        let is_done = answer.status() == StatusCode::OK;
        let answer: Value = serde_json::from_slice(&answer.bytes().await.expect("a body"))
            .expect("errors of the page are JSON");
        if is_done {
            return Ok(answer);
        }
        Err(answer["error"].as_str().expect("a reason").to_owned())
    }
}
