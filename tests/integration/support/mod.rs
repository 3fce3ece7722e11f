//! Builders of the tests: servers, dormouse itself, and hosts.

mod authority;
mod balancer;
mod browser;
mod certificate;
mod collector;
mod daemon;
#[cfg(target_os = "linux")]
pub mod faults;
mod golden;
mod home;
mod host;
mod http;
mod identity_provider;
mod lines;
mod not_tested;
mod openid_provider;
mod page;
mod processes;
mod program;
mod provider;
mod proxy;
mod redacted;
mod redis;
pub mod remote;
mod server;
mod terminal;
mod user;

use std::time::Duration;

/// Time limit of all waits. It is far above any real duration, so that only a hang reaches it.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub use authority::{Authority, Behaviour, SECRET, form};
pub use balancer::{Balancer, BalancerKind};
pub use browser::Browser;
pub use certificate::TestCertificate;
pub use collector::{Collector, attribute};
#[cfg(target_os = "linux")]
pub use daemon::echo;
pub use daemon::{DaemonHome, by_daemon};
pub use golden::Golden;
pub use home::{AppFixture, Home, USER_CONFIG, app_files};
pub use host::{Host, ModernHost, text_of};
pub use http::{client as http_client, client_builder as http_client_builder};
pub use identity_provider::IdentityProvider;
pub use not_tested::not_tested;
pub use openid_provider::OpenIdProvider;
pub use page::{OpenPage, Page};
pub use processes::{descendants, eventually, is_alive, peak_memory};
pub use program::Program;
pub use provider::Provider;
pub use proxy::{Proxy, dormouse};
pub use redacted::{Cases, line_of, redacted, without_differences, without_list, words_of};
pub use redis::{Redis, STORE_KEY, free_port};
pub use server::{Server, fixture};
pub use terminal::{TerminalAction, at_terminal, at_terminal_typing};
pub use user::{User, visit};
