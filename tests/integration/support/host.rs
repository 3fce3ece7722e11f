//! A host that sends messages to dormouse, and keeps every message that it receives.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin},
};

use super::{Program, http::HttpWire, lines::Lines};

pub struct Host {
    wire: Wire,
    pub(super) lines: Arc<Lines>,
    last_id: u64,
    /// The program at the other end of the pipes. Over HTTP, the test owns it.
    program: Option<Program>,
}

/// The connection of the host.
enum Wire {
    Pipes(Option<ChildStdin>),
    Http(HttpWire),
}

impl std::ops::Deref for Host {
    type Target = Program;

    fn deref(&self) -> &Program {
        self.program.as_ref().expect("a host on pipes has started its program")
    }
}

impl Host {
    /// Creates a host that talks to a server without dormouse.
    pub fn direct(server: Child) -> Self {
        let directory = tempfile::tempdir().expect("the temporary directory is writable");
        let home = directory.path().to_owned();
        Self::on_pipes(Program::new(server, directory, home, HashMap::new(), true))
    }

    pub(super) fn on_pipes(mut program: Program) -> Self {
        let stdin = program.child.stdin.take();
        let lines = Lines::follow(program.child.stdout.take().expect("a pipe"));
        Self { wire: Wire::Pipes(stdin), lines, last_id: 0, program: Some(program) }
    }

    /// Creates a host that connects to a URL, with additional headers.
    pub fn over_http(url: &str, headers: &[(&str, &str)]) -> Self {
        let lines = Arc::new(Lines::default());
        let wire = Wire::Http(HttpWire::streamable(url, headers, lines.clone()));
        Self { wire, lines, last_id: 0, program: None }
    }

    /// Creates a host that connects to a URL over HTTP+SSE, as in 2024-11-05.
    pub async fn over_sse(url: &str) -> Self {
        let lines = Arc::new(Lines::default());
        let wire = Wire::Http(HttpWire::sse(url, lines.clone()).await);
        Self { wire, lines, last_id: 0, program: None }
    }

    /// Returns the HTTP side of the connection.
    pub fn http(&self) -> &HttpWire {
        match &self.wire {
            Wire::Http(wire) => wire,
            Wire::Pipes(_) => panic!("this host is on pipes"),
        }
    }

    pub fn http_mut(&mut self) -> &mut HttpWire {
        match &mut self.wire {
            Wire::Http(wire) => wire,
            Wire::Pipes(_) => panic!("this host is on pipes"),
        }
    }

    /// Writes a line unchanged.
    pub async fn write(&mut self, line: impl AsRef<[u8]>) {
        let mut line = line.as_ref().to_vec();
        match &mut self.wire {
            Wire::Pipes(stdin) => {
                line.push(b'\n');
                stdin.as_mut().expect("open").write_all(&line).await.expect("dormouse reads");
            }
            Wire::Http(wire) => wire.post(line).await,
        }
    }

    /// Writes a part of a line.
    pub async fn write_part(&mut self, part: &[u8]) {
        let Wire::Pipes(Some(stdin)) = &mut self.wire else { panic!("this host is on pipes") };
        stdin.write_all(part).await.expect("dormouse reads");
    }

    /// Answers a question of dormouse.
    pub async fn reply(&mut self, question: &Value, result: Value) {
        let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        self.write(reply.to_string()).await;
    }

    /// Returns the number of lines received so far.
    pub fn received_count(&self) -> usize {
        self.lines.count()
    }

    /// Returns every line received so far.
    pub fn received(&self) -> Vec<String> {
        self.lines.all()
    }

    /// Returns the methods of all notifications so far, in order.
    pub fn notifications(&self) -> Vec<String> {
        let lines = self.received();
        let messages = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let methods = messages.filter(|message| message.get("id").is_none());
        methods.filter_map(|message| Some(message["method"].as_str()?.to_owned())).collect()
    }

    /// Waits for a message with this method that `wanted` accepts, and returns it.
    pub async fn message(&self, method: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let is_wanted = |line: &str| {
            let message: Value = serde_json::from_str(line).ok()?;
            (message["method"] == method && wanted(&message)).then_some(message)
        };
        self.lines.find(method, is_wanted).await
    }

    pub async fn notification(&self, method: &str) -> Value {
        self.message(method, |_| true).await
    }

    pub async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.write(
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        )
        .await;
        id
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.write(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
    }

    /// Waits for the answer to `id`, and returns its line unchanged.
    pub async fn answer_line(&self, id: &Value) -> String {
        let is_wanted = |line: &str| {
            let message: Value = serde_json::from_str(line).ok()?;
            (message.get("method").is_none() && message["id"] == *id).then(|| line.to_owned())
        };
        self.lines.find(&format!("the answer to {id}"), is_wanted).await
    }

