//! The rows about the daemon, compared with `--no-daemon` in the same rounds, and the processes of
//! twenty hosts.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    client::Client,
    contender::{Contender, config_with, dormouse, server},
    homes, process,
    report::{TableRow, median},
    rows::{AddRow, as_f64, micros, millis},
};

const ROUNDS: usize = 15;
const HOSTS: usize = 20;

/// A config that is served by a daemon, and the home in which its files are.
struct DaemonBench {
    command: Vec<String>,
    home: PathBuf,
}

impl DaemonBench {
    fn new(servers: &[(String, Value)]) -> Self {
        let settings = json!({"daemon": true, "daemonIdleTimeout": "1s"});
        let command = dormouse(&config_with(&settings, servers));
        // The path of a socket has at most 107 bytes.
        let home = std::env::temp_dir().join(format!("dormouse-bench-{}", std::process::id()));
        std::fs::create_dir_all(home.join("run")).expect("the temporary directory is writable");
        Self { command, home }
    }

    fn home(&self) -> &str {
        self.home.to_str().expect("a path of this bench is UTF-8")
    }

    fn host(&self, how: Serving) -> Client {
        let flag = (how == Serving::InProcess).then(|| "--no-daemon".to_owned());
        let command: Vec<String> = self.command.iter().cloned().chain(flag).collect();
        Client::start(homes::command_by_daemon(&command, self.home()))
    }

    /// Returns the id of the daemon, if one runs.
    fn daemon(&self) -> Option<u32> {
        let status = [self.command.clone(), vec!["daemon".to_owned(), "status".to_owned()]];
        let status = [status.concat(), vec!["--json".to_owned()]].concat();
        let output = homes::command(&status, self.home()).output().ok()?;
        let daemons: Value = serde_json::from_slice(&output.stdout).ok()?;
        u32::try_from(daemons[0]["pid"].as_u64()?).ok()
    }

    /// Waits until there is no daemon.
    fn wait_until_over(&self) {
        while self.daemon().is_some() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns the number of daemons that have accepted hosts so far.
    fn daemons_started(&self) -> usize {
        let logs = homes::directory(self.home(), "cache").join("dormouse/logs");
        let logs = std::fs::read_dir(logs).into_iter().flatten().flatten();
        let texts = logs.map(|log| std::fs::read_to_string(log.path()).expect("UTF-8"));
        texts.map(|text| text.matches("the daemon accepts hosts").count()).sum()
    }
}

impl Drop for DaemonBench {
    fn drop(&mut self) {
        let stop = [self.command.clone(), vec!["daemon".to_owned(), "stop".to_owned()]].concat();
        let stopped = homes::command(&stop, self.home()).stdout(Stdio::null()).status();
        assert!(stopped.is_ok_and(|status| status.success()), "the daemon ends");
        std::fs::remove_dir_all(&self.home).expect("it can be removed");
    }
}

/// Which process serves a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serving {
    ByDaemon,
    InProcess,
}

/// Measures what the daemon costs a host: time, and memory of its client.
pub fn costs(add: AddRow<'_>) {
    let bench = DaemonBench::new(&[server(1, 2, 0)]);
    // The daemon runs, and keeps running, because it has this host.
    let mut by_daemon = loaded(&bench, Serving::ByDaemon);
    let mut in_process = loaded(&bench, Serving::InProcess);
    let (mut starts, mut calls) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let first_list = |how| {
            let begun = Instant::now();
            let mut host = bench.host(how);
            host.initialize();
            host.request("tools/list", &json!({}));
            millis(begun.elapsed())
        };
        starts.push(first_list(Serving::ByDaemon) - first_list(Serving::InProcess));
        let call = Contender::Dormouse.call("echo", &json!({"path": "/tmp/some/file.txt"}));
        let one = |host: &mut Client| {
            median((0..500).map(|_| micros(host.round_trip("tools/call", &call))).collect())
        };
        calls.push(one(&mut by_daemon) - one(&mut in_process));
    }
    let more = |what: &str| format!("{what} by a running daemon: in its own process +");
    add(TableRow::at_most(more("start to tools/list"), median(starts), 5.0, " ms", json!({})));
    add(TableRow::at_most(more("a call"), median(calls), 100.0, " µs", json!({})));
    let client = by_daemon.id();
    let data = json!({"own MB": process::private_of(client)});
    let resident = process::resident_of(client);
    add(TableRow::at_most("resident memory of a thin client", resident, 3.0, " MB", data));
}

fn loaded(bench: &DaemonBench, how: Serving) -> Client {
    let mut host = bench.host(how);
    host.initialize();
    host.request("tools/call", &json!({"name": "load_mcp", "arguments": {"mcp_name": "server-1"}}));
    host
}

