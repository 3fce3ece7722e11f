//! A host before dormouse: it writes lines, and keeps every line that comes back.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader},
    process::{Child, ChildStderr, ChildStdin},
    sync::Notify,
};

/// Far longer than anything takes; only a hang runs into it.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Arc<Lines>,
    log: Arc<Lines>,
    /// Kept open, and not read.
    _unread: Option<ChildStderr>,
    last_id: u64,
    server_logs: HashMap<String, PathBuf>,
    _directory: TempDir,
}

/// The lines of one stream, as they came.
#[derive(Default)]
struct Lines {
    seen: Mutex<Vec<String>>,
    grown: Notify,
}

impl Lines {
    fn follow(stream: impl AsyncRead + Unpin + Send + 'static) -> Arc<Self> {
        let lines = Arc::new(Self::default());
        let kept = lines.clone();
        tokio::spawn(async move {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
                let text = String::from_utf8(std::mem::take(&mut line)).expect("UTF-8");
                kept.seen.lock().unwrap().push(text.trim_end_matches('\n').to_owned());
                kept.grown.notify_waiters();
            }
        });
        lines
    }

    fn all(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// The first line, old or new, of which `wanted` makes something.
    async fn find<T>(&self, what: &str, wanted: impl Fn(&str) -> Option<T>) -> T {
        let search = async {
            loop {
                let grown = self.grown.notified();
                if let Some(found) = self.seen.lock().unwrap().iter().find_map(|line| wanted(line))
                {
                    return found;
                }
                let _ = tokio::time::timeout(Duration::from_millis(50), grown).await;
            }
        };
        match tokio::time::timeout(PATIENCE, search).await {
            Ok(found) => found,
            Err(tokio::time::error::Elapsed { .. }) => {
                panic!("{what} never came; there is {:#?}", self.all())
            }
        }
    }
}

impl Host {
    /// A host that talks to a server without dormouse.
    pub fn direct(server: Child) -> Self {
        let directory = tempfile::tempdir().expect("the temporary directory is writable");
        Self::new(server, directory, HashMap::new(), true)
    }

    pub(super) fn new(
        mut child: Child,
        directory: TempDir,
        server_logs: HashMap<String, PathBuf>,
        reads_log: bool,
    ) -> Self {
        let stdin = child.stdin.take();
        let lines = Lines::follow(child.stdout.take().expect("a pipe"));
        let mut unread = child.stderr.take();
        let log = match unread.take_if(|_| reads_log) {
            Some(stderr) => Lines::follow(stderr),
            None => Arc::default(),
        };
        Self {
            child,
            stdin,
            lines,
            log,
            _unread: unread,
            last_id: 0,
            server_logs,
            _directory: directory,
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id().expect("it has not been waited for")
    }

    /// Writes a line as it is.
    pub async fn write(&mut self, line: impl AsRef<[u8]>) {
        let mut line = line.as_ref().to_vec();
        line.push(b'\n');
        self.stdin.as_mut().expect("open").write_all(&line).await.expect("dormouse reads");
    }

    /// Every line that has come so far.
    pub fn received(&self) -> Vec<String> {
        self.lines.all()
    }

    /// The methods of all notifications so far, in order.
    pub fn notifications(&self) -> Vec<String> {
        let lines = self.received();
        let messages = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let methods = messages.filter(|message| message.get("id").is_none());
        methods.filter_map(|message| Some(message["method"].as_str()?.to_owned())).collect()
    }

    /// Waits for a line with this method that `wanted` accepts, and returns it.
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

    /// Waits for a line of dormouse's log with this text.
    pub async fn logged(&self, text: &str) {
        self.log.find(text, |line| line.contains(text).then_some(())).await;
    }

    pub fn log(&self) -> Vec<String> {
        self.log.all()
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

    /// Waits for the line that answers `id`, exactly as it came.
    pub async fn answer_line(&self, id: &Value) -> String {
        let is_wanted = |line: &str| {
            let message: Value = serde_json::from_str(line).ok()?;
            (message.get("method").is_none() && message["id"] == *id).then(|| line.to_owned())
        };
        self.lines.find(&format!("the answer to {id}"), is_wanted).await
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

    /// Calls a tool by the name under which it is listed.
    pub async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// Calls a server's tool through `use_tool`.
    pub async fn use_tool(&mut self, name: &str, input: Value) -> Value {
        self.call("use_tool", json!({"tool_name": name, "tool_input": input})).await
    }

    pub async fn load(&mut self, server: &str) -> Value {
        self.call("load_mcp", json!({"mcp_name": server})).await
    }

    /// The description of `discover_tool` as it is now.
    pub async fn description(&mut self) -> String {
        let list = self.request("tools/list", json!({})).await;
        list["tools"][0]["description"].as_str().expect("a description").to_owned()
    }

    pub async fn tool_names(&mut self) -> Vec<String> {
        let list = self.request("tools/list", json!({})).await;
        let tools = list["tools"].as_array().expect("a list").iter();
        tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// What the fixture server has noted so far, line by line.
    pub fn server_log(&self, server: &str) -> Vec<String> {
        let text = std::fs::read_to_string(&self.server_logs[server]).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The processes of this server that were ever started.
    pub fn started(&self, server: &str) -> Vec<u32> {
        let log = self.server_log(server);
        log.iter().filter_map(|line| line.strip_prefix("start ")?.parse().ok()).collect()
    }

    /// Waits until the server has noted a line that starts so.
    pub async fn server_noted(&self, server: &str, start: &str) {
        super::eventually(&format!("{server} notes {start}"), || {
            self.server_log(server).iter().any(|line| line.starts_with(start))
        })
        .await;
    }

    /// Closes dormouse's input, and returns its exit code.
    pub async fn end(&mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.exit().await
    }

    pub async fn exit(&mut self) -> Option<i32> {
        let exited = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        exited.expect("dormouse ends").expect("it can be waited for").code()
    }

    pub fn signal(&self, signal: Signal) {
        let process = nix::unistd::Pid::from_raw(i32::try_from(self.id()).expect("a process id"));
        nix::sys::signal::kill(process, signal).expect("it runs");
    }

    /// The same host, speaking 2026-07-28 from now on.
    pub fn into_modern(self) -> Modern {
        Modern(self)
    }
}

impl Drop for Host {
    /// Ends dormouse in order, so that nothing of the test is left when the next one runs.
    fn drop(&mut self) {
        drop(self.stdin.take());
        let Some(process) = self.child.id().and_then(|id| i32::try_from(id).ok()) else { return };
        // It may have ended by itself; else it is killed when the child is dropped.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), Signal::SIGTERM);
        for _ in 0..500 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A host that speaks 2026-07-28: every request says so.
pub struct Modern(pub Host);

impl Modern {
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

/// The first text of a tool's result.
pub fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}
