//! The HTTP side of the bench: an upstream server, a bare reverse proxy, and a client that does as
//! little work as possible.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::Request,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{
    contender::{bench_program, config, dormouse, server},
    replicas::Parts,
    upstream::answer,
};

/// Number of connections of the client, and therefore of requests that it can have in flight.
pub const CONNECTIONS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpContender {
    Direct,
    /// A reverse proxy that forwards the body of each POST.
    Relay,
    /// dormouse in front of the same HTTP upstream.
    ToHttp,
    /// dormouse in front of an upstream on stdio.
    ToStdio,
}

impl HttpContender {
    pub const ALL: [Self; 4] = [Self::Direct, Self::Relay, Self::ToHttp, Self::ToStdio];

    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relay => "reverse proxy",
            Self::ToHttp => "HTTP → HTTP",
            Self::ToStdio => "HTTP → stdio",
        }
    }

    /// Starts the contender, and returns a client that has completed the handshake.
    pub fn connect(self) -> HttpClient {
        let program =
            |part: &str, more: &[String]| [&[bench_program(), part.to_owned()], more].concat();
        let mut services = Vec::new();
        let mut behind = |command: &[String]| {
            let service = Service::start(command);
            let url = service.url.clone();
            services.push(service);
            url
        };
        let url = match self {
            Self::Direct => behind(&program("http-upstream", &[])),
            Self::Relay => {
                let upstream = behind(&program("http-upstream", &[]));
                behind(&program("http-relay", &[upstream]))
            }
            Self::ToHttp => {
                let upstream = behind(&program("http-upstream", &[]));
                let entry = json!({"description": "Answers over HTTP.", "url": upstream});
                behind(&dormouse_service(&[("server-1".to_owned(), entry)]))
            }
            Self::ToStdio => behind(&dormouse_service(&[server(1, 2, 0)])),
        };
        HttpClient::connect(&url, services)
    }
}

fn dormouse_service(servers: &[(String, Value)]) -> Vec<String> {
    let http = ["--http", "127.0.0.1:0", "--surface", "direct", "--eager"].map(str::to_owned);
    [dormouse(&config(servers)), http.to_vec()].concat()
}

/// A running program that listens on a URL. The program is stopped on drop.
pub struct Service {
    child: Child,
    pub url: String,
}

impl Service {
    pub fn start(command: &[String]) -> Self {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the contender starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("listening on ") {
            line.clear();
            assert!(lines.read_line(&mut line).expect("UTF-8") > 0, "the contender ended");
        }
        // Discard the rest of stderr, so that a full pipe does not block the program.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let url = line.split("listening on ").nth(1).expect("an address").trim().to_owned();
        Self { child, url }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let process = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).expect("an id"));
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGTERM).expect("it runs");
        self.child.wait().expect("it ends");
    }
}

pub struct HttpClient {
    connections: Vec<BufReader<TcpStream>>,
    head: String,
    body: Vec<u8>,
    last_id: u64,
    tool: &'static str,
    is_modern: bool,
    // Declared after the connections, so that the connections are closed first.
    services: Vec<Service>,
    /// Programs around the services.
    parts: Option<Parts>,
}

impl HttpClient {
    fn connect(url: &str, services: Vec<Service>) -> Self {
        let mut client = Self::unconnected(url, services);
        client.shake_hands();
        client
    }

    /// Connects a client of 2026-07-28, which needs no session.
    pub fn modern(url: &str, services: Vec<Service>) -> Self {
        let mut client = Self::unconnected(url, services);
        client.is_modern = true;
        client.head.push_str("mcp-protocol-version: 2026-07-28\r\n");
        client.tool = "server-1__echo";
        client.round_trip();
        client
    }

    /// Keeps programs around the services until the client ends.
    pub fn keep(&mut self, parts: Parts) {
        self.parts = Some(parts);
    }

    fn unconnected(url: &str, services: Vec<Service>) -> Self {
        let (address, path) =
            url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a URL");
        let open = || {
            let stream = TcpStream::connect(address).expect("it listens");
            stream.set_nodelay(true).expect("a socket");
            BufReader::with_capacity(64 * 1024, stream)
        };
        let connections = (0..CONNECTIONS).map(|_| open()).collect();
        let head = format!(
            "POST /{path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n"
        );
        let (tool, is_modern, parts) = ("echo", false, None);
        let (body, last_id) = Default::default();
        Self { connections, head, body, last_id, tool, is_modern, services, parts }
    }

