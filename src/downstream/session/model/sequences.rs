//! Random hosts, requests and events of servers against sessions and their reference model.

use std::collections::BTreeSet;

use super::{
    IDLE_TIMEOUT, REQUEST_TIMEOUT, SLEEPER, SessionModel,
    scenario::{Action, Item, Millis, RESOURCES, Step, generate_step},
    world::{GotItems, World},
};
use crate::{
    base::{Sequence, check_sequences},
    protocol::{Era, LogLevel},
};

const DEFAULT_COUNT: u64 = 300;
const MAX_STEPS: usize = 50;
/// The time in which the servers are met before the first step.
const START: Millis = 1000;
/// The time in which a change of lists reaches the hosts.
const LIST_CHANGE: Millis = 250;
/// The time after the last step in which all requests are answered and streams are open.
const REST: Millis = 60_000;
/// The number of kinds of messages that sequences must show.
const KINDS: usize = 8;

fn generate(rng: &mut fastrand::Rng) -> Sequence<(), Step> {
    let mut events = Vec::new();
    // Most hosts attach and introduce themselves before anything else.
    for slot in 0..rng.u8(..4) {
        let era = if rng.bool() { Era::Legacy } else { Era::Modern };
        let attach = Action::Attach { slot, era, drops: rng.u8(..8) == 0 };
        let step = |action| Step { after: 1, action };
        events
            .extend([attach, Action::Initialize { slot }, Action::Initialized { slot }].map(step));
    }
    let count = rng.usize(1..=MAX_STEPS);
    events.extend((0..count).map(|_| generate_step(rng)));
    Sequence { setting: (), events }
}

struct Run {
    world: World,
    model: SessionModel,
    now: Millis,
    kinds: BTreeSet<&'static str>,
}

impl Run {
    async fn step(&mut self, step: &Step) -> Result<(), String> {
        self.advance(self.now + step.after - 1).await;
        self.skip_timers().await;
        self.advance(self.now + 1).await;
        if self.world.act(&step.action, &mut self.model).await {
            self.advance(self.now + LIST_CHANGE).await;
        }
        self.skip_timers().await;
        self.advance(self.now + 1).await;
        self.compare()
    }

    /// Moves on while something is due at the next moment: no order is defined between an action
    /// and a timer of the same moment.
    async fn skip_timers(&mut self) {
        self.model.advance(self.now);
        while self.model.next_timer().is_some_and(|at| at == self.now + 1) {
            self.advance(self.now + 1).await;
        }
    }

    async fn advance(&mut self, to: Millis) {
        self.world.advance(to).await;
        self.model.advance(to);
        self.now = to;
    }

    fn compare(&mut self) -> Result<(), String> {
        for GotItems { slot, drops, items: got } in self.world.take_got() {
            let host = self.model.hosts.get_mut(&slot).expect("a host of the model");
            let expected = std::mem::take(&mut host.inbox.expected);
            self.kinds.extend(got.iter().map(|(_, item)| kind(item)));
            let differs = |why: String| {
                format!(
                    "at {}, host {slot} {why}:\n    expected {expected:?}\n    got {got:?}",
                    self.now
                )
            };
            check_numbers(&got).map_err(differs)?;
            let is_fine = if drops {
                self.kinds.extend((got.len() < expected.len()).then_some("dropped"));
                is_without_notifications(&got, &expected)
            } else {
                is_same(&got, &expected)
            };
            if !is_fine {
                return Err(differs("differs".to_owned()));
            }
        }
        self.world.check_gone()?;
        self.world.check_servers(&self.model).map_err(|why| format!("at {}, {why}", self.now))
    }
}

fn kind(item: &Item) -> &'static str {
    match item {
        Item::Answer { text: Some(_), .. } => "answer",
        Item::Answer { text: None, .. } => "error",
        Item::ToolsChanged { .. } => "tools",
        Item::ResourcesChanged { .. } => "resources",
        Item::Updated { .. } => "updated",
        Item::Logged { .. } => "logged",
        Item::Acknowledged { .. } => "acknowledged",
    }
}

/// Checks that a host gets the messages of a server in their order.
fn check_numbers(got: &[(Millis, Item)]) -> Result<(), String> {
    let (mut last_log, mut last_update) = (0, 0);
    for (_, item) in got {
        let (last, number) = match item {
            Item::Logged { number } => (&mut last_log, number),
            // Several streams may get one update.
            Item::Updated { number, .. } => (&mut last_update, number),
            _ => continue,
        };
        if *number < *last {
            return Err(format!("gets {number} after {last}"));
        }
        *last = *number;
    }
    Ok(())
}

/// Returns whether a host got what it should, in the right moments. Announcements of lists have no
/// exact moment.
fn is_same(got: &[(Millis, Item)], expected: &[(Millis, Item)]) -> bool {
    parts(got) == parts(expected)
}

