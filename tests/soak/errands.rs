//! What hosts do: one errand is one call with a payload of its own, and a check of what came of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    host::{Failure, Host},
    ledger::{Fault, Ledger},
    server_kind::ServerKind,
};

/// Maximum time for a notification that an errand causes.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(20);

/// Time between two checks of whether the daemon was replaced.
const DAEMON_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Changes of each kind before a host leaves.
const CHANGES_ALONE: usize = 3;

/// The errands of one host.
pub struct Errands {
    host: Arc<Host>,
    ledger: Arc<Ledger>,
    last: AtomicU64,
}

/// A notification that an errand causes.
struct ExpectedNotification {
    received: watch::Receiver<u64>,
    /// The number of changes of the daemon before the errand.
    daemon_changes: Option<u64>,
}

impl Errands {
    pub fn new(host: Arc<Host>, ledger: Arc<Ledger>) -> Self {
        Self { host, ledger, last: AtomicU64::new(0) }
    }

    /// Runs one errand, chosen at random.
    pub async fn run_one(&self, random: &mut fastrand::Rng) {
        match random.u32(..100) {
            0..30 => self.echo(any_server(random)).await,
            30..38 => self.big(any_server(random), 200_000).await,
            38..40 => self.big(ServerKind::Steady, 3_000_000).await,
            40..48 => self.progress(of(random, &PROGRESSING)).await,
            48..58 => self.ask(of(random, &[ServerKind::Asking, ServerKind::Modern])).await,
            58..66 => self.touch().await,
            66..70 => self.grow().await,
            70..74 => self.cancel(of(random, &[ServerKind::Steady, ServerKind::Sleeper])).await,
            74..78 => self.flood().await,
            78..81 => self.fail("die", ServerKind::Mortal).await,
            81..83 => self.fail("hang", ServerKind::Frozen).await,
            83..90 => self.read(of(random, &[ServerKind::Steady, ServerKind::Changing])).await,
            90..95 => self.prompt().await,
            95..98 => self.list().await,
            _ => self.search().await,
        }
    }

    fn payload(&self, errand: &'static str) -> String {
        self.ledger.begin(errand);
        format!("{}.{}", self.host.name, self.last.fetch_add(1, Ordering::Relaxed))
    }

    /// Calls a tool of a server with this payload.
    async fn call(
        &self,
        server: ServerKind,
        tool: &str,
        payload: &str,
        more: Value,
    ) -> Result<String, Failure> {
        let result =
            self.host.request("tools/call", call_params(server, tool, payload, more), payload);
        let result = result.await?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        if result["isError"] == json!(true) { Err(Failure::Refused(text)) } else { Ok(text) }
    }

    /// Compares what came of a call with what has to come.
    fn expect(&self, server: ServerKind, payload: &str, got: Result<String, Failure>, right: &str) {
        match got {
            Ok(text) if text == right => self.ledger.answered(payload),
            Ok(text) => {
                let text: String = text.chars().take(200).collect();
                let what = format!("{payload} at {} was answered {text:?}", server.name());
                self.ledger.find(Fault::Crossed, what);
            }
            Err(Failure::Refused(_)) if server.may_fail() => self.ledger.failed(payload),
            Err(failure) if self.host.has_lost_daemon(&failure) => self.ledger.failed(payload),
            Err(failure) => {
                let what = format!("{payload} at {}: {failure}", server.name());
                self.ledger.find(Fault::Lost, what);
            }
        }
    }

    async fn echo(&self, server: ServerKind) {
        let payload = self.payload("echo");
        let got = self.call(server, "echo", &payload, json!({})).await;
        self.expect(server, &payload, got, &format!("echo {payload}"));
    }

    /// Gets a large result.
    async fn big(&self, server: ServerKind, size: usize) {
        let payload = self.payload("big");
        let got = self.call(server, "big", &payload, json!({"size": size})).await;
        self.expect(server, &payload, got, &format!("big {payload} {}", "x".repeat(size)));
    }

    /// Gets progress, all of it and in order, before the result.
    async fn progress(&self, server: ServerKind) {
        const STEPS: u64 = 20;
        let payload = self.payload("progress");
        let params = call_params(server, "progress", &payload, json!({"size": STEPS}));
        let (id, mut seen) = (self.host.next_id(), 0);
        let request = self.host.request_once(id, "tools/call", params, &payload);
        let mut request = std::pin::pin!(request);
        let got = loop {
            tokio::select! {
                got = &mut request => break got,
                () = tokio::time::sleep(Duration::from_millis(5)) => {
                    seen = seen.max(self.host.progress_of(&payload));
                }
            }
        };
        let got = got.and_then(|result| {
            let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            if result["isError"] == json!(true) { Err(Failure::Refused(text)) } else { Ok(text) }
        });
        self.expect(server, &payload, got, &format!("progress {payload}"));
    }

    /// Is asked something in the middle of the call.
    async fn ask(&self, server: ServerKind) {
        let payload = self.payload("ask");
        let got = self.call(server, "ask", &payload, json!({})).await;
        self.expect(server, &payload, got, &format!("ask {payload} answer-to-{payload}"));
    }

    /// Has the server announce a change of the host's resource.
    async fn touch(&self) {
        let payload = self.payload("touch");
        let more = json!({"uri": self.host.resource()});
        let update = self.expect_notification(&self.host.updates);
        let got = self.call(ServerKind::Steady, "touch", &payload, more).await;
        self.expect(ServerKind::Steady, &payload, got, &format!("touch {payload}"));
        self.notified(update, &payload, "an update of its resource").await;
    }

