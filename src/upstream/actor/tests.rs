use super::model::{
    scenario::{Phased, Plan, Seen, Setting},
    world::World,
};
use crate::{
    config::Startup,
    protocol::Era,
    upstream::{Phase, server_state::model::Failure},
};

fn setting(startup: Startup, opening: Phased) -> Setting {
    let prompt = Phased::Takes(0);
    Setting {
        startup,
        is_dual: false,
        is_known: false,
        is_recalled: false,
        idle_timeout: Some(700),
        ttl: None,
        plans: vec![Plan { opening, handshake: prompt, lists: prompt, ending: 0 }],
    }
}

#[tokio::test(start_paused = true)]
async fn first_attempt_is_over_when_a_callers_load_has_failed() {
    let world = World::new(&setting(Startup::Hybrid, Phased::Fails(10, Failure::Ordinary)));
    assert!(world.upstream().lease(Era::Legacy).await.is_err());
    let seen: Vec<Seen> = world.take_seen().into_iter().map(|(_, seen)| seen).collect();
    assert!(seen.contains(&Seen::FirstAttemptOver), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn first_attempt_of_a_lazy_server_is_not_reported() {
    let world = World::new(&setting(Startup::Lazy, Phased::Takes(10)));
    assert!(world.upstream().lease(Era::Legacy).await.is_ok());
    let seen: Vec<Seen> = world.take_seen().into_iter().map(|(_, seen)| seen).collect();
    assert!(!seen.contains(&Seen::FirstAttemptOver), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn unused_connection_is_idle_from_the_moment_it_is_awake() {
    let world = World::new(&setting(Startup::Lazy, Phased::Takes(1500)));
    world.upstream().begin(Era::Legacy);
    for (at, phase) in [(1490, Phase::Loading), (2190, Phase::Awake), (2210, Phase::Asleep)] {
        world.advance(at).await;
        assert_eq!(world.upstream().status().phase, phase, "at {at} ms");
    }
}
