//! Several replicas of one service: hosts reach any of them with each request.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{
    Host, ModernHost, PATIENCE, Program, Proxy, Redis, STORE_KEY, Server, descendants, eventually,
    http_client, text_of,
};

/// Replicas with the servers `a` and `b`, and their store.
struct Service {
    redis: Redis,
    /// The directory of all replicas, so that their servers are the same.
    home: tempfile::TempDir,
    replicas: Vec<Program>,
    /// Servers next to `a` and `b`.
    servers: Vec<Server>,
    loads: &'static str,
}

impl Service {
    /// Starts three replicas; `None` on a machine without Redis.
    async fn start() -> Option<Self> {
        Self::with([]).await
    }

    /// As [`start`](Self::start), with more servers.
    async fn with(servers: impl IntoIterator<Item = Server>) -> Option<Self> {
        Self::with_loads("process", servers).await
    }

    /// As [`with`](Self::with); `loads`: whose the loads are.
    async fn with_loads(
        loads: &'static str,
        servers: impl IntoIterator<Item = Server>,
    ) -> Option<Self> {
        let redis = Redis::start().await?;
        let home = tempfile::tempdir().unwrap();
        let servers = servers.into_iter().collect();
        let mut service = Self { redis, home, replicas: Vec::new(), servers, loads };
        for _ in 0..3 {
            service.replicas.push(service.replica());
        }
        for replica in &service.replicas {
            replica.url("/mcp").await;
        }
        service.wait_for_beats().await;
        Some(service)
    }

    fn replica(&self) -> Program {
        let servers = [Server::lazy("a"), Server::lazy("b").set("maxResultBytes", 2000)]
            .into_iter()
            .chain(self.servers.clone());
        let proxy = Proxy::with(servers).at_home(self.home.path()).set("store", self.redis.url());
        let proxy = proxy.set("storeKeys", json!([STORE_KEY])).set("authTokens", json!(["t"]));
        proxy.set("loads", self.loads).start_http()
    }

    /// Waits until every replica has told of itself and read what the others have told.
    async fn wait_for_beats(&self) {
        self.wait_for_stored("replicas", self.replicas.len()).await;
        for replica in &self.replicas {
            replica.logged("sees 2 other replicas").await;
        }
    }

    async fn url(&self, replica: usize) -> String {
        self.replicas[replica].url("/mcp").await
    }

    async fn url_of_activate(&self, replica: usize) -> String {
        self.replicas[replica].url("/mcp?surface=activate").await
    }

    async fn host(&self, replica: usize) -> Host {
        Host::over_http(&self.url(replica).await, &[("authorization", "Bearer t")])
    }

    async fn legacy_host(&self, replica: usize) -> Host {
        let mut host = self.host(replica).await;
        host.initialize(json!({"elicitation": {}})).await;
        host
    }

    async fn move_to(&self, host: &mut Host, replica: usize) {
        host.http_mut().move_to(&self.url(replica).await);
    }

    /// Waits until the store has so many values of a kind.
    async fn wait_for_stored(&self, kind: &str, values: usize) {
        let all = async { while self.stored(kind).await.len() < values {} };
        tokio::time::timeout(PATIENCE, all).await.expect("they are stored");
    }

    /// Returns the names of the values of a kind.
    async fn stored(&self, kind: &str) -> Vec<String> {
        let mut names = self.redis.names().await;
        names.retain(|name| name.contains(&format!(":{kind}}}:1:value")));
        names
    }

    /// Returns the sizes of the records of hosts, in bytes.
    async fn record_sizes(&self) -> Vec<usize> {
        let mut sizes = Vec::new();
        for name in self.stored("hosts").await {
            let size = self.redis.command(&["STRLEN", &name]).await;
            sizes.push(size.trim().parse().unwrap());
        }
        sizes
    }

    /// Waits until a record has more than this size.
    async fn wait_for_larger_record(&self, size: usize) {
        let is_larger = || async { self.record_sizes().await.iter().any(|it| *it > size) };
        let stored = async { while !is_larger().await {} };
        tokio::time::timeout(PATIENCE, stored).await.expect("it is stored");
    }

