//! A server of the soak on standard input and output. It notes each call that it executes.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{BufRead, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{arguments::ServerArguments, server_kind::ServerKind};

/// Tools that a changing server has in addition; an older one makes room for a newer one.
const MAX_EXTRA_TOOLS: usize = 3;

/// Tools on a page of the list.
const PAGE: usize = 4;

struct Server {
    kind: ServerKind,
    journal: Journal,
    subscribed: HashSet<String>,
    /// Calls that wait for the answer to a question, with their payloads, by the question's id.
    asked: HashMap<u64, (Value, String)>,
    last_question: u64,
    cancelled: Arc<Mutex<HashSet<String>>>,
    extra_tools: Vec<String>,
}

/// The record of the calls that a server executes. Clones share one file.
#[derive(Clone)]
pub struct Journal(Arc<Mutex<File>>);

impl Journal {
    /// Notes that the call with this payload is executed.
    pub fn note(&self, payload: &str) {
        let mut journal = self.0.lock().expect("no writer panics");
        journal.write_all(format!("{payload}\n").as_bytes()).expect("the journal can be written");
    }
}

fn write(line: impl std::fmt::Display) {
    let mut output = std::io::stdout().lock();
    // dormouse may have closed the other end.
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

fn reply(id: &Value, result: &Value) {
    write(json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn notify(method: &str, params: &Value) {
    write(json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

/// Opens the journal of this process.
pub fn open_journal(directory: &std::path::Path, name: &str) -> Journal {
    let path = directory.join(format!("{name}-{}", std::process::id()));
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    Journal(Arc::new(Mutex::new(file.expect("the journal can be created"))))
}

pub fn serve(arguments: &ServerArguments) {
    let mut server = Server {
        kind: arguments.kind,
        journal: open_journal(&arguments.journal, arguments.kind.name()),
        subscribed: HashSet::new(),
        asked: HashMap::new(),
        last_question: 0,
        cancelled: Arc::default(),
        extra_tools: Vec::new(),
    };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).expect("dormouse writes JSON");
        server.take(&message);
    }
}

impl Server {
    fn take(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            None => self.take_answer(message),
            Some("notifications/cancelled") => {
                self.cancelled.lock().unwrap().insert(params["requestId"].to_string());
            }
            Some("tools/call") => {
                if let Some(result) = self.call(params, id) {
                    reply(id, &self.completed(result));
                }
            }
            Some(method) if !id.is_null() => match self.answer(method, params) {
                Some(result) => reply(id, &self.completed(result)),
                None => write(json!({
                    "jsonrpc": "2.0", "id": id,
                    "error": {"code": -32601, "message": "Method not found"},
                })),
            },
            Some(_) => {}
        }
    }

    /// Marks a result as the last one, as 2026-07-28 demands.
    fn completed(&self, mut result: Value) -> Value {
        if self.kind == ServerKind::Modern && result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        result
    }

    fn answer(&mut self, method: &str, params: &Value) -> Option<Value> {
        let is_modern = self.kind == ServerKind::Modern;
        let capabilities = json!({
            "tools": {"listChanged": true},
            "resources": {"subscribe": true},
            "prompts": {},
        });
        Some(match method {
            "initialize" if !is_modern => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": {"name": self.kind.name(), "version": "1"},
            }),
            "server/discover" if is_modern => json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                "ttlMs": 0, "cacheScope": "private",
            }),
            "ping" => json!({}),
            "resources/subscribe" => {
                self.subscribed.insert(params["uri"].as_str()?.to_owned());
                json!({})
            }
            "resources/unsubscribe" => {
                self.subscribed.remove(params["uri"].as_str()?);
                json!({})
            }
            "tools/list" => self.page_of_tools(params),
            "resources/list" => json!({"resources": [], "ttlMs": 0, "cacheScope": "private"}),
            "resources/templates/list" => {
                let template = format!("soak-{}://{{+rest}}", self.kind.name());
                let template = json!({"uriTemplate": template, "name": "soak"});
                json!({"resourceTemplates": [template], "ttlMs": 0, "cacheScope": "private"})
            }
            "resources/read" => {
                let uri = params["uri"].as_str()?;
                self.journal.note(uri.rsplit('/').next()?);
                let contents = json!([{"uri": uri, "text": format!("content of {uri}")}]);
                json!({"contents": contents, "ttlMs": 0, "cacheScope": "private"})
            }
            "prompts/list" => {
                let argument = json!([{"name": "payload"}]);
                let prompt =
                    json!({"name": format!("p-{}", self.kind.name()), "arguments": argument});
                json!({"prompts": [prompt], "ttlMs": 0, "cacheScope": "private"})
            }
            "prompts/get" => {
                let payload = params["arguments"]["payload"].as_str()?;
                self.journal.note(payload);
                json!({"messages": [], "description": format!("prompt {payload}")})
            }
            _ => return None,
        })
    }

    /// Returns one page; the cursor is the index of the next tool.
    fn page_of_tools(&self, params: &Value) -> Value {
        let cursor = params["cursor"].as_str().and_then(|cursor| cursor.parse().ok());
        let (all, from) = (self.tools(), cursor.unwrap_or(0));
        let page: Vec<&Value> = all.iter().skip(from).take(PAGE).collect();
        let next = from + page.len();
        let mut result = json!({"tools": page, "ttlMs": 0, "cacheScope": "private"});
        if next < all.len() {
            result["nextCursor"] = json!(next.to_string());
        }
        result
    }

    fn tools(&self) -> Vec<Value> {
        let names =
            ["echo", "big", "progress", "ask", "touch", "grow", "slow", "flood", "die", "hang"];
        let all = names.iter().copied().chain(self.extra_tools.iter().map(String::as_str));
        all.map(|name| json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}}))
            .collect()
    }

    /// Executes a tool. `None` if the answer comes later or never.
    fn call(&mut self, params: &Value, id: &Value) -> Option<Value> {
        let arguments = &params["arguments"];
        let payload = arguments["payload"].as_str().unwrap_or_default().to_owned();
        match params["name"].as_str().unwrap_or_default() {
            "ask" if self.kind == ServerKind::Modern => {
                return Some(self.ask_modern(params, &payload));
            }
            "ask" => {
                self.ask(id, payload);
                return None;
            }
            _ => self.journal.note(&payload),
        }
        match params["name"].as_str().unwrap_or_default() {
            "big" => Some(text(&format!("big {payload} {}", "x".repeat(size(arguments))))),
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                for step in 1..=size(arguments) {
                    let progress =
                        json!({"progressToken": token, "progress": step, "message": payload});
                    notify("notifications/progress", &progress);
                }
                Some(text(&format!("progress {payload}")))
            }
            "touch" => {
                let uri = arguments["uri"].as_str().unwrap_or_default();
                if self.subscribed.contains(uri) {
                    notify("notifications/resources/updated", &json!({"uri": uri}));
                }
                Some(text(&format!("touch {payload}")))
            }
            "grow" => {
                self.extra_tools.push(format!("extra_{payload}"));
                if self.extra_tools.len() > MAX_EXTRA_TOOLS {
                    self.extra_tools.remove(0);
                }
                notify("notifications/tools/list_changed", &json!({}));
                Some(text(&format!("grow {payload}")))
            }
            "slow" => {
                self.answer_later(id.clone(), payload);
                None
            }
            "flood" => {
                flood(size(arguments));
                Some(text(&format!("flood {payload}")))
            }
            "die" => std::process::exit(3),
            "hang" => None,
            name => Some(text(&format!("{name} {payload}"))),
        }
    }

    /// Asks the host of a legacy connection.
    fn ask(&mut self, id: &Value, payload: String) {
        self.last_question += 1;
        let question = self.last_question;
        write(json!({
            "jsonrpc": "2.0", "id": question, "method": "elicitation/create",
            "params": question_params(&payload),
        }));
        self.asked.insert(question, (id.clone(), payload));
    }

    /// Asks the host in the result, and goes on when the call comes again.
    fn ask_modern(&self, params: &Value, payload: &str) -> Value {
        let Some(answer) = params["inputResponses"]["q"].as_object() else {
            let question =
                json!({"method": "elicitation/create", "params": question_params(payload)});
            return json!({
                "resultType": "input_required", "requestState": payload,
                "inputRequests": {"q": question},
            });
        };
        self.journal.note(payload);
        asked(payload, &answer["content"])
    }

    fn take_answer(&mut self, message: &Value) {
        let Some((call, payload)) = message["id"].as_u64().and_then(|id| self.asked.remove(&id))
        else {
            return;
        };
        self.journal.note(&payload);
        reply(&call, &asked(&payload, &message["result"]["content"]));
    }

    fn answer_later(&self, id: Value, payload: String) {
        let cancelled = self.cancelled.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(600));
            if !cancelled.lock().unwrap().contains(&id.to_string()) {
                reply(&id, &text(&format!("slow {payload}")));
            }
        });
    }
}

/// Writes log messages, lines that are not messages, and lines to standard error.
fn flood(lines: usize) {
    for line in 0..lines {
        let data = format!("line {line}: {}", "y".repeat(200));
        notify("notifications/message", &json!({"level": "debug", "data": data}));
        if line % 50 == 0 {
            write("this is not a message");
            eprintln!("soak server: {data}");
        }
    }
}

fn question_params(payload: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}});
    json!({"message": payload, "requestedSchema": schema})
}

fn asked(payload: &str, content: &Value) -> Value {
    text(&format!("ask {payload} {}", content["answer"].as_str().unwrap_or("without an answer")))
}

fn size(arguments: &Value) -> usize {
    arguments["size"].as_u64().and_then(|size| usize::try_from(size).ok()).unwrap_or_default()
}

pub fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}
