//! A network that loses one packet of a hundred and delays the others by 200 ms.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};

use crate::support::{
    Host, Proxy, Server,
    faults::{Namespace, PacketLoss, SlowLink, isolated},
    not_tested,
    remote::{RecordedRequest, Remote, events, json_text, reply},
    text_of,
};

const CALLS: usize = 200;
const DELAY: Duration = Duration::from_millis(200);

/// Starts a server that returns the number of each call, every second one in an event stream.
async fn numbering() -> Remote {
    Remote::start(|asked: RecordedRequest| async move {
        if asked.method_name() != "tools/call" {
            return None;
        }
        let number = asked.message["params"]["arguments"]["number"].as_u64().unwrap();
        let text = number.to_string();
        let result = json!({"content": [{"type": "text", "text": text}]}).to_string();
        let answer = reply(&asked, &result);
        let is_stream = number.is_multiple_of(2);
        Some(if is_stream { events(format!("data: {answer}\n\n")) } else { json_text(&answer) })
    })
    .await
}

/// Sends all calls at once, and checks that each was executed once and got its own answer.
async fn check_calls(host: &mut Host, remote: &Remote, loss: &PacketLoss) {
    let mut calls = Vec::new();
    for number in 0..CALLS {
        let call = json!({"tool_name": "r/t", "tool_input": {"number": number}});
        calls.push(host.send("tools/call", json!({"name": "use_tool", "arguments": call})).await);
    }
    for (number, call) in calls.into_iter().enumerate() {
        let result = host.answer(call).await["result"].clone();
        assert_eq!(text_of(&result), number.to_string());
    }
    let mut executed = HashMap::<Value, usize>::new();
    for asked in remote.requests().iter().filter(|asked| asked.method_name() == "tools/call") {
        *executed.entry(asked.message["params"]["arguments"]["number"].clone()).or_default() += 1;
    }
    assert_eq!(executed.len(), CALLS);
    assert!(executed.values().all(|count| *count == 1), "{executed:?}");
    eprintln!("{} packets were lost", loss.lost());
}

/// Returns the loss of packets, or reports why there is none.
macro_rules! packet_loss {
    () => {
        match PacketLoss::of(1) {
            Ok(loss) => loss,
            Err(why) => return not_tested(why),
        }
    };
}

#[test]
fn calls_to_a_remote_server_over_a_bad_network_are_executed_once() {
    isolated(Namespace::Network, async || {
        let loss = packet_loss!();
        let remote = numbering().await;
        let link = SlowLink::to(&remote.url, DELAY).await;
        let mut host = Proxy::with([Server::lazy("r").set("url", link.url("/mcp"))]).serve().await;
        host.load("r").await;
        check_calls(&mut host, &remote, &loss).await;
    });
}

#[test]
fn calls_of_an_http_host_over_a_bad_network_are_executed_once() {
    isolated(Namespace::Network, async || {
        let loss = packet_loss!();
        let remote = numbering().await;
        let program = Proxy::with([Server::lazy("r").set("url", remote.url.clone())]).start_http();
        let link = SlowLink::to(&program.url("/mcp").await, DELAY).await;
        let mut host = Host::over_http(&link.url("/mcp"), &[]);
        host.initialize(json!({})).await;
        host.load("r").await;
        check_calls(&mut host, &remote, &loss).await;
    });
}
