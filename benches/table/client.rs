//! The client for measurements over stdio. It uses blocking pipes and does as little work as
//! possible.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::homes;

pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
    line: String,
}

impl Client {
    pub fn spawn(command: &[String]) -> Self {
        Self::spawn_in_home(command, homes::EMPTY_HOME)
    }

    pub fn spawn_in_home(command: &[String], home: &str) -> Self {
        Self::start(homes::command(command, home))
    }

    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the contender starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::with_capacity(256 * 1024, child.stdout.take().expect("a pipe"));
        Self { child, stdin, stdout, last_id: 0, line: String::new() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Performs the handshake, and returns the instructions.
    pub fn initialize(&mut self) -> String {
        let result = self.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            }),
        );
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        result["instructions"].as_str().unwrap_or_default().to_owned()
    }

    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let response: Value = serde_json::from_str(self.read_response()).expect("JSON");
        assert_eq!(response["id"], id, "{response}");
        assert!(response["error"].is_null(), "{response}");
        response["result"].clone()
    }

    /// Sends a request without waiting for the response, and returns the request's id.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
        id
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.write(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    }

    /// Sends a request, waits for the response, and returns the time between them.
    pub fn round_trip(&mut self, method: &str, params: &str) -> Duration {
        self.last_id += 1;
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#,
            self.last_id
        );
        let began = Instant::now();
        self.write(&line);
        let response = self.read_response();
        let took = began.elapsed();
        assert!(
            !response.contains(r#""isError":true"#) && response.contains(r#""result""#),
            "{response:.300}"
        );
        took
    }

    /// Keeps `window` requests in flight until `count` are answered, and returns the total time.
    pub fn pipeline(
        &mut self,
        method: &str,
        params: &str,
        count: usize,
        window: usize,
    ) -> Duration {
        let mut line = String::new();
        let mut sent = 0;
        let began = Instant::now();
        for answered in 0..count {
            line.clear();
            while sent < count && sent < answered + window {
                self.last_id += 1;
                sent += 1;
                line.push_str(&format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"{method}\",\
                     \"params\":{params}}}\n",
                    self.last_id
                ));
            }
            if !line.is_empty() {
                self.stdin.as_mut().expect("open").write_all(line.as_bytes()).expect("it reads");
            }
            let response = self.read_response();
            assert!(response.contains(r#""result""#), "{response:.300}");
        }
        began.elapsed()
    }

    /// Returns the next line that is a response. Notifications are skipped.
    pub fn read_response(&mut self) -> &str {
        loop {
            self.line.clear();
            let read = self.stdout.read_line(&mut self.line).expect("UTF-8");
            assert!(read > 0, "the contender ended");
            if !self.line.contains(r#""method":"notifications/"#) {
                return &self.line;
            }
        }
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(format!("{line}\n").as_bytes()).expect("it reads");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.child.wait().expect("it ends");
    }
}
