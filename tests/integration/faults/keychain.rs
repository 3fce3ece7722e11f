//! Keychains that refuse, hang, or are killed.

use std::time::{Duration, Instant};

use crate::support::{
    Authority, User,
    faults::{BusFault, FaultyBus, RealKeychain},
    not_tested, redacted,
};

/// Maximum time for a command that finds a keychain that does not answer.
const BOUND: Duration = Duration::from_secs(25);

async fn log_in_on(fault: BusFault) {
    let authority = Authority::start().await;
    let bus = FaultyBus::with(fault);
    let user = User::with_server_at(authority.url()).on_bus(&bus.address());
    let began = Instant::now();
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    assert!(user.stored_logins()[0].contains("accessToken"), "the file has the token");
    let began = Instant::now();
    let (is_done, said) = user.run(&["status"]).await;
    assert!(is_done, "{said}");
    let mut host = user.host().await;
    assert_eq!(host.use_g().await, "ordinary");
    authority.expire_tokens();
    assert_eq!(host.use_g().await, "ordinary", "the token is renewed");
    assert!(began.elapsed() < Duration::from_secs(10), "a login in a file needs no keychain");
}

#[tokio::test]
async fn login_is_kept_in_a_file_if_the_session_bus_refuses() {
    log_in_on(BusFault::Refuses).await;
}

#[tokio::test]
async fn login_is_kept_in_a_file_if_the_session_bus_hangs() {
    log_in_on(BusFault::Hangs).await;
}

#[tokio::test]
async fn login_is_kept_in_a_file_if_the_session_bus_closes_its_connections() {
    log_in_on(BusFault::Closes).await;
}

/// Starts a keychain with a login.
macro_rules! logged_in {
    ($authority:expr) => {{
        let keychain = match RealKeychain::start() {
            Ok(keychain) => keychain,
            Err(why) => return not_tested(why),
        };
        let user = User::with_server_at($authority.url()).on_bus(&keychain.address());
        let (is_in, said) = user.log_in().await;
        assert!(is_in, "{said}");
        assert!(!user.stored_logins()[0].contains("accessToken"), "the keychain has the token");
        (keychain, user)
    }};
}

#[tokio::test]
async fn killed_keychain_ends_no_call_and_its_tokens_are_found_after_its_restart() {
    let authority = Authority::start().await;
    let (mut keychain, user) = logged_in!(authority);
    let mut host = user.host().await;
    assert_eq!(host.use_g().await, "ordinary");
    keychain.kill();
    assert_eq!(host.use_g().await, "ordinary", "the token is in memory");
    authority.expire_tokens();
    let began = Instant::now();
    insta::assert_snapshot!(redacted(&host.use_g().await));
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    let (is_done, said) = user.run(&["status"]).await;
    assert!(is_done, "{said}");
    keychain.restart().unwrap();
    assert_eq!(host.use_g().await, "ordinary", "the token is renewed");
}

#[tokio::test]
async fn process_that_started_without_the_keychain_finds_it_later() {
    let authority = Authority::start().await;
    let (mut keychain, user) = logged_in!(authority);
    keychain.kill();
    let mut host = user.host().await;
    insta::assert_snapshot!(redacted(&host.use_g().await));
    keychain.restart().unwrap();
    assert_eq!(host.use_g().await, "ordinary");
}

#[tokio::test]
async fn login_without_the_killed_keychain_goes_to_a_file() {
    let authority = Authority::start().await;
    let (mut keychain, user) = logged_in!(authority);
    keychain.kill();
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    assert!(user.stored_logins()[0].contains("accessToken"));
    assert_eq!(user.host().await.use_g().await, "ordinary");
}