    /// Returns whether a replica answers a request for which another one may hang.
    async fn is_answered(&self, url: &str, headers: &[(&str, &str)], asked: &Value) -> bool {
        ask(url, headers, asked).await.status() == 200
    }

    /// Waits until a replica answers it: the record of the one that hangs has to vanish.
    async fn wait_until_answered(&self, url: &str, headers: &[(&str, &str)], asked: &Value) {
        let answered = async { while !self.is_answered(url, headers, asked).await {} };
        tokio::time::timeout(PATIENCE, answered).await.expect("another replica answers");
    }

    /// Waits until a replica that answers meanwhile sees all others again.
    async fn wait_until_all_are_seen(
        &self,
        replica: usize,
        url: &str,
        headers: &[(&str, &str)],
        asked: &Value,
    ) {
        let sees_all = || {
            let log = self.replicas[replica].log();
            let last = log.iter().rfind(|line| line.contains("sees ")).cloned();
            last.is_some_and(|line| line.contains("sees 2 other replicas"))
        };
        let seen = async {
            while !sees_all() {
                assert!(self.is_answered(url, headers, asked).await);
            }
        };
        tokio::time::timeout(PATIENCE, seen).await.expect("the replica is there again");
    }

    /// Returns the replica that has started the first process of a server.
    fn home_of(&self, server: &str) -> usize {
        let process = self.replicas[0].started(server)[0];
        let has_it = |replica: &Program| descendants(replica.id()).contains(&process);
        self.replicas.iter().position(has_it).unwrap()
    }

    /// Returns the number of processes of a server that all replicas together have started.
    fn started(&self, server: &str) -> usize {
        self.replicas[0].started(server).len()
    }
}

/// Returns the parameters of a call in which the server asks the host.
fn who_is_it() -> Value {
    let question = json!({"method": "elicitation/create", "params": {"message": "who?"}});
    json!({"name": "use_tool", "arguments": {"tool_name": "a/ask", "tool_input": question}})
}

/// Returns the parameters of the retry that answers.
fn answered(asked: &Value) -> Value {
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let mut retry = who_is_it();
    retry["requestState"] = asked["requestState"].clone();
    retry["inputResponses"] = json!({"q1": {"action": "accept", "content": {"name": "n"}}});
    retry
}

/// Posts a request of its own to a replica.
async fn ask(url: &str, headers: &[(&str, &str)], asked: &Value) -> reqwest::Response {
    let mut message = asked.clone();
    message["id"] = json!("again");
    post(url, headers, message).await
}