/// Returns whether a host got what it should, except for some notifications.
fn is_without_notifications(got: &[(Millis, Item)], expected: &[(Millis, Item)]) -> bool {
    let ((got, got_lists), (expected, expected_lists)) = (parts(got), parts(expected));
    let mut rest = got.iter().peekable();
    for item in &expected {
        if rest.peek() == Some(&item) {
            rest.next();
        } else if !item.1.is_notification() {
            return false;
        }
    }
    rest.next().is_none() && got_lists.iter().all(|item| expected_lists.contains(item))
}

/// Returns the items in an order that does not depend on that of tasks in one moment, and the
/// announcements of lists.
fn parts(items: &[(Millis, Item)]) -> (Vec<(Millis, Item)>, Vec<Item>) {
    let (lists, others): (Vec<_>, Vec<_>) =
        items.iter().cloned().partition(|(_, item)| item.is_of_lists());
    let mut lists: Vec<Item> = lists.into_iter().map(|(_, item)| item).collect();
    lists.sort();
    let mut others = others;
    others.sort();
    (others, lists)
}

async fn play(sequence: &Sequence<(), Step>) -> Result<BTreeSet<&'static str>, String> {
    let (world, kinds) = (World::new(), BTreeSet::new());
    let mut run = Run { world, model: SessionModel::default(), now: 0, kinds };
    run.advance(START).await;
    for step in &sequence.events {
        run.step(step).await?;
    }
    run.advance(run.now + REST).await;
    run.compare()?;
    for slot in run.model.hosts.keys().copied().collect::<Vec<_>>() {
        let action = Action::Detach { slot };
        run.step(&Step { after: 1, action }).await?;
    }
    run.advance(run.now + REST).await;
    run.compare()?;
    run.world.end().await?;
    Ok(run.kinds)
}

fn play_in_virtual_time(sequence: &Sequence<(), Step>) -> Result<BTreeSet<&'static str>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(play(sequence))
}

#[test]
fn hosts_get_exactly_their_messages_and_servers_exactly_their_subscriptions() {
    let mut kinds = BTreeSet::new();
    let count = check_sequences(DEFAULT_COUNT, generate, |sequence| {
        kinds.extend(play_in_virtual_time(sequence)?);
        Ok(())
    });
    println!("{count} sequences, in which hosts got: {kinds:?}");
    let is_complete = count < DEFAULT_COUNT || kinds.len() == KINDS;
    assert!(is_complete, "something never happens: {kinds:?}");
}

/// Plays actions, each a number of milliseconds after the previous one.
fn check(actions: impl IntoIterator<Item = (Millis, Action)>) {
    let steps = actions.into_iter().map(|(after, action)| Step { after, action });
    let sequence = Sequence { setting: (), events: steps.collect() };
    if let Err(failure) = play_in_virtual_time(&sequence) {
        panic!("{failure}");
    }
}

/// Returns the actions of a legacy host that subscribes to a resource.
fn subscribing(uri: &str) -> [(Millis, Action); 3] {
    let resource = RESOURCES.iter().position(|known| *known == uri).expect("a known resource");
    let attach = Action::Attach { slot: 0, era: Era::Legacy, drops: false };
    let initialize = Action::Initialize { slot: 0 };
    [(1, attach), (1, initialize), (1, Action::Subscribe { slot: 0, resource })]
}

#[test]
fn subscription_without_an_answer_is_ended_at_its_server() {
    check(
        subscribing("a:hangs").into_iter().chain([(REQUEST_TIMEOUT + 2, Action::Ping { slot: 0 })]),
    );
}

#[test]
fn cancelled_subscription_is_ended_at_its_server() {
    let cancel = Action::Cancel { slot: 0, position: 0 };
    check(subscribing("a:300").into_iter().chain([(100, cancel)]));
}

#[test]
fn unsubscribing_before_the_answer_lets_the_server_sleep() {
    let unsubscribe = Action::Unsubscribe { slot: 0, resource: 5 };
    assert_eq!(RESOURCES[5], "b:300");
    let later = Action::Ping { slot: 0 };
    let actions = [(100, unsubscribe), (IDLE_TIMEOUT + 400, later)];
    check(subscribing("b:300").into_iter().chain(actions));
}

#[test]
fn message_of_a_server_does_not_keep_it_awake() {
    let log = Action::Log { server: SLEEPER, level: LogLevel::Warning, count: 1 };
    let later = Action::Ping { slot: 0 };
    let actions = [(IDLE_TIMEOUT - 200, log), (400, later)];
    check(subscribing("b:refused").into_iter().chain(actions));
}

#[test]
fn reload_leaves_a_server_awake_to_which_a_host_is_subscribed() {
    let reload = Action::Reload { server: SLEEPER };
    let update = Action::Update { resource: 4 };
    assert_eq!(RESOURCES[4], "b:0");
    check(subscribing("b:0").into_iter().chain([(100, reload), (IDLE_TIMEOUT + 400, update)]));
}
