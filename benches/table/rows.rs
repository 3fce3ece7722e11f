//! The rows of the table.

use std::{
    collections::HashMap,
    process::{ExitCode, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    client::Client,
    contender::{Contender, config, dormouse, server, upstream},
    daemon, homes,
    http::{HttpClient, HttpContender},
    policy, process,
    replicas::ReplicaContender,
    report::{TableRow, as_json, median, print},
    scripts, search, telemetry,
};

const ROUNDS: usize = 7;
const MEGABYTE: usize = 1024 * 1024;

pub type AddRow<'a> = &'a mut dyn FnMut(TableRow);

type MeasureRows = fn(AddRow<'_>);

/// The groups of rows, each with the name that selects it on the command line.
const ROW_GROUPS: [(&str, MeasureRows); 20] = [
    ("start", start),
    ("idle", idle),
    ("known", known_catalogs),
    ("latency", latency),
    ("throughput", throughput),
    ("processor-time", processor_time),
    ("large-results", large_results),
    ("memory", memory_of_large_results),
    ("waking", waking),
    ("http", over_http),
    ("replicas", replicas),
    ("search", search),
    ("daemon", daemon::costs),
    ("daemon-memory", daemon::memory),
    ("racing", daemon::racing_starts),
    ("hosts", daemon::twenty_hosts),
    ("telemetry", telemetry::costs),
    ("policy", policy::costs),
    ("scripts", scripts::times),
    ("scripts-savings", scripts::savings),
];

/// Measures all groups, or those whose names contain `only`.
pub fn run(only: Option<&str>) -> ExitCode {
    homes::clear();
    let mut rows = Vec::new();
    let mut add = |row: TableRow| {
        print(&row);
        rows.push(row);
    };
    println!("| what | found | bar | | detail |\n|---|---|---|---|---|");
    for (name, measure) in ROW_GROUPS {
        if only.is_none_or(|only| name.contains(only)) {
            measure(&mut add);
        }
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench.json");
    std::fs::write(&path, format!("{:#}\n", as_json(&rows)))
        .expect("the target directory is writable");
    println!("\nwritten to {}", path.display());
    if rows.iter().all(|row| row.is_met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn lazy_servers(count: usize) -> Vec<String> {
    let servers: Vec<_> = (1..=count).map(|number| server(number, 25, 0)).collect();
    dormouse(&config(&servers))
}

fn start(add: AddRow<'_>) {
    for count in [1, 10, 100] {
        let command = lazy_servers(count);
        let times = (0..ROUNDS * 3).map(|_| {
            let began = Instant::now();
            let mut client = Client::spawn(&command);
            client.initialize();
            client.request("tools/list", &json!({}));
            millis(began.elapsed())
        });
        let found = median(times.collect());
        add(TableRow::at_most(
            format!("start to tools/list, {count} lazy servers"),
            found,
            10.0,
            " ms",
            json!({}),
        ));
    }
}

fn idle(add: AddRow<'_>) {
    for (count, bars) in [(10, (7.5, 3200.0)), (100, (9.0, 5500.0))] {
        let client = Client::spawn(&lazy_servers(count));
        idle_costs(add, client, count, &format!("{count} lazy servers"), bars);
    }
}

/// Measures the costs of a dormouse that serves `count` servers and has not handled a call yet.
fn idle_costs(
    add: AddRow<'_>,
    mut client: Client,
    count: usize,
    what: &str,
    (memory_bar, bytes_bar): (f64, f64),
) {
    let instructions = client.initialize();
    let list = client.request("tools/list", &json!({}));
    let children = process::descendants(client.id()).len();
    let name = |which: &str| format!("{which}, {what}");
    add(TableRow::at_most(
        name("child processes before first use"),
        as_f64(children),
        0.0,
        "",
        json!({}),
    ));
    add(TableRow::at_most(
        name("resident memory"),
        process::resident(client.id()),
        memory_bar,
        " MB",
        json!({}),
    ));
    let bytes = list.to_string().len() + instructions.len();
    let text = format!("{list}{instructions}");
    let named = (1..=count).filter(|number| text.contains(&format!("server-{number}"))).count();
    let data = json!({"named": named, "direct": direct_bytes() * count});
    add(TableRow::at_most(
        name("first tools/list + instructions"),
        as_f64(bytes),
        bytes_bar,
        " B",
        data,
    ));
}

/// Measures the same as `start` and `idle`, with stored catalogs of all servers, which have 2,000
/// tools together.
fn known_catalogs(add: AddRow<'_>) {
    const SERVERS: usize = 100;
    const TOOLS: usize = 20;
    let servers: Vec<_> = (1..=SERVERS).map(|number| server(number, TOOLS, 0)).collect();
    let path = config(&servers);
    let command = dormouse(&path);
    let text = std::fs::read(&path).expect("it was written");
    let refresh = [command.clone(), vec!["refresh".to_owned()]].concat();
    let learned = homes::command(&refresh, homes::WARM_HOME).stdout(Stdio::null()).status();
    assert!(learned.is_ok_and(|status| status.success()), "the catalogs are learned");
    // `refresh` has added the names of the tools to the config: restore it.
    std::fs::write(&path, text).expect("it can be written again");
    let what = "100 lazy servers with 2,000 known tools";
    for (surface, bar) in [("discover", 10.0), ("direct", 100.0)] {
        let command = [command.clone(), vec!["--surface".to_owned(), surface.to_owned()]].concat();
        let mut tools = 0;
        let times = (0..ROUNDS * 3).map(|_| {
            let began = Instant::now();
            let mut client = Client::spawn_in_home(&command, homes::WARM_HOME);
            client.initialize();
            let list = client.request("tools/list", &json!({}));
            tools = list["tools"].as_array().map_or(0, Vec::len);
            millis(began.elapsed())
        });
        let found = median(times.collect());
        let data = json!({"tools listed": tools});
        add(TableRow::at_most(
            format!("start to tools/list, {surface}, {what}"),
            found,
            bar,
            " ms",
            data,
        ));
    }
    idle_costs(
        add,
        Client::spawn_in_home(&command, homes::WARM_HOME),
        SERVERS,
        what,
        (9.0, 5500.0),
    );
}

/// Returns the size of the tool list of one server with 25 tools, without a proxy, in bytes.
fn direct_bytes() -> usize {
    let mut client = Client::spawn(&upstream(25, 0));
    client.initialize();
    client.request("tools/list", &json!({})).to_string().len()
}

fn echo(contender: Contender) -> String {
    contender.call("echo", &json!({"path": "/tmp/some/file.txt", "limit": 10}))
}

/// Measures each contender once per round. All contenders are connected during the whole
/// measurement.
fn rounds(
    contenders: &[Contender],
    mut measure: impl FnMut(Contender, &mut Client) -> f64,
) -> HashMap<&'static str, Vec<f64>> {
    let mut clients: Vec<_> = contenders.iter().map(|who| (*who, who.connect())).collect();
    let mut figures: HashMap<&'static str, Vec<f64>> = HashMap::new();
    for round in 0..=ROUNDS {
        for (who, client) in &mut clients {
            let figure = measure(*who, client);
            // The first round only warms up.
            if round > 0 {
                figures.entry(who.name()).or_default().push(figure);
            }
        }
    }
    figures
}

/// Returns the median, over the rounds, of dormouse's figure divided by the baseline's figure.
fn ratio(figures: &HashMap<&'static str, Vec<f64>>, baseline: Contender) -> f64 {
    let pairs = figures["dormouse"].iter().zip(&figures[baseline.name()]);
    median(pairs.map(|(ours, theirs)| ours / theirs).collect())
}

fn medians(figures: &HashMap<&'static str, Vec<f64>>) -> Value {
    let median = |who: &Contender| {
        let rounded = (median(figures.get(who.name())?.clone()) * 1000.0).round() / 1000.0;
        Some((who.name().to_owned(), json!(rounded)))
    };
    Value::Object(Contender::ALL.iter().filter_map(median).collect())
}

fn latency(add: AddRow<'_>) {
    let figures = rounds(&Contender::ALL, |who, client| {
        let call = echo(who);
        median((0..1000).map(|_| micros(client.round_trip("tools/call", &call))).collect())
    });
    let found = ratio(&figures, Contender::RelayParse);
    add(TableRow::at_most(
        "latency of a call, p50",
        found,
        1.2,
        " × relay-parse",
        json!({"µs": medians(&figures)}),
    ));
}

fn throughput(add: AddRow<'_>) {
    let figures = rounds(&Contender::ALL, |who, client| {
        10_000.0 / client.pipeline("tools/call", &echo(who), 10_000, 64).as_secs_f64()
    });
    let found = ratio(&figures, Contender::RelayParse);
    add(TableRow::at_least(
        "calls a second, 64 in flight",
        found,
        0.8,
        " × relay-parse",
        json!({"calls/s": medians(&figures)}),
    ));
}

fn processor_time(add: AddRow<'_>) {
    for (how, window) in [("one after the other", 1), ("64 in flight", 64)] {
        let figures = rounds(&Contender::PROXIES, |who, client| {
            let before = process::processor_time(client.id());
            client.pipeline("tools/call", &echo(who), 10_000, window);
            millis(process::processor_time(client.id()).checked_sub(before).unwrap())
        });
        let found = ratio(&figures, Contender::RelayParse);
        let what = format!("processor time of 10,000 calls, {how}");
        add(TableRow::at_most(
            what,
            found,
            2.0,
            " × relay-parse",
            json!({"ms": medians(&figures)}),
        ));
    }
}

fn large_results(add: AddRow<'_>) {
    for (megabytes, bar) in [(1, 1.5), (16, 1.3)] {
        let figures = rounds(&Contender::ALL, |who, client| {
            let call = who.call("size", &json!({"bytes": megabytes * MEGABYTE}));
            let times = (0..5).map(|_| millis(client.round_trip("tools/call", &call)));
            median(times.collect())
        });
        let found = ratio(&figures, Contender::Relay);
        let what = format!("result of {megabytes} MB, time");
        add(TableRow::at_most(what, found, bar, " × relay", json!({"ms": medians(&figures)})));
    }
}

fn memory_of_large_results(add: AddRow<'_>) {
    let mut client = Contender::Dormouse.connect();
    let call = Contender::Dormouse.call("size", &json!({"bytes": 16 * MEGABYTE}));
    for _ in 0..5 {
        client.round_trip("tools/call", &call);
    }
    add(TableRow::at_most(
        "peak memory during results of 16 MB",
        process::peak(client.id()),
        40.0,
        " MB",
        json!({}),
    ));
    std::thread::sleep(Duration::from_millis(100));
    let after = process::resident_of(client.id());
    add(TableRow::at_most("resident after them", after, 12.0, " MB", json!({})));
}

/// Returns the time from the start of an upstream that takes 300 ms to start to its first answer,
/// without a proxy.
fn direct_start() -> f64 {
    let began = Instant::now();
    let mut client = Client::spawn(&upstream(2, 300));
    client.initialize();
    client.round_trip("tools/call", &echo(Contender::Direct));
    millis(began.elapsed())
}

/// Returns a client of a dormouse whose only server has been loaded and has fallen asleep.
fn sleeping_dormouse() -> Client {
    let mut client = Client::spawn(&dormouse(&config(&[server(1, 2, 300)])));
    client.initialize();
    client
        .request("tools/call", &json!({"name": "load_mcp", "arguments": {"mcp_name": "server-1"}}));
    while process::descendants_named(client.id(), "upstream") > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    client
}

fn waking(add: AddRow<'_>) {
    let direct = median((0..ROUNDS).map(|_| direct_start()).collect());
    let one = (0..ROUNDS)
        .map(|_| millis(sleeping_dormouse().round_trip("tools/call", &echo(Contender::Dormouse))));
    let found = median(one.collect()) - direct;
    let data = json!({"direct start ms": direct});
    add(TableRow::at_most(
        "first call of a sleeping server: start-up +",
        found,
        10.0,
        " ms",
        data.clone(),
    ));

    let mut most_processes = 0;
    let many = (0..ROUNDS).map(|_| {
        let mut client = sleeping_dormouse();
        let began = Instant::now();
        for number in 0..50 {
            let call = Contender::Dormouse.call("echo", &json!({"number": number}));
            client.send("tools/call", &serde_json::from_str(&call).expect("JSON"));
        }
        let right = (0..50).filter(|_| client.read_response().contains("number")).count();
        let took = millis(began.elapsed());
        assert_eq!(right, 50);
        most_processes = most_processes.max(process::descendants_named(client.id(), "upstream"));
        took
    });
    let found = median(many.collect()) - direct;
    add(TableRow::at_most("50 callers at once for it: start-up +", found, 25.0, " ms", data));
    add(TableRow::at_most(
        "processes for the 50 callers",
        as_f64(most_processes),
        1.0,
        "",
        json!({"right": 50}),
    ));
}

/// The figures of each round, by the name of the contender.
type Figures = HashMap<&'static str, Vec<f64>>;

/// Measures clients in turn, each in every round. Returns the latency of a call in µs, and the
/// calls a second with one in flight on each connection.
fn rounds_of_calls<const N: usize>(
    mut clients: [(&'static str, HttpClient); N],
) -> (Figures, Figures) {
    const CALLS: usize = 6_400;
    let (mut latency, mut throughput) = (Figures::new(), Figures::new());
    for round in 0..=ROUNDS {
        for (name, client) in &mut clients {
            let one = median((0..500).map(|_| micros(client.round_trip())).collect());
            #[expect(clippy::cast_precision_loss, reason = "a small number")]
            let many = CALLS as f64 / client.call_many(CALLS).as_secs_f64();
            // The first round only warms up.
            if round > 0 {
                latency.entry(name).or_default().push(one);
                throughput.entry(name).or_default().push(many);
            }
        }
    }
    (latency, throughput)
}

/// Compares a reverse proxy over HTTP with dormouse, in the same rounds.
fn over_http(add: AddRow<'_>) {
    let connect = |who: HttpContender| (who.name(), who.connect());
    let (latency, throughput) = rounds_of_calls(HttpContender::ALL.map(connect));
    let baseline = HttpContender::Relay.name();
    for who in [HttpContender::ToHttp, HttpContender::ToStdio] {
        let against = |figures: &Figures| {
            let pairs = figures[who.name()].iter().zip(&figures[baseline]);
            median(pairs.map(|(ours, theirs)| ours / theirs).collect())
        };
        let shown = |figures: &Figures| {
            let median = |name: &str| json!(median(figures[name].clone()).round());
            let names = [HttpContender::Direct.name(), baseline, who.name()];
            Value::Object(names.iter().map(|name| ((*name).to_owned(), median(name))).collect())
        };
        add(TableRow::at_most(
            format!("latency of a call, {}", who.name()),
            against(&latency),
            1.5,
            " × reverse proxy",
            json!({"µs": shown(&latency)}),
        ));
        add(TableRow::at_least(
            format!("calls a second, 64 in flight, {}", who.name()),
            against(&throughput),
            0.7,
            " × reverse proxy",
            json!({"calls/s": shown(&throughput)}),
        ));
    }
}

/// Compares one replica with services of more parts, in the same rounds.
fn replicas(add: AddRow<'_>) {
    let connect = |who: ReplicaContender| (who.name(), who.connect());
    let (latency, throughput) = rounds_of_calls(ReplicaContender::ALL.map(connect));
    let baseline = ReplicaContender::One;
    for (who, than, bar) in [
        (ReplicaContender::OneWithStore, baseline, 0.9),
        (ReplicaContender::OneBehindNginx, baseline, 0.1),
        (ReplicaContender::ThreeBehindNginx, ReplicaContender::OneBehindNginx, 0.5),
        (ReplicaContender::ThreeWithoutTheirStore, ReplicaContender::ThreeBehindNginx, 0.9),
    ] {
        let pairs = throughput[who.name()].iter().zip(&throughput[than.name()]);
        let ratio = median(pairs.map(|(ours, theirs)| ours / theirs).collect());
        let shown = |figures: &Figures, who: ReplicaContender| {
            json!(median(figures[who.name()].clone()).round())
        };
        let detail = json!({
            "calls/s": [shown(&throughput, who), shown(&throughput, than)],
            "µs": [shown(&latency, who), shown(&latency, than)],
        });
        let unit = format!(" × {}", than.name());
        add(TableRow::at_least(
            format!("calls a second, {}", who.name()),
            ratio,
            bar,
            &unit,
            detail,
        ));
    }
}

/// Measures the search in this process, since it is a plain function.
fn search(add: AddRow<'_>) {
    let search::SearchTimes { index, answer, scan } = search::measure(ROUNDS);
    add(TableRow::at_most(
        "first search of 5,000 tools, with its index",
        index,
        150.0,
        " ms",
        json!({}),
    ));
    let data = json!({"ms": answer, "scan ms": scan});
    add(TableRow::at_most("a search of 5,000 tools", answer / scan, 0.25, " × linear scan", data));
}

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[expect(
    clippy::cast_precision_loss,
    reason = "these are counts of bytes and processes, far below 2^52"
)]
pub fn as_f64(count: usize) -> f64 {
    count as f64
}
