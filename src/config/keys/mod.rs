//! The keys of the file: each with its type, meaning, default, check and class in one place. Their
//! doc comments become the JSON schema and `docs/reference/config.md`.
//!
//! The keys of the file as a whole are in groups, each a [`KeyGroup`] that the validated config
//! contains as it is.

mod access_settings;
mod all_keys;
mod daemon_settings;
mod features;
mod group;
mod key_class;
mod limits;
mod list_settings;
mod listen_settings;
mod load_settings;
mod oauth_entry;
mod people_settings;
mod policy_rule;
mod profile;
mod result_limit;
mod root_entry;
mod script_settings;
mod server_entry;
mod server_settings;
mod simple_name;
mod store_settings;
mod telemetry_settings;
mod toolset_entry;
mod unlimited;

pub(crate) use access_settings::AccessSettings;
pub(super) use all_keys::is_secret;
#[cfg(test)]
pub(super) use all_keys::keys_of_server;
pub(crate) use daemon_settings::DaemonSettings;
pub(crate) use features::Features;
pub(super) use group::{KeyGroup, KeyProblem, classes};
pub(super) use key_class::CLASS;
#[cfg(test)]
pub(super) use key_class::ChangeEffect;
pub(crate) use limits::Limits;
pub(crate) use list_settings::{AlwaysLoad, ListSettings, Listing, Surface};
pub(crate) use listen_settings::ListenSettings;
pub(crate) use load_settings::{LoadSettings, Loads};
pub(crate) use oauth_entry::Grant;
pub(super) use oauth_entry::OAuthEntry;
pub(crate) use people_settings::{IntrospectionEntry, IssuerEntry, PeopleSettings};
pub(crate) use policy_rule::{PolicyRule, ToolHints, Verdict};
pub(super) use profile::Profile;
pub(crate) use result_limit::ResultLimit;
pub(super) use root_entry::RootEntry;
pub(crate) use script_settings::{SavedScript, ScriptSettings};
pub(super) use server_entry::{ENABLED, SURFACE_OF_ENDPOINT, ServerEntry, TransportKind};
pub(crate) use server_entry::{Isolation, LoginHolder, Protocol, Startup};
pub(crate) use server_settings::{Pin, ServerSettings};
pub(crate) use store_settings::StoreSettings;
pub(crate) use telemetry_settings::{CallLogging, TelemetrySettings};
pub(super) use toolset_entry::{ToolsetEntries, ToolsetEntry};
