//! The config: from a file's text to one validated [`Config`].
//!
//! `keys` declares the keys as they are written, with their defaults and checks; `parse` reads them
//! into a [`Config`]. This layer knows neither connections nor the protocol.

mod app_file_names;
mod config_file;
mod configure;
mod convert;
mod dialect;
mod document;
mod document_reader;
mod duration;
mod edits;
mod env_file;
mod environment;
mod excerpt;
mod expand;
mod find;
mod format;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod header_names;
mod key_path;
mod keys;
mod launch_context;
mod merge;
mod name_pattern;
mod oauth;
pub(crate) mod own_tool_names;
mod parse;
mod parsed_config;
mod plain_words;
mod problem;
mod profiles;
mod reading_rules;
mod rule_exception;
mod schema;
pub(crate) mod secrecy;
mod settings;
mod sharing;
mod tools;
mod toolset;
mod transport;
mod trust;
mod unavailable;
mod unchanged;
mod unknown_key;
mod unmatched_rules;
mod urls;
mod user_commands;
mod watch;

pub(crate) use app_file_names::AppFileNames;
pub(crate) use config_file::ConfigFile;
pub(crate) use configure::{OfferRules, ServerConfig};
pub(crate) use convert::{Converted, convert};
pub(crate) use dialect::{Dialect, literal};
pub(crate) use duration::parse_duration;
pub(crate) use edits::ConfigEdit;
pub use environment::Environment;
pub(crate) use excerpt::excerpt;
pub(crate) use find::{find, find_own, find_to_trust, is_of_user, own_place};
pub use format::Format;
pub(crate) use format::{Edit, EditError};
pub(crate) use header_names::has_authorization;
pub(crate) use keys::{
    AccessSettings, AlwaysLoad, CallLogging, Grant, IntrospectionEntry, Isolation, IssuerEntry,
    Limits, ListSettings, ListenSettings, Listing, Loads, LoginHolder, PeopleSettings, Pin,
    PolicyRule, Protocol, ResultLimit, SavedScript, ServerSettings, Startup, StoreSettings,
    Surface, ToolHints, Verdict,
};
pub(crate) use launch_context::LaunchContext;
pub(crate) use merge::ToolChanges;
pub(crate) use name_pattern::NamePattern;
pub(crate) use oauth::{ClientProof, OAuth, OAuthClient, Secret};
pub(crate) use parse::check_entry;
pub use parse::parse;
pub(crate) use parsed_config::{Compatibility, Config, ParsedConfig};
pub(crate) use problem::{ConfigError, MAX_PROBLEMS, Problem};
pub(crate) use profiles::{ProfileName, Profiles};
pub(crate) use rule_exception::RuleException;
pub(crate) use schema::{json_schema, reference, server_keys};
pub(crate) use secrecy::Mask;
pub(crate) use settings::{
    HttpSettings, LaunchFacts, PermittedProfiles, Settings, UsageLimits, Wrapping,
};
pub(crate) use sharing::LaunchIdentity;
pub(crate) use tools::{ToolChoice, ToolRules};
pub(crate) use toolset::{OfferExtent, ProposedToolset, Toolset};
pub(crate) use transport::{Framing, Launch, Remote, Transport};
pub(crate) use trust::TrustStore;
pub use trust::place_fingerprint;
pub(crate) use unavailable::Unavailable;
pub(crate) use unchanged::Unchanged;
pub(crate) use urls::{is_loopback, is_secure};
pub(crate) use user_commands::UserCommands;
pub(crate) use watch::Watch;
