//! Many hosts of both eras at a service of three replicas behind nginx, while its parts fail.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::{sync::OwnedMutexGuard, task::JoinHandle};
use tokio_util::task::AbortOnDropHandle;

use crate::support::{
    Authority, Balancer, BalancerKind, ModernHost, PATIENCE, Program, Redis, Server, User,
    by_daemon, free_port, http_client, text_of,
};

const HOSTS: usize = 200;
/// One call in so many is of the server that needs a login.
const CALLS_PER_LOGIN: usize = 20;
/// The time for which a token of that server is valid.
const TOKEN_LIFETIME: Duration = Duration::from_secs(2);

fn is_for_login(turn: usize) -> bool {
    turn % CALLS_PER_LOGIN == CALLS_PER_LOGIN - 1
}

/// What the hosts have seen.
#[derive(Default)]
struct Ledger {
    /// The texts of calls that were answered.
    answered: Mutex<BTreeSet<String>>,
    /// The texts of calls that were refused since a replica had ended, with the status.
    lost: Mutex<BTreeMap<String, u16>>,
    /// Answers that no host expects.
    wrong: Mutex<Vec<String>>,
    calls: AtomicUsize,
    is_over: AtomicBool,
}

impl Ledger {
    /// Waits until the hosts have completed more calls.
    async fn more(&self, calls: usize) {
        let wanted = self.calls.load(Ordering::Relaxed) + calls;
        let reached = async {
            while self.calls.load(Ordering::Relaxed) < wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let done = tokio::time::timeout(2 * PATIENCE, reached).await;
        done.unwrap_or_else(|_| panic!("the hosts go on: {:?}", self.wrong.lock().unwrap()));
    }

    fn note_wrong(&self, what: String) {
        self.wrong.lock().unwrap().push(what);
    }
}

/// One host, which makes one call after another.
struct Caller {
    number: usize,
    url: String,
    client: reqwest::Client,
    /// The session of a legacy host; `None` for a modern one.
    session: Option<String>,
    ledger: Arc<Ledger>,
}

impl Caller {
    fn is_modern(&self) -> bool {
        self.number.is_multiple_of(2)
    }

    async fn run(mut self) {
        if !self.is_modern() {
            self.initialize().await;
        }
        for turn in 0.. {
            if self.ledger.is_over.load(Ordering::Relaxed) {
                return;
            }
            self.call(turn).await;
            self.ledger.calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "legacy", "version": "1"},
        });
        let (_, session, _) = self.post("initialize", 0, params).await.expect("nothing has ended");
        self.session = session;
    }

    async fn call(&self, turn: usize) {
        let is_for_login = is_for_login(turn);
        let text = format!("host {} turn {turn}", self.number);
        let (tool, input) =
            if is_for_login { ("g/t", json!({})) } else { ("s/echo", json!({"text": text})) };
        let params =
            json!({"name": "use_tool", "arguments": {"tool_name": tool, "tool_input": input}});
        match self.post("tools/call", turn + 1, params).await {
            Ok((200, _, answer)) => {
                let is_own = answer["id"] == turn + 1;
                let expected = if is_for_login { "ordinary" } else { &format!("\"{text}\"") };
                let is_right = answer["result"]["content"][0]["text"].is_string()
                    && text_of(&answer["result"]).contains(expected);
                if is_own && is_right {
                    self.ledger.answered.lock().unwrap().insert(text);
                } else {
                    self.ledger.note_wrong(format!("{text}: {answer}"));
                }
            }
            // The replica that had the call has ended.
            Ok((502, ..)) => {
                self.ledger.lost.lock().unwrap().insert(text, 502);
            }
            Ok((status, _, answer)) => {
                self.ledger.note_wrong(format!("{text}: {status} {answer}"));
            }
            Err(error) => self.ledger.note_wrong(format!("{text}: {error}")),
        }
    }

    /// Posts a request, and returns the status, the session, and the answer.
    async fn post(
        &self,
        method: &str,
        id: usize,
        params: Value,
    ) -> Result<(u16, Option<String>, Value), String> {
        let mut request = self.client.post(&self.url).bearer_auth("t");
        request = request.header("accept", "application/json, text/event-stream");
        let params = if self.is_modern() {
            request = request.header("mcp-protocol-version", "2026-07-28");
            request = request.header("mcp-method", method).header("mcp-name", "use_tool");
            ModernHost::meta(params)
        } else {
            params
        };
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
            request = request.header("mcp-protocol-version", "2025-11-25");
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let request = request.header("content-type", "application/json").body(message.to_string());
        let response = request.send().await.map_err(|error| format!("{error:?}"))?;
        let status = response.status().as_u16();
        let session = response.headers().get("mcp-session-id");
        let session = session.map(|id| id.to_str().unwrap().to_owned());
        // A replica that ends while it answers with a stream cuts the stream.
        let Ok(body) = response.text().await else { return Ok((502, session, Value::Null)) };
        let answer = body.strip_prefix('{').map(|_| body.as_str()).into_iter();
        let answer = answer.chain(body.lines().filter_map(|line| line.strip_prefix("data:")));
        let mut answer = answer.filter_map(|text| serde_json::from_str::<Value>(text).ok());
        let is_answer = |message: &Value| message.get("id").is_some();
        match answer.find(is_answer) {
            Some(answer) => Ok((status, session, answer)),
            None if status == 200 => Ok((502, session, Value::Null)),
            None => Ok((status, session, Value::String(body))),
        }
    }
}