    fn shake_hands(&mut self) {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}});
        let headers = self.exchange("initialize", &hello.to_string());
        if let Some(id) = value_of("mcp-session-id", &headers) {
            self.head.push_str(&format!("mcp-session-id: {id}\r\n"));
        }
        // dormouse lists the upstream's tool with the server's name as a prefix.
        self.exchange("tools/list", "{}");
        let list = String::from_utf8_lossy(&self.body);
        if list.contains("server-1__echo") {
            self.tool = "server-1__echo";
        }
    }

    fn call(&self) -> String {
        let arguments = json!({"path": "/tmp/some/file.txt", "limit": 10});
        let mut call = json!({"name": self.tool, "arguments": arguments});
        if self.is_modern {
            call["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        call.to_string()
    }

    /// Makes one call, and returns the time that it took.
    pub fn round_trip(&mut self) -> Duration {
        let call = self.call();
        let began = Instant::now();
        self.exchange("tools/call", &call);
        let took = began.elapsed();
        let body = String::from_utf8_lossy(&self.body);
        assert!(body.contains("some/file"), "{body}");
        took
    }

    /// Makes `count` calls, one per connection at a time, and returns the total time.
    pub fn call_many(&mut self, count: usize) -> Duration {
        let call = self.call();
        let began = Instant::now();
        for _ in 0..count / CONNECTIONS {
            for connection in 0..CONNECTIONS {
                self.write(connection, "tools/call", &call);
            }
            for connection in 0..CONNECTIONS {
                self.read(connection);
                assert!(self.body.len() > 40);
            }
        }
        began.elapsed()
    }

    fn exchange(&mut self, method: &str, params: &str) -> String {
        self.write(0, method, params);
        self.read(0)
    }

    fn write(&mut self, connection: usize, method: &str, params: &str) {
        self.last_id += 1;
        let id = self.last_id;
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let named = if self.is_modern {
            format!("mcp-method: {method}\r\nmcp-name: {}\r\n", self.tool)
        } else {
            String::new()
        };
        let head = &self.head;
        let request = format!("{head}{named}content-length: {}\r\n\r\n{body}", body.len());
        let stream = self.connections[connection].get_mut();
        stream.write_all(request.as_bytes()).expect("it reads");
    }

    /// Reads a response into `body`, and returns its headers.
    fn read(&mut self, connection: usize) -> String {
        let stream = &mut self.connections[connection];
        let mut headers = String::new();
        while !headers.ends_with("\r\n\r\n") {
            assert!(stream.read_line(&mut headers).expect("text") > 0, "the contender hung up");
        }
        let length = value_of("content-length", &headers).expect("a length");
        let length = length.parse().expect("a number");
        self.body.resize(length, 0);
        stream.read_exact(&mut self.body).expect("a whole answer");
        headers
    }
}

/// Returns the value of a header.
fn value_of<'a>(name: &str, headers: &'a str) -> Option<&'a str> {
    let mut headers = headers.lines().filter_map(|line| line.split_once(": "));
    headers.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

impl Drop for HttpClient {
    fn drop(&mut self) {
        self.connections.clear();
        self.services.clear();
        self.parts = None;
    }
}

/// Runs `http-upstream`: the upstream server over HTTP.
pub fn serve_upstream() {
    let answer = |request: Request| async move {
        let body = to_bytes(request.into_body(), usize::MAX).await.expect("a whole body");
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        match message.get("id") {
            Some(id) => {
                let result = answer(&message, 2);
                json_text(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into())
            }
            None => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        }
    };
    serve(Router::new().fallback(answer));
}

/// Runs `http-relay URL`: forwards the body of each request, and returns the response.
pub fn serve_relay(arguments: &[String]) {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build().expect("a client");
    let url = arguments[0].clone();
    let relay = move |headers: HeaderMap, body: Bytes| {
        let request = client.post(&url).body(body);
        async move {
            let kept = ["content-type", "accept", "mcp-session-id"];
            let request = kept.iter().fold(request, |request, name| match headers.get(*name) {
                Some(value) => request.header(*name, value),
                None => request,
            });
            let answer = request.send().await.expect("the upstream answers");
            json_text(answer.bytes().await.expect("a whole answer"))
        }
    };
    serve(Router::new().fallback(relay));
}

fn json_text(text: Bytes) -> Response {
    ([("content-type", "application/json")], text).into_response()
}

fn serve(router: Router) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        eprintln!("listening on http://{}/mcp", listener.local_addr().expect("it listens"));
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            stream.set_nodelay(true).expect("a socket");
        });
        axum::serve(listener, router).await.expect("it serves");
    });
}