    /// Has the server replace a tool and announce it.
    async fn grow(&self) {
        let payload = self.payload("grow");
        let change = self.expect_notification(&self.host.tool_lists);
        let got = self.call(ServerKind::Changing, "grow", &payload, json!({})).await;
        self.expect(ServerKind::Changing, &payload, got, &format!("grow {payload}"));
        self.notified(change, &payload, "tools/list_changed").await;
    }

    /// Causes changes while the host does nothing else, so that no other change of its own can hide
    /// that it was not told of one.
    pub async fn change_alone(&self) {
        for _ in 0..CHANGES_ALONE {
            self.grow().await;
            self.touch().await;
        }
    }

    fn expect_notification(&self, received: &watch::Sender<u64>) -> ExpectedNotification {
        let daemon_changes = self.host.daemon_changes();
        ExpectedNotification { received: received.subscribe(), daemon_changes }
    }

    /// Waits for a notification. Those that a daemon has not delivered before its end are lost.
    async fn notified(&self, mut expected: ExpectedNotification, payload: &str, what: &str) {
        let may_be_lost = || {
            let now = self.host.daemon_changes();
            now.is_none() || now != expected.daemon_changes
        };
        let waiting = async {
            while !may_be_lost() {
                let received =
                    tokio::time::timeout(DAEMON_CHECK_INTERVAL, expected.received.changed());
                if received.await.is_ok() {
                    self.ledger.notified.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        };
        if tokio::time::timeout(NOTIFICATION_TIMEOUT, waiting).await.is_err() {
            self.ledger.find(Fault::Lost, format!("{payload}: the host never got {what}"));
        }
    }

    /// Cancels a call in flight.
    async fn cancel(&self, server: ServerKind) {
        let payload = self.payload("cancel");
        let id = self.host.next_id();
        let params = call_params(server, "slow", &payload, json!({}));
        let request = self.host.request_once(id, "tools/call", params, &payload);
        let answered = tokio::time::timeout(Duration::from_millis(150), request).await;
        self.ledger.failed(&payload);
        if answered.is_err() {
            self.host.cancel(id).await;
        }
    }

    /// Has the server write much that nobody has asked for.
    async fn flood(&self) {
        let payload = self.payload("flood");
        let got = self.call(ServerKind::Steady, "flood", &payload, json!({"size": 300})).await;
        self.expect(ServerKind::Steady, &payload, got, &format!("flood {payload}"));
    }

    /// Makes a call that the server never answers. dormouse has to say so.
    async fn fail(&self, tool: &'static str, server: ServerKind) {
        let payload = self.payload(tool);
        match self.call(server, tool, &payload, json!({})).await {
            Err(Failure::Refused(_)) => self.ledger.failed(&payload),
            other => {
                let what = format!("{payload} at {}: {other:?}", server.name());
                self.ledger.find(Fault::Lost, what);
            }
        }
    }

    async fn read(&self, server: ServerKind) {
        let payload = self.payload("read");
        let uri = format!("soak-{}://read/{payload}", server.name());
        let got = self.host.request("resources/read", json!({"uri": uri}), &payload).await;
        let got = got.map(|result| text_at(&result["contents"][0]["text"]));
        self.expect(server, &payload, got, &format!("content of {uri}"));
    }

    async fn prompt(&self) {
        let payload = self.payload("prompt");
        let params = json!({"name": "p-steady", "arguments": {"payload": payload}});
        let got = self.host.request("prompts/get", params, &payload).await;
        let got = got.map(|result| text_at(&result["description"]));
        self.expect(ServerKind::Steady, &payload, got, &format!("prompt {payload}"));
    }

    async fn list(&self) {
        let payload = self.payload("list");
        let listed = self.host.request("tools/list", json!({}), &payload).await;
        let tools = listed.as_ref().ok().and_then(|result| result["tools"].as_array());
        let has_own =
            tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "use_tool"));
        if !has_own {
            self.ledger.find(Fault::Lost, format!("{payload}: the list of tools: {listed:?}"));
        }
    }

    async fn search(&self) {
        let payload = self.payload("search");
        let arguments = json!({"query": "does echo"});
        let params = json!({"name": "discover_tool", "arguments": arguments});
        let found = self.host.request("tools/call", params, &payload).await;
        let is_right = match &found {
            Ok(result) => text_at(&result["content"][0]["text"]).contains("steady/echo"),
            Err(failure) => self.host.has_lost_daemon(failure),
        };
        if !is_right {
            self.ledger.find(Fault::Lost, format!("{payload}: the search found {found:?}"));
        }
    }
}

const PROGRESSING: [ServerKind; 4] =
    [ServerKind::Steady, ServerKind::Sleeper, ServerKind::Modern, ServerKind::Mortal];

fn any_server(random: &mut fastrand::Rng) -> ServerKind {
    of(random, &ServerKind::ALL)
}

fn of(random: &mut fastrand::Rng, kinds: &[ServerKind]) -> ServerKind {
    kinds[random.usize(..kinds.len())]
}

fn text_at(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the params of a call through `use_tool`. The payload is also the progress token.
fn call_params(server: ServerKind, tool: &str, payload: &str, mut more: Value) -> Value {
    more["payload"] = json!(payload);
    json!({
        "name": "use_tool",
        "arguments": {"tool_name": format!("{}/{tool}", server.name()), "tool_input": more},
        "_meta": {"progressToken": payload},
    })
}