/// The service, whose parts a test ends and starts.
struct Parts {
    user: User,
    redis: Redis,
    authority: Arc<Authority>,
    ports: [u16; 3],
    replicas: Vec<Program>,
    /// Held while no token expires.
    expiry: Arc<tokio::sync::Mutex<()>>,
}

impl Parts {
    /// Starts three replicas, of this build or of another.
    async fn start(program: Option<&Path>) -> Option<Self> {
        let redis = Redis::start().await?;
        let authority = Arc::new(Authority::start().await);
        let user = User::with_config(&json!({}));
        let ports = [(); 3].map(|()| free_port());
        let (replicas, expiry) = (vec![], Arc::default());
        let mut service = Self { user, redis, authority, ports, replicas, expiry };
        service.write_config("The s server. Use when testing.");
        let (is_in, said) = service.user.log_in().await;
        assert!(is_in, "{said}");
        for port in service.ports {
            service.replicas.push(service.replica(port, program));
        }
        for replica in &service.replicas {
            // One that has not started tells why.
            replica.url("").await;
        }
        for replica in &service.replicas {
            replica.logged("sees 2 other replicas").await;
        }
        Some(service)
    }

    fn write_config(&self, description: &str) {
        let server = Server::lazy("s").set("description", description).at(self.user.home.path());
        let login = json!({"url": self.authority.url(), "description": "It wants a login."});
        let mut config = self.redis.config(&json!({"s": server, "g": login}));
        config["authTokens"] = json!(["t"]);
        let path = self.user.home.path().join("dormouse.json");
        // In one step, since replicas follow the file.
        let written = path.with_extension("new");
        std::fs::write(&written, config.to_string()).unwrap();
        std::fs::rename(written, path).unwrap();
    }

    fn replica(&self, port: u16, program: Option<&Path>) -> Program {
        let address = format!("127.0.0.1:{port}");
        let proxy = self.user.proxy().argument("--http").argument(&address);
        match program {
            Some(program) => proxy.running(program).start_service(),
            None => proxy.start_service(),
        }
    }

    /// Waits until the newest token of the login is stored, and lets none expire meanwhile. A token
    /// that only one replica has got is lost with it, and the user has to log in again.
    async fn keep_token(&self) -> OwnedMutexGuard<()> {
        let kept = self.expiry.clone().lock_owned().await;
        // A replica stores a new token before it uses it.
        let in_use = async {
            while !self.authority.newest_token_is_in_use() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(2 * PATIENCE, in_use).await.expect("a replica renews the login");
        kept
    }

    /// Invalidates the token of the login again and again.
    fn expire_tokens(&self) -> AbortOnDropHandle<()> {
        let (authority, expiry) = (self.authority.clone(), self.expiry.clone());
        AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                tokio::time::sleep(TOKEN_LIFETIME).await;
                let _none_is_kept = expiry.lock().await;
                authority.expire_used_tokens();
            }
        }))
    }

    /// Returns the refresh tokens that were used, in their order.
    fn used_refresh_tokens(&self) -> Vec<String> {
        let requests = self.authority.token_requests().into_iter();
        requests.filter_map(|(_, mut form)| form.remove("refresh_token")).collect()
    }

    async fn kill(&mut self, replica: usize) {
        self.replicas[replica].signal(Signal::SIGKILL);
        self.replicas[replica].exit().await;
    }

    async fn start_again(&mut self, replica: usize) {
        self.replicas[replica] = self.replica(self.ports[replica], None);
        self.replicas[replica].logged("sees 2 other replicas").await;
    }

    /// Returns how often the server `s` has run the call with each text.
    fn executions(&self) -> HashMap<String, usize> {
        let log = std::fs::read_to_string(Server::lazy("s").log(self.user.home.path())).unwrap();
        let mut found = HashMap::new();
        for params in log.lines().filter_map(|line| line.strip_prefix("tools/call ")) {
            let params: Value = serde_json::from_str(params).unwrap();
            let text = params["arguments"]["text"].as_str().unwrap().to_owned();
            *found.entry(text).or_default() += 1;
        }
        found
    }
}

fn start_hosts(balancer: &Balancer) -> (Arc<Ledger>, Vec<JoinHandle<()>>) {
    let ledger = Arc::new(Ledger::default());
    let client = http_client();
    let start = |number| {
        let (url, client, ledger) = (balancer.url("/mcp"), client.clone(), ledger.clone());
        tokio::spawn(Caller { number, url, client, session: None, ledger }.run())
    };
    let callers = (0..HOSTS).map(start).collect();
    (ledger, callers)
}

/// Waits for the last answers of the hosts.
async fn end_hosts(ledger: &Ledger, callers: Vec<JoinHandle<()>>) {
    ledger.is_over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.expect("it has not panicked");
    }
}

