//! The event stream of the control API.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::State,
    response::sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Serialize;
use serde_json::json;
use tokio::sync::broadcast::{self, error::RecvError};

use super::{ServerReport, api_state::ApiState};
use crate::{
    proxy,
    telemetry::{CallRecord, client_name},
};

/// Changes within this time are reported as one event.
const EVENT_DELAY: Duration = Duration::from_millis(100);
/// Interval of comments in a quiet event stream, so that clients do not take it for dead.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(25);

/// Streams events: first the whole report as `status`, then each changed server as `server`, each
/// removed one as `removed`, and each ended call as `call`.
pub(super) async fn stream_events(
    State(api): State<ApiState>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let stop = api.stop.clone();
    let calls = ended_calls(api.fleet.operator().events());
    let events = stream::select(server_changes(api), calls).take_until(stop.cancelled_owned());
    Sse::new(events.map(Ok)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL))
}

fn server_changes(api: ApiState) -> impl Stream<Item = Event> {
    let happened = api.fleet.operator().events();
    let batches = stream::unfold((api, happened, None), |(api, mut happened, before)| async {
        let (events, servers) = next_changes(&api, &mut happened, before).await?;
        Some((stream::iter(events), (api, happened, Some(servers))))
    });
    batches.flatten()
}

/// Streams a `call` for each ended call, and `missed` with a number where the client has read too
/// slowly.
fn ended_calls(happened: broadcast::Receiver<proxy::Event>) -> impl Stream<Item = Event> {
    stream::unfold(happened, |mut happened| async {
        loop {
            match happened.recv().await {
                Ok(proxy::Event::CallEnded(call)) => {
                    let record = CallRecord::of(&call, client_name(&call.origin.client));
                    return Some((event("call", &record), happened));
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    return Some((event("missed", &json!({"events": missed})), happened));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    })
}

/// Waits for a difference from `before`. Returns its events and the servers' current reports.
async fn next_changes(
    api: &ApiState,
    happened: &mut broadcast::Receiver<proxy::Event>,
    before: Option<Vec<ServerReport>>,
) -> Option<(Vec<Event>, Vec<ServerReport>)> {
    let Some(before) = before else {
        let report = api.report().await.ok()?;
        return Some((vec![event("status", &report)], report.servers));
    };
    loop {
        wait_for_change(happened).await?;
        tokio::time::sleep(EVENT_DELAY).await;
        // The report shows the changes of the pause too.
        *happened = happened.resubscribe();
        let servers = api.report().await.ok()?.servers;
        let events = differences(&before, &servers);
        if !events.is_empty() {
            return Some((events, servers));
        }
    }
}

/// Waits for an event that reports of servers may show. Returns `None` when there will be no more.
async fn wait_for_change(happened: &mut broadcast::Receiver<proxy::Event>) -> Option<()> {
    loop {
        match happened.recv().await {
            Ok(proxy::Event::CallEnded(_)) => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return Some(()),
            Err(RecvError::Closed) => return None,
        }
    }
}

fn differences(before: &[ServerReport], now: &[ServerReport]) -> Vec<Event> {
    let of = |servers: &[ServerReport], name: &str| {
        let found = servers.iter().find(|server| server.name == name)?;
        // Numbers that change without a change of the state.
        let (memory, tally, retry_in) = Default::default();
        serde_json::to_value(ServerReport { memory, tally, retry_in, ..found.clone() }).ok()
    };
    let changed = now.iter().filter(|server| of(before, &server.name) != of(now, &server.name));
    let gone = before.iter().filter(|server| of(now, &server.name).is_none());
    let gone = gone.map(|server| event("removed", &json!({"name": server.name})));
    changed.map(|server| event("server", server)).chain(gone).collect()
}

fn event(name: &'static str, data: &impl Serialize) -> Event {
    let event = Event::default().event(name);
    event.json_data(data).unwrap_or_else(|_| Event::default().event(name))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn server(name: &str, with: &Value) -> ServerReport {
        let mut report = json!({
            "name": name, "state": "awake", "startup": "lazy", "strikes": 0, "awake": 1,
            "memory": 1000, "calls": 0, "failedCalls": 0, "wakes": 1, "lastWake": null,
            "lastError": null, "noise": null, "retryIn": null, "inventory": null, "tokens": null,
            "login": null,
        });
        let members = with.as_object().into_iter().flatten();
        members.for_each(|(member, value)| report[member] = value.clone());
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn numbers_that_always_differ_are_no_change() {
        let before = [server("a", &json!({}))];
        let counted = json!({"memory": 2000, "calls": 7, "failedCalls": 1, "retryIn": 5});
        assert!(differences(&before, &[server("a", &counted)]).is_empty());
        assert_eq!(differences(&before, &[server("a", &json!({"strikes": 1}))]).len(), 1);
        assert_eq!(differences(&before, &[server("b", &json!({}))]).len(), 2, "one left, one came");
    }
}