/// Measures the memory of dormouse alone, for one and for several hosts.
pub fn memory(add: AddRow<'_>) {
    let servers: Vec<_> = (1..=10).map(|number| server(number, 2, 0)).collect();
    let bench = DaemonBench::new(&servers);
    let megabytes = |how, hosts| {
        let hosts: Vec<Client> = (0..hosts).map(|_| listed(&bench, how)).collect();
        std::thread::sleep(Duration::from_secs(1));
        let all = hosts.iter().map(Client::id).chain(bench.daemon());
        all.map(process::proportional_of).sum::<f64>()
    };
    for hosts in [1, 5, HOSTS] {
        let alone = megabytes(Serving::InProcess, hosts);
        let together = megabytes(Serving::ByDaemon, hosts);
        bench.wait_until_over();
        let name = format!("memory of dormouse for {hosts} hosts, shared pages once");
        let data = json!({"in process MB": alone, "by daemon MB": together});
        add(TableRow::at_most(name, together / alone, 2.0, " × before", data));
    }
}

/// Starts hosts without a daemon at first, many at once.
pub fn racing_starts(add: AddRow<'_>) {
    const AT_ONCE: usize = 200;
    const STARTS: usize = 10_000;
    let bench = DaemonBench::new(&[server(1, 2, 0)]);
    for _ in 0..STARTS / AT_ONCE {
        let mut hosts: Vec<Client> = (0..AT_ONCE).map(|_| bench.host(Serving::ByDaemon)).collect();
        for host in &mut hosts {
            host.initialize();
        }
    }
    let data = json!({"answers": STARTS});
    let name = "daemons of 10,000 racing starts";
    add(TableRow::at_most(name, as_f64(bench.daemons_started()), 1.0, "", data));
}

fn listed(bench: &DaemonBench, how: Serving) -> Client {
    let mut host = bench.host(how);
    host.initialize();
    host.request("tools/list", &json!({}));
    host
}

/// Counts the processes of twenty hosts, ten legacy and ten modern, that use ten servers of which
/// five can be shared. With the packages of `scripts/check` these are real servers on Node.js.
pub fn twenty_hosts(add: AddRow<'_>) {
    let bin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/npm/node_modules/.bin");
    let thinking = bin.join("mcp-server-sequential-thinking");
    let servers: Vec<_> = (1..=10)
        .map(|number| {
            let (name, mut entry) = server(number, 25, 0);
            if thinking.exists() {
                entry["command"] = json!(thinking);
                entry["args"] = json!([number.to_string()]);
            }
            entry["isolation"] = json!(if number <= 5 { "shared" } else { "session" });
            entry["idleTimeout"] = json!(0);
            (name, entry)
        })
        .collect();
    let bench = DaemonBench::new(&servers);
    let alone = count(&bench, Serving::InProcess);
    let together = count(&bench, Serving::ByDaemon);
    let data = |counted: &ProcessCount| {
        json!({
            "dormouse processes": counted.dormouse,
            "server processes": counted.servers,
            "MB": counted.megabytes.round(),
        })
    };
    let data = json!({"by daemon": data(&together), "in process": data(&alone)});
    let servers = as_f64(together.servers);
    let bar = as_f64(5 + 5 * HOSTS);
    add(TableRow::at_most("server processes of 20 hosts × 10 servers", servers, bar, "", data));
    let ratio = together.megabytes / alone.megabytes;
    add(TableRow::at_most("their memory, with all processes", ratio, 0.6, " × before", json!({})));
}

/// The processes while all hosts are connected and all servers loaded.
struct ProcessCount {
    dormouse: usize,
    servers: usize,
    /// The proportional memory of all, which counts shared pages once.
    megabytes: f64,
}

fn count(bench: &DaemonBench, how: Serving) -> ProcessCount {
    let hosts: Vec<Client> = (0..HOSTS)
        .map(|number| {
            let mut host = bench.host(how);
            let is_modern = number % 2 == 1;
            if !is_modern {
                host.initialize();
            }
            for server in 1..=10 {
                let name = format!("server-{server}");
                let mut params = json!({"name": "load_mcp", "arguments": {"mcp_name": name}});
                if is_modern {
                    params["_meta"] = modern_meta();
                }
                let answer = host.request("tools/call", &params);
                assert!(answer["isError"] != true, "{answer}");
            }
            host
        })
        .collect();
    // Start-up has allocated what is not needed any more.
    std::thread::sleep(Duration::from_secs(1));
    let owners: Vec<u32> = hosts.iter().map(Client::id).chain(bench.daemon()).collect();
    let started = owners.iter().flat_map(|id| process::descendants(*id));
    let all: Vec<u32> = owners.iter().copied().chain(started).collect();
    // The name of a watchdog, which ends the servers of a killed dormouse, has no directory.
    let is_dormouse = |id: &&u32| {
        let program = process::program_of(**id);
        program == bench.command[0] || program == "mcp-watchdog"
    };
    let dormouse = all.iter().filter(is_dormouse).count();
    let megabytes = all.iter().map(|id| process::proportional_of(*id)).sum();
    ProcessCount { dormouse, servers: all.len() - dormouse, megabytes }
}

fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}