    /// Waits for the answer to `id`, or for the question after the first `answered` ones.
    pub async fn answer_or_question(&self, id: u64, answered: usize, is_modern: bool) -> Value {
        let questions = std::cell::Cell::new(0);
        let is_wanted = |line: &str| {
            let message: Value = serde_json::from_str(line).ok()?;
            if message.get("method").is_none() && message["id"] == id {
                return Some(message);
            }
            let is_question =
                !is_modern && message.get("method").is_some() && message.get("id").is_some();
            questions.set(questions.get() + usize::from(is_question));
            let is_next = is_question && questions.get() == answered + 1;
            is_next.then_some(message)
        };
        let search = |line: &str| is_wanted(line);
        self.lines
            .find_from_start(&format!("the answer to {id}"), || questions.set(0), search)
            .await
    }

    /// Cancels a request, as the transport and the era require.
    pub async fn cancel(&mut self, id: u64, is_modern: bool) {
        match &mut self.wire {
            Wire::Http(wire) if is_modern => wire.close(id),
            _ => self.notify("notifications/cancelled", json!({"requestId": id})).await,
        }
    }

    pub async fn answer(&self, id: u64) -> Value {
        serde_json::from_str(&self.answer_line(&json!(id)).await).expect("JSON")
    }

    /// Sends a request and returns the whole answer.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Sends a request and returns its result.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub async fn initialize(&mut self, capabilities: Value) -> Value {
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info});
        let result = self.request("initialize", params).await;
        self.notify("notifications/initialized", json!({})).await;
        result
    }

    /// Calls a tool by its listed name.
    pub async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// Calls a server's tool through `use_tool`.
    pub async fn use_tool(&mut self, name: &str, input: Value) -> Value {
        self.call("use_tool", json!({"tool_name": name, "tool_input": input})).await
    }

    /// Calls the tool of the server `g`, and returns the text of its result.
    pub async fn use_g(&mut self) -> String {
        text_of(&self.use_tool("g/t", json!({})).await).to_owned()
    }

    pub async fn load(&mut self, server: &str) -> Value {
        self.call("load_mcp", json!({"mcp_name": server})).await
    }

    /// Returns the current description of `discover_tool`.
    pub async fn description(&mut self) -> String {
        let list = self.request("tools/list", json!({})).await;
        list["tools"][0]["description"].as_str().expect("a description").to_owned()
    }

    pub async fn tool_names(&mut self) -> Vec<String> {
        let list = self.request("tools/list", json!({})).await;
        let tools = list["tools"].as_array().expect("a list").iter();
        tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Closes dormouse's input, and returns its exit code.
    pub async fn end(&mut self) -> Option<i32> {
        match &mut self.wire {
            Wire::Pipes(stdin) => drop(stdin.take()),
            Wire::Http(_) => panic!("this host has no program to end"),
        }
        self.exit().await
    }

    /// Closes dormouse's input, and returns the log that was left unread. The host reads it when
    /// dormouse would have ended but for the log.
    pub async fn end_and_read_log(&mut self) -> String {
        if let Wire::Pipes(stdin) = &mut self.wire {
            drop(stdin.take());
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        self.program.as_mut().expect("it has started one").read_log().await
    }

    pub async fn exit(&mut self) -> Option<i32> {
        self.program.as_mut().expect("it has started one").exit().await
    }

    /// Turns the host into one that speaks 2026-07-28.
    pub fn into_modern(self) -> ModernHost {
        ModernHost(self)
    }
}

/// A host that speaks 2026-07-28: every request names the version.
pub struct ModernHost(pub Host);

impl ModernHost {
    pub fn meta(mut params: Value) -> Value {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        params
    }

    pub async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.0.send(method, Self::meta(params)).await
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        self.0.request(method, Self::meta(params)).await
    }

    /// Sends a request that declares these capabilities, and returns its result.
    pub async fn request_as(&mut self, method: &str, params: Value, declared: &Value) -> Value {
        let mut params = Self::meta(params);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declared.clone();
        self.0.request(method, params).await
    }

    pub async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// Opens a stream of notifications and waits until it is acknowledged.
    pub async fn listen(&mut self, filter: Value) -> u64 {
        let id = self.send("subscriptions/listen", json!({"notifications": filter})).await;
        self.0.message("notifications/subscriptions/acknowledged", |ack| of_stream(ack, id)).await;
        id
    }
}

fn of_stream(message: &Value, id: u64) -> bool {
    message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == id
}

/// Returns the first text of a tool's result.
pub fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}
