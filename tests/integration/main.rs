//! The program as hosts and servers see it.

mod activate;
mod app_files;
mod call_log;
mod catalogs;
mod clients;
mod commands;
mod connecting;
mod control;
mod crossing;
#[cfg(target_os = "linux")]
mod daemon;
#[cfg(target_os = "linux")]
mod daemon_security;
#[cfg(target_os = "linux")]
mod daemon_sharing;
mod dashboard;
mod dialects;
mod documents;
mod editing;
mod eras;
mod extensions;
#[cfg(target_os = "linux")]
mod faults;
mod fidelity;
mod groups;
mod hostile;
mod hostile_scripts;
mod http;
mod importing;
mod imports;
mod large_results;
mod lifecycle;
mod loading;
mod logins;
mod logins_asked;
mod logins_real;
mod matrix;
mod messages;
mod one_server;
mod operating;
mod own_config;
mod packaging;
mod page;
mod people;
mod policy;
mod policy_spellings;
mod profiles;
mod real_servers;
mod reload;
mod remote;
mod replicas;
mod resources;
mod script_commands;
mod script_first_try;
mod script_savings;
mod scripts;
mod secrecy;
mod service;
mod shared_store;
mod sharing;
mod support;
mod surface;
mod telemetry;
mod tooling;
mod toolsets;
mod upgrade;