async fn post(url: &str, headers: &[(&str, &str)], mut message: Value) -> reqwest::Response {
    message["jsonrpc"] = json!("2.0");
    let mut request = http_client().post(url).bearer_auth("t");
    request = request.header("accept", "application/json, text/event-stream");
    request = request.header("content-type", "application/json").body(message.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

/// Reads the next message of a stream of events, which are written one at a time.
async fn next_event(stream: &mut reqwest::Response) -> Value {
    let mut read = Vec::new();
    loop {
        let chunk = tokio::time::timeout(PATIENCE, stream.chunk()).await.expect("it comes");
        read.extend_from_slice(&chunk.unwrap().expect("the stream is open"));
        let text = String::from_utf8_lossy(&read);
        let mut data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let message = data.find_map(|data| serde_json::from_str(data).ok());
        if let Some(message) = message.filter(|_| text.ends_with("\n\n")) {
            return message;
        }
    }
}

async fn echo(host: &mut Host, text: &str) -> String {
    text_of(&host.use_tool("a/echo", json!({"text": text})).await).to_owned()
}

#[tokio::test]
async fn session_is_answered_by_its_replica_whichever_is_asked() {
    let Some(service) = Service::start().await else { return };
    let mut host = service.legacy_host(0).await;
    for (at, replica) in [0, 1, 2, 1, 0].into_iter().enumerate() {
        service.move_to(&mut host, replica).await;
        let text = format!("payload {at}");
        assert!(echo(&mut host, &text).await.contains(&text));
    }
    assert_eq!(service.started("a"), 1);
    // The question of a server is answered through another replica than the call.
    service.move_to(&mut host, 1).await;
    let id = host.send("tools/call", who_is_it()).await;
    let question = host.message("elicitation/create", |_| true).await;
    service.move_to(&mut host, 2).await;
    host.reply(&question, json!({"action": "accept", "content": {"name": "n"}})).await;
    let answer = host.answer(id).await;
    assert!(text_of(&answer["result"]).contains("accept"), "{answer}");
    assert_eq!(host.http().delete().await, 204);
    service.move_to(&mut host, 0).await;
    assert_eq!(host.http().delete().await, 404, "the session has ended everywhere");
}

#[tokio::test]
async fn session_and_retry_find_a_replica_that_has_just_started() {
    let Some(mut service) = Service::start().await else { return };
    service.replicas.push(service.replica());
    let mut host = service.legacy_host(3).await;
    let mut modern = service.host(3).await.into_modern();
    let declared = json!({"elicitation": {}});
    let asked = modern.request_as("tools/call", who_is_it(), &declared).await;
    // Other replicas may not have read of the new one yet.
    service.move_to(&mut host, 1).await;
    assert!(echo(&mut host, "early").await.contains("early"));
    service.move_to(&mut modern.0, 2).await;
    let done = modern.request_as("tools/call", answered(&asked), &declared).await;
    assert!(text_of(&done).contains("accept"), "{done}");
    let moved = |replica: &Program| {
        replica.log().iter().any(|line| line.contains("of another replica continues here"))
    };
    assert!(!service.replicas.iter().any(moved));
}

#[tokio::test]
async fn session_of_a_killed_replica_continues_at_another() {
    let Some(mut service) = Service::start().await else { return };
    let mut hosts = Vec::new();
    for _ in 0..8 {
        let mut host = service.legacy_host(0).await;
        assert!(echo(&mut host, "before").await.contains("before"));
        hosts.push(host);
    }
    service.replicas[0].signal(Signal::SIGKILL);
    service.replicas[0].exit().await;
    for (at, host) in hosts.iter_mut().enumerate() {
        let session = host.http().session();
        for turn in 0..4 {
            service.move_to(host, 1 + (at + turn) % 2).await;
            let text = format!("payload {at} {turn}");
            assert!(echo(host, &text).await.contains(&text));
        }
        assert_eq!(host.http().session(), session);
        // The stream is opened again, and tells that the lists may differ.
        host.http_mut().listen(Some("0-7"));
        host.notification("notifications/tools/list_changed").await;
        let told = host.notification("notifications/message").await;
        assert!(told["params"]["data"].as_str().unwrap().contains("These are lost"), "{told}");
    }
    // A session that was ended where it was opened again stays ended.
    service.move_to(&mut hosts[1], 1).await;
    assert_eq!(hosts[1].http().delete().await, 204);
    for replica in [1, 2] {
        service.move_to(&mut hosts[1], replica).await;
        assert_eq!(hosts[1].http().delete().await, 404);
    }
    // A token that the session was not opened with finds no session.
    let id = hosts[0].http().session().unwrap();
    let asked = crate::support::http_client().post(service.url(1).await);
    let asked = asked.header("mcp-session-id", id).header("content-type", "application/json");
    let asked = asked.body(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!(asked.send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn reply_to_a_replica_that_is_gone_opens_no_session_again() {
    let Some(mut service) = Service::start().await else { return };
    let (host, mut other) = (service.legacy_host(0).await, service.legacy_host(0).await);
    service.replicas[0].signal(Signal::SIGKILL);
    service.replicas[0].exit().await;
    let session = host.http().session().unwrap();
    let cancellation = json!({"method": "notifications/cancelled", "params": {"requestId": 1}});
    let (known, forged) = ([("mcp-session-id", session.as_str())], [("mcp-session-id", "x")]);
    for message in [cancellation, json!({"id": 1, "result": {}})] {
        for replica in [1, 2] {
            let url = service.url(replica).await;
            assert_eq!(post(&url, &known, message.clone()).await.status(), 202);
            assert_eq!(post(&url, &forged, message.clone()).await.status(), 404);
        }
    }
    service.move_to(&mut other, 1).await;
    assert!(echo(&mut other, "after").await.contains("after"));
    let continued = || {
        let log = service.replicas.iter().flat_map(Program::log);
        log.filter(|line| line.contains("a session of another replica continues here")).count()
    };
    eventually("one session continues", || continued() > 0).await;
    assert_eq!(continued(), 1);
}

#[tokio::test]
async fn retry_and_result_find_the_replica_that_has_them() {
    let Some(service) = Service::start().await else { return };
    let mut host = service.host(0).await.into_modern();
    let declared = json!({"elicitation": {}});
    let asked = host.request_as("tools/call", who_is_it(), &declared).await;
    service.move_to(&mut host.0, 1).await;
    let done = host.request_as("tools/call", answered(&asked), &declared).await;
    assert!(text_of(&done).contains("accept"), "{done}");
    assert_eq!(service.started("a"), 1);

    let long = "x".repeat(5000);
    let cut = use_tool(&mut host, "b/echo", json!({"text": long})).await;
    let read = json!({"uri": uri_of(&cut)});
    for replica in [0, 1, 2] {
        service.move_to(&mut host.0, replica).await;
        let read = host.request("resources/read", read.clone()).await;
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("xxxx"), "{read}");
    }
}

/// Returns the address of a result that was cut.
fn uri_of(cut: &Value) -> String {
    let text = cut.to_string();
    let at = text.find("dormouse://results/").unwrap_or_else(|| panic!("{cut}"));
    let is_part = |c: &char| *c != '"' && *c != '\\' && !c.is_whitespace();
    text[at..].chars().take_while(is_part).collect()
}

/// A text that is cut, whose middle is never in a preview.
fn long_text() -> Value {
    json!({"text": format!("{}the middle{}", "x".repeat(5000), "x".repeat(5000))})
}

/// Returns the parameters that search a cut result for its middle.
fn search_of(cut: &Value) -> Value {
    let uri = uri_of(cut);
    let id = uri.rsplit('/').next().unwrap();
    let search = json!({"id": id, "grep": "the middle"});
    let arguments = json!({"tool_name": "dormouse/read_result", "tool_input": search});
    json!({"name": "use_tool", "arguments": arguments})
}

#[tokio::test]
async fn loads_and_results_of_a_legacy_host_outlive_its_replica() {
    let Some(mut service) = Service::with_loads("session", []).await else { return };
    let mut other = service.legacy_host(1).await;
    other.load("b").await;
    service.wait_for_stored("hosts", 1).await;
    // The record of a load, without the mark of a result.
    let size = service.record_sizes().await[0];
    let mut host = service.legacy_host(0).await;
    assert!(host.description().await.contains("- b:"));
    let cut = host.use_tool("b/echo", long_text()).await;
    let (read, search) = (json!({"uri": uri_of(&cut)}), search_of(&cut));
    service.wait_for_larger_record(size).await;
    service.wait_for_stored("results", 1).await;
    service.replicas[0].signal(Signal::SIGKILL);
    service.replicas[0].exit().await;
    for replica in [1, 2] {
        service.move_to(&mut host, replica).await;
        let description = host.description().await;
        assert!(description.contains("- a:") && !description.contains("- b:"), "{description}");
        let page = host.request("resources/read", read.clone()).await;
        assert!(page["contents"][0]["text"].as_str().unwrap().contains("xxxx"), "{page}");
        let found = host.request("tools/call", search.clone()).await;
        assert!(found.to_string().contains("the middle"), "{found}");
    }
    let refused = other.ask("resources/read", read).await;
    assert_eq!(refused["error"]["code"], -32602, "it is a result of one host: {refused}");
    let content = service.redis.content();
    let has = |text: &str| content.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(has(":results}:1:value:") && !has("the middle"), "it is sealed");
    // A session that its host ends leaves nothing to others.
    assert_eq!(other.http().delete().await, 204);
    let removed = async { while service.stored("hosts").await.len() > 1 {} };
    tokio::time::timeout(PATIENCE, removed).await.expect("the record is removed");
}

#[tokio::test]
async fn session_that_goes_back_has_its_loads_from_elsewhere() {
    let Some(service) = Service::with_loads("session", []).await else { return };
    let mut host = service.legacy_host(0).await;
    host.load("a").await;
    service.wait_for_stored("hosts", 1).await;
    let size = service.record_sizes().await[0];
    service.replicas[0].signal(Signal::SIGSTOP);
    service.move_to(&mut host, 1).await;
    let (url, session) = (service.url(1).await, host.http().session().unwrap());
    let (headers, ping) = ([("mcp-session-id", session.as_str())], json!({"method": "ping"}));
    service.wait_until_answered(&url, &headers, &ping).await;
    host.load("b").await;
    service.wait_for_larger_record(size).await;
    let home = service.home_of("b");
    let mut other = service.legacy_host(home).await;
    other.load("b").await;
    other.use_tool("b/change", json!({"tools": ["hold", "held", "release"]})).await;
    let search = json!({"query": "hold"});
    while !host.call("discover_tool", search.clone()).await.to_string().contains("b/hold") {}
    let waiting = json!({"tool_name": "b/hold", "tool_input": {}});
    let waiting = json!({"name": "use_tool", "arguments": waiting});
    let call = json!({"method": "tools/call", "params": waiting});
    let waiting = {
        let (url, session) = (url.clone(), session.clone());
        let asking = async move { ask(&url, &[("mcp-session-id", &session)], &call).await };
        tokio::spawn(asking)
    };
    while text_of(&other.use_tool("b/held", json!({})).await) != "1" {}
    service.replicas[0].signal(Signal::SIGCONT);
    service.wait_until_all_are_seen(1, &url, &headers, &ping).await;
    for replica in [0, 2, 1] {
        service.move_to(&mut host, replica).await;
        let description = host.description().await;
        assert!(!description.contains("- a:") && !description.contains("- b:"), "{description}");
    }
    service.replicas[home].logged("a session goes on at the replica that has opened it").await;
    other.use_tool("b/release", json!({})).await;
    let held = waiting.await.unwrap().text().await.unwrap();
    assert!(held.contains("released"), "{held}");
}

#[tokio::test]
async fn replies_and_cancellations_find_the_calls_of_a_session_that_goes_back() {
    let Some(service) = Service::start().await else { return };
    let mut host = service.legacy_host(0).await;
    host.load("a").await;
    service.replicas[0].signal(Signal::SIGSTOP);
    service.move_to(&mut host, 1).await;
    let (other, session) = (service.url(1).await, host.http().session().unwrap());
    let (headers, ping) = ([("mcp-session-id", session.as_str())], json!({"method": "ping"}));
    service.wait_until_answered(&other, &headers, &ping).await;
    let call = |id: &str| json!({"id": id, "method": "tools/call", "params": who_is_it()});
    let mut asking = Vec::new();
    for id in ["first", "second", "third", "cancelled"] {
        let mut answering = post(&other, &headers, call(id)).await;
        let question = next_event(&mut answering).await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        asking.push((answering, question));
    }
    service.replicas[0].signal(Signal::SIGCONT);
    service.wait_until_all_are_seen(1, &other, &headers, &ping).await;
    for url in [&other, &service.url(2).await] {
        assert_eq!(ask(url, &headers, &ping).await.status(), 200);
    }
    for (replica, (answering, question)) in asking.iter_mut().take(3).enumerate() {
        let name = format!("to {replica}");
        let reply = json!({"action": "accept", "content": {"name": name}});
        let reply = json!({"id": question["id"], "result": reply});
        assert_eq!(post(&service.url(replica).await, &headers, reply).await.status(), 202);
        let answer = next_event(answering).await;
        assert!(answer["result"].to_string().contains(&name), "{answer}");
    }
    let cancellation = json!({"requestId": "cancelled"});
    let cancellation = json!({"method": "notifications/cancelled", "params": cancellation});
    assert_eq!(post(&service.url(0).await, &headers, cancellation).await.status(), 202);
    let home = service.home_of("a");
    service.replicas[home].server_noted("a", "notifications/cancelled").await;
    assert!(echo(&mut host, "still there").await.contains("still there"));
}

#[tokio::test]
async fn modern_host_that_two_replicas_have_served_stays_at_one_with_the_loads_of_both() {
    let Some(service) = Service::with_loads("session", []).await else { return };
    let token = [("authorization", "Bearer t")];
    let mut host = Host::over_http(&service.url_of_activate(0).await, &token).into_modern();
    host.call("activate_a", json!({})).await;
    service.wait_for_stored("hosts", 1).await;
    let size = service.record_sizes().await[0];
    let first = service.home_of("a");
    let other = (first + 1) % 3;
    service.replicas[first].signal(Signal::SIGSTOP);
    let url = service.url_of_activate(other).await;
    host.0.http_mut().move_to(&url);
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    let list = json!({"method": "tools/list", "params": ModernHost::meta(json!({}))});
    service.wait_until_answered(&url, &headers, &list).await;
    host.call("activate_b", json!({})).await;
    service.wait_for_larger_record(size).await;
    let second = service.home_of("b");
    assert_ne!(second, first);
    service.replicas[first].signal(Signal::SIGCONT);
    service.wait_until_all_are_seen(other, &url, &headers, &list).await;
    let has_left = |replica: usize| {
        let log = service.replicas[replica].log();
        log.iter().any(|line| line.contains("a host goes on at another replica"))
    };
    let agreed = async {
        while !has_left(first) && !has_left(second) {
            for replica in [first, second] {
                host.0.http_mut().move_to(&service.url_of_activate(replica).await);
                host.request("tools/list", json!({})).await;
            }
        }
    };
    tokio::time::timeout(PATIENCE, agreed).await.expect("one of them gives the host up");
    for replica in 0..3 {
        host.0.http_mut().move_to(&service.url_of_activate(replica).await);
        let listed = host.request("tools/list", json!({})).await.to_string();
        assert!(listed.contains("\"a__echo\"") && listed.contains("\"b__echo\""), "{listed}");
    }
    assert!(!(has_left(first) && has_left(second)), "the other one keeps it");
}

#[tokio::test]
async fn loads_and_results_of_a_modern_host_outlive_its_replica() {
    let Some(mut service) = Service::with_loads("session", []).await else { return };
    let token = [("authorization", "Bearer t")];
    service.legacy_host(1).await.load("a").await;
    service.wait_for_stored("hosts", 1).await;
    // The record of a load, without the mark of a result.
    let size = service.record_sizes().await[0];
    let mut host = Host::over_http(&service.url_of_activate(0).await, &token).into_modern();
    host.call("activate_b", json!({})).await;
    let cut = host.call("b__echo", long_text()).await;
    service.wait_for_larger_record(size).await;
    service.wait_for_stored("results", 1).await;
    let home = service.home_of("b");
    service.replicas[home].signal(Signal::SIGKILL);
    service.replicas[home].exit().await;
    for replica in (0..3).filter(|replica| *replica != home) {
        host.0.http_mut().move_to(&service.url_of_activate(replica).await);
        let listed = host.request("tools/list", json!({})).await.to_string();
        for tool in ["b__echo", "activate_a", "read_result"] {
            assert!(listed.contains(&format!("\"{tool}\"")), "{tool}: {listed}");
        }
        let uri = uri_of(&cut);
        let id = uri.rsplit('/').next().unwrap();
        let found = host.call("read_result", json!({"id": id, "grep": "the middle"})).await;
        assert!(found.to_string().contains("the middle"), "{found}");
    }
}

async fn use_tool(host: &mut ModernHost, name: &str, input: Value) -> Value {
    host.call("use_tool", json!({"tool_name": name, "tool_input": input})).await
}

#[tokio::test]
async fn load_at_one_replica_is_a_load_at_all() {
    let Some(service) = Service::start().await else { return };
    let mut hosts = Vec::new();
    for replica in 0..3 {
        hosts.push(service.legacy_host(replica).await);
    }
    hosts[0].load("a").await;
    for host in &mut hosts[1..] {
        host.notification("notifications/tools/list_changed").await;
        let description = host.description().await;
        assert!(description.contains("- b:") && !description.contains("- a:"), "{description}");
    }
    assert_eq!(service.started("a"), 1, "the others wait for a call");
    assert!(echo(&mut hosts[2], "here").await.contains("here"));
    assert_eq!(service.started("a"), 2);
}

#[tokio::test]
async fn list_that_changes_at_one_replica_changes_where_the_server_sleeps() {
    let Some(service) = Service::start().await else { return };
    let mut hosts = Vec::new();
    for replica in 0..3 {
        let url = service.url_of_activate(replica).await;
        let mut host = Host::over_http(&url, &[("authorization", "Bearer t")]);
        host.initialize(json!({})).await;
        hosts.push(host);
    }
    hosts[0].load("a").await;
    for host in &mut hosts[1..] {
        host.notification("notifications/tools/list_changed").await;
    }
    hosts[0].call("a__change", json!({"tools": ["news"]})).await;
    for host in &mut hosts[1..] {
        // The load may have changed the list more than once.
        while !host.tool_names().await.contains(&"a__news".to_owned()) {
            host.notification("notifications/tools/list_changed").await;
        }
    }
    assert_eq!(service.started("a"), 1);
}

#[tokio::test]
async fn tool_that_is_new_at_one_replica_is_found_where_the_server_is_not_loaded() {
    let Some(service) = Service::with_loads("session", []).await else { return };
    let (mut here, mut there) = (service.legacy_host(0).await, service.legacy_host(1).await);
    let token = [("authorization", "Bearer t")];
    let url = service.replicas[1].url("/mcp?surface=direct").await;
    let mut direct = Host::over_http(&url, &token);
    direct.initialize(json!({})).await;
    assert!(!direct.tool_names().await.contains(&"a__echo".to_owned()));
    let search = json!({"query": "unheard"});
    let found = there.call("discover_tool", search.clone()).await.to_string();
    assert!(!found.contains("a/unheard"), "{found}");
    here.load("a").await;
    here.use_tool("a/change", json!({"tools": ["unheard"]})).await;
    let search = async {
        while !there.call("discover_tool", search.clone()).await.to_string().contains("a/unheard") {
        }
    };
    tokio::time::timeout(PATIENCE, search).await.expect("it is found");
    loop {
        direct.notification("notifications/tools/list_changed").await;
        if direct.tool_names().await.contains(&"a__unheard".to_owned()) {
            break;
        }
    }
}

#[tokio::test]
async fn task_is_found_whichever_replica_is_asked() {
    let tasks = Server::lazy("c")
        .script("tasks", true)
        .script("modern_only", true)
        .script("extra_tools", json!(["begin", "finish"]));
    let Some(service) = Service::with([tasks]).await else { return };
    let url = |replica: usize| service.replicas[replica].url("/servers/c/mcp");
    let mut host = Host::over_http(&url(0).await, &[("authorization", "Bearer t")]).into_modern();
    let declared = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let begin = json!({"name": "begin", "arguments": {"id": "t"}});
    let task = host.request_as("tools/call", begin, &declared).await;
    let id = task["taskId"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned();
    assert!(id.starts_with("dm-"), "other replicas recognize it: {id}");
    for replica in [1, 2, 0] {
        host.0.http_mut().move_to(&url(replica).await);
        let got = host.request_as("tasks/get", json!({"taskId": id}), &declared).await;
        assert_eq!((&got["taskId"], &got["status"]), (&json!(id), &json!("working")), "{got}");
    }
    let finish = json!({"name": "finish", "arguments": {"id": "t"}});
    host.request_as("tools/call", finish, &declared).await;
    host.0.http_mut().move_to(&url(2).await);
    let got = host.request_as("tasks/get", json!({"taskId": id}), &declared).await;
    assert_eq!(text_of(&got["result"]), "the result of t", "{got}");
    assert_eq!(service.started("c"), 1);
}

#[tokio::test]
async fn host_keeps_its_instance_whichever_replica_is_asked() {
    let own = Server::lazy("own").set("isolation", "session");
    let Some(mut service) = Service::with([own]).await else { return };
    let mut host = service.host(0).await.into_modern();
    for (at, replica) in [0, 1, 2, 2, 1, 0].into_iter().enumerate() {
        service.move_to(&mut host.0, replica).await;
        let text = format!("payload {at}");
        let echoed = use_tool(&mut host, "own/echo", json!({"text": text})).await;
        assert!(text_of(&echoed).contains(&text), "{echoed}");
    }
    assert_eq!(service.started("own"), 1);
    // A replica that joins does not take the host over.
    let another = service.replica();
    another.logged("sees 3 other replicas").await;
    for replica in &service.replicas {
        replica.logged("sees 3 other replicas").await;
    }
    service.replicas.push(another);
    service.move_to(&mut host.0, 3).await;
    use_tool(&mut host, "own/echo", json!({"text": "x"})).await;
    assert_eq!(service.started("own"), 1);
    let home = service.home_of("own");
    service.replicas[home].signal(Signal::SIGKILL);
    service.replicas[home].exit().await;
    for replica in (0..4).filter(|replica| *replica != home) {
        service.move_to(&mut host.0, replica).await;
        let echoed = use_tool(&mut host, "own/echo", json!({"text": "again"})).await;
        assert!(text_of(&echoed).contains("again"), "{echoed}");
    }
    assert_eq!(service.started("own"), 2);
}

#[tokio::test]
async fn unsent_retry_continues_when_its_replica_is_gone() {
    let asked_first = Server::lazy("c").set("policy", json!([{"tools": "echo", "then": "ask"}]));
    let Some(mut service) = Service::with([asked_first]).await else { return };
    let declared = json!({"elicitation": {}});
    let mut host = service.host(0).await.into_modern();
    let call = json!({"name": "use_tool", "arguments": {"tool_name": "c/echo"}});
    let agree = |asked: &Value| {
        let mut retry = call.clone();
        retry["requestState"] = asked["requestState"].clone();
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let agreed = json!({"action": "accept", "content": {"decision": "once"}});
        retry["inputResponses"] = json!({key: agreed});
        retry
    };
    let unsent = host.request_as("tools/call", call.clone(), &declared).await;
    let sent = host.request_as("tools/call", who_is_it(), &declared).await;
    service.replicas[0].signal(Signal::SIGKILL);
    service.replicas[0].exit().await;
    service.move_to(&mut host.0, 1).await;
    // Nothing was sent to the server, so that the user is asked again.
    let again = host.request_as("tools/call", agree(&unsent), &declared).await;
    assert_eq!(again["resultType"], "input_required", "{again}");
    let done = host.request_as("tools/call", agree(&again), &declared).await;
    assert!(text_of(&done).contains("echo"), "{done}");
    // The server may have executed the call.
    let mut retry = ModernHost::meta(answered(&sent));
    retry["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declared.clone();
    let refused = host.0.ask("tools/call", retry).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    // Nor is the state of another request, or one that was changed, taken for a new request.
    let state = unsent["requestState"].as_str().unwrap().to_owned();
    let changed = format!("{}A", &state[..state.len() - 1]);
    for state in [state, changed] {
        let mut strange = json!({"name": "use_tool", "arguments": {"tool_name": "a/echo"}});
        strange["requestState"] = json!(state);
        let mut strange = ModernHost::meta(strange);
        strange["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declared.clone();
        let refused = host.0.ask("tools/call", strange).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}