fn assert_no_answer_is_wrong(ledger: &Ledger, parts: &Parts) {
    let wrong = ledger.wrong.lock().unwrap();
    let some = &wrong[..wrong.len().min(9)];
    let warnings: Vec<_> = parts.replicas.iter().map(Program::warnings).collect();
    assert!(wrong.is_empty(), "{} wrong answers: {some:#?}; {warnings:#?}", wrong.len());
}

/// Lets parts of the service fail, one after the other, while the hosts go on.
async fn break_everything(parts: &mut Parts, ledger: &Ledger) {
    ledger.more(500).await;
    for replica in [0, 1] {
        let kept = parts.keep_token().await;
        parts.kill(replica).await;
        drop(kept);
        ledger.more(400).await;
        parts.start_again(replica).await;
        ledger.more(300).await;
    }
    parts.redis.kill().await;
    ledger.more(500).await;
    parts.redis.resume().await;
    ledger.more(500).await;
    parts.redis.command(&["FLUSHALL"]).await;
    ledger.more(300).await;
    parts.write_config("Another description.");
    for replica in &parts.replicas {
        while replica.reloads().is_empty() {
            ledger.more(50).await;
        }
    }
    let kept = parts.keep_token().await;
    parts.redis.kill().await;
    parts.kill(2).await;
    drop(kept);
    ledger.more(300).await;
    parts.redis.resume().await;
    parts.start_again(2).await;
    ledger.more(500).await;
}

/// An earlier build of dormouse, if there is one: the replicas that are replaced are of this build.
const EARLIER: &str = "DORMOUSE_EARLIER";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_are_replaced_one_by_one_and_no_call_is_lost() {
    replace_replicas(BalancerKind::Nginx).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_behind_haproxy_are_replaced_and_no_call_is_lost() {
    replace_replicas(BalancerKind::Haproxy).await;
}

/// Replaces one replica after the other while hosts call.
async fn replace_replicas(balancer: BalancerKind) {
    // A service over HTTP has no daemon.
    if by_daemon() {
        return;
    }
    let earlier = std::env::var_os(EARLIER).map(PathBuf::from);
    let Some(mut parts) = Parts::start(earlier.as_deref()).await else { return };
    let addresses = parts.ports.map(|port| format!("127.0.0.1:{port}"));
    let Some(balancer) = Balancer::start(balancer, &addresses).await else { return };
    let (ledger, callers) = start_hosts(&balancer);
    ledger.more(1000).await;
    for replica in [0, 1, 2] {
        parts.replicas[replica].signal(Signal::SIGTERM);
        assert_eq!(parts.replicas[replica].exit().await, Some(0));
        ledger.more(300).await;
        parts.start_again(replica).await;
        ledger.more(300).await;
    }
    end_hosts(&ledger, callers).await;
    assert_no_answer_is_wrong(&ledger, &parts);
    let lost = ledger.lost.lock().unwrap();
    assert!(lost.is_empty(), "{lost:?}");
    let executions = parts.executions();
    assert!(executions.values().all(|times| *times == 1), "a call was run twice");
    eprintln!("{} calls answered, none lost", ledger.answered.lock().unwrap().len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_crosses_and_nobody_is_logged_out_while_parts_fail() {
    // A service over HTTP has no daemon.
    if by_daemon() {
        return;
    }
    let Some(mut parts) = Parts::start(None).await else { return };
    let addresses = parts.ports.map(|port| format!("127.0.0.1:{port}"));
    let Some(nginx) = Balancer::start(BalancerKind::Nginx, &addresses).await else { return };
    let (ledger, callers) = start_hosts(&nginx);
    let expiring = parts.expire_tokens();
    break_everything(&mut parts, &ledger).await;
    end_hosts(&ledger, callers).await;
    drop(expiring);

    let shown = parts.used_refresh_tokens();
    let once: BTreeSet<_> = shown.iter().collect();
    assert_eq!(once.len(), shown.len(), "a refresh token was used twice: {shown:?}");
    assert!(shown.len() > 1, "tokens were renewed");
    assert_no_answer_is_wrong(&ledger, &parts);
    let (answered, lost) = (ledger.answered.lock().unwrap(), ledger.lost.lock().unwrap());
    let executions = parts.executions();
    assert!(executions.values().all(|times| *times == 1), "a call was run twice");
    let is_echo = |text: &&String| {
        let turn: usize = text.rsplit_once(' ').unwrap().1.parse().unwrap();
        !is_for_login(turn)
    };
    let echoes = answered.iter().filter(is_echo).count();
    let run = answered.iter().filter(is_echo).filter(|text| executions.contains_key(*text));
    assert_eq!(run.count(), echoes, "what was answered was run");
    let unsent = lost.keys().filter(|text| !executions.contains_key(*text)).count();
    // Three replicas were killed, each with at most one call of each host.
    assert!(lost.len() <= 3 * HOSTS, "{lost:?}");
    eprintln!(
        "{} calls answered, {echoes} of them run once by the server; {} lost with a replica, of \
            which {unsent} had not reached the server; {} renewals",
        answered.len(),
        lost.len(),
        shown.len(),
    );
}
