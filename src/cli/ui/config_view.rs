//! The reports of a config that the page shows, and the changes that it makes. The config is read
//! for each request, since it may change at any time. All functions wait for the disk and for the
//! processes that serve the config.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::StatusCode;
use reqwest::Method;
use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

use super::{
    call_feed::{CallFeed, NextCalls, SavedHour},
    definition_diff::{DefinitionDiff, digest},
    overview::Overview,
    page_logins::LoginProgress,
};
use crate::{
    base::Lock,
    catalog::{Cache, CatalogKey, ToolSummary},
    cli::{
        edit,
        instances::{REQUEST_TIMEOUT, path_of_server, send_all, stderr_of},
        joint_report::{by_process, over_processes},
        operate::{LOAD_MARGIN, ServerOperation},
        settings,
        shared_flags::Options,
        sharing_report::SharedServers,
        state_stores::StateStores,
    },
    config::{Config, ConfigEdit, ConfigFile, ServerConfig},
    control::{ApiError, ServerReport, ServerTool, StatusReport},
    proxy::FoundTool,
    telemetry::SavingsReport,
};

/// Time after which the stored state is read again.
const STORED_LIFETIME: Duration = Duration::from_secs(5);
/// Maximum number of lines of standard error in an answer.
const MAX_STDERR_LINES: usize = 500;

/// The path of a process's report without the lists of tools.
const BRIEF_STATUS: &str = "/status?brief=true";

/// The config that the page is for.
pub(super) struct ConfigView {
    options: Options,
    /// The config with which the page was opened.
    path: PathBuf,
    calls: CallFeed,
    stored: Lock<Option<StoredReports>>,
}

/// The stored state of the servers of a config. The catalogs are too large to be read each second.
struct StoredReports {
    read: Instant,
    /// The text of the config at that time.
    config: String,
    servers: Arc<Vec<ServerReport>>,
}

/// The savings since the processes have started, and by the hour.
#[derive(Serialize)]
pub(super) struct SavingsView {
    #[serde(flatten)]
    savings: SavingsReport,
    hours: Vec<SavedHour>,
}

/// A config as it is now, with its file.
struct PresentConfig {
    file: ConfigFile,
    config: Config,
}

impl ConfigView {
    pub(super) fn new(options: Options, file: &ConfigFile) -> Self {
        Self {
            options,
            path: file.path.clone(),
            calls: CallFeed::new(settings::call_log_directory(file)),
            stored: Lock::default(),
        }
    }

    fn file(&self) -> Result<ConfigFile, ApiError> {
        let file = settings::find_trusted(&self.options).map_err(|error| unusable(&error))?;
        if file.path != self.path {
            let path = file.path.display();
            return Err(conflict(format!("the config is {path} now: open the page again")));
        }
        Ok(file)
    }

    fn present(&self) -> Result<PresentConfig, ApiError> {
        let file = self.file()?;
        let config = settings::parse(&file, &self.options);
        let config = config.map_err(|error| unusable(&error.into()))?;
        Ok(PresentConfig { file, config })
    }

    pub(super) fn server(&self, name: &str) -> Result<ServerConfig, ApiError> {
        let PresentConfig { config, .. } = self.present()?;
        server_of(&config, name).cloned()
    }

    /// `logins`: the logins that have been begun; `None` if none can be begun on this page.
    pub(super) fn overview(
        &self,
        logins: Option<HashMap<String, LoginProgress>>,
    ) -> Result<Overview, ApiError> {
        let PresentConfig { file, config } = self.present()?;
        let mut processes = by_process(&ask(&file, BRIEF_STATUS)?);
        let shared = SharedServers::of(&file.path);
        for process in &mut processes {
            shared.count_processes(process);
        }
        let stored = self.stored(&file, &config);
        let mut servers = match over_processes(&processes) {
            Some(report) => report.servers,
            None => Vec::new(),
        };
        // A process reports no tools of servers that it has not connected, and does not know
        // servers that it has not loaded from the config yet.
        for stored in &*stored {
            match servers.iter_mut().find(|server| server.name == stored.name) {
                Some(server) if server.tool_counts.is_none() => {
                    (server.tool_counts, server.tokens) = (stored.tool_counts, stored.tokens);
                }
                Some(_) => {}
                None => servers.push(stored.clone()),
            }
        }
        Ok(Overview::new(&config, file.path, &processes, servers, logins))
    }

    /// Returns the stored state of each server, read again after a while.
    fn stored(&self, file: &ConfigFile, config: &Config) -> Arc<Vec<ServerReport>> {
        let mut stored = self.stored.lock();
        let is_fresh = |stored: &StoredReports| {
            stored.read.elapsed() < STORED_LIFETIME && stored.config == file.text()
        };
        if let Some(fresh) = stored.as_ref().filter(|stored| is_fresh(stored)) {
            return fresh.servers.clone();
        }
        let places = StateStores::of(&config.settings).unwrap_or_else(|_| StateStores::of_user());
        let (cache, auth) = (places.catalogs(), places.auth(Some(file), &self.options));
        let path = file.path.clone();
        let report = StatusReport::at_rest(&config.servers, cache.as_ref(), &auth, path);
        let servers = Arc::new(report.servers);
        let (read, config) = (Instant::now(), file.text().to_string());
        *stored = Some(StoredReports { read, config, servers: servers.clone() });
        servers
    }

    pub(super) fn calls_after(&self, number: u64) -> NextCalls {
        self.calls.after(number)
    }

    /// Returns what was saved since the start of the processes, and in each hour of the log.
    pub(super) fn savings(&self) -> Result<SavingsView, ApiError> {
        let reports = ask(&self.file()?, BRIEF_STATUS)?;
        let savings = over_processes(&reports).and_then(|report| report.savings);
        let savings = savings.unwrap_or_else(SavingsReport::none);
        Ok(SavingsView { savings, hours: self.calls.saved_hours() })
    }

    pub(super) fn tools(&self, server: &str) -> Result<Vec<ToolSummary>, ApiError> {
        let PresentConfig { file, config } = self.present()?;
        server_of(&config, server)?;
        let path = path_of_server(server, "tools");
        let answers = ask::<Vec<ServerTool>>(&file, &path)?;
        let longest = answers.into_iter().max_by_key(Vec::len).unwrap_or_default();
        if !longest.is_empty() {
            return Ok(longest.into_iter().map(|tool| tool.tool).collect());
        }
        let stored = self.stored(&file, &config);
        let stored = stored.iter().find(|report| report.name == server);
        let inventory = stored.and_then(|report| report.inventory.clone());
        Ok(inventory.map(|inventory| inventory.tools).unwrap_or_default())
    }

    pub(super) fn stderr(&self, server: &str) -> Result<Vec<String>, ApiError> {
        let answers = stderr_of(&self.file()?, server).map_err(|error| unusable(&error))?;
        let mut lines: Vec<String> = answers.into_iter().flatten().flatten().collect();
        lines.drain(..lines.len().saturating_sub(MAX_STDERR_LINES));
        Ok(lines)
    }

    pub(super) fn search(&self, query: &str) -> Result<Vec<FoundTool>, ApiError> {
        let query =
            percent_encoding::utf8_percent_encode(query, percent_encoding::NON_ALPHANUMERIC);
        let answers = ask::<Vec<FoundTool>>(&self.file()?, &format!("/search?query={query}"))?;
        let first = answers.into_iter().next();
        first.ok_or_else(|| conflict("no dormouse is running that could search"))
    }

    /// Has every process operate on a server.
    ///
    /// # Errors
    /// If no process runs, or all refuse.
    pub(super) fn operate(&self, server: &str, operation: ServerOperation) -> Result<(), ApiError> {
        let PresentConfig { file, config } = self.present()?;
        let timeout = server_of(&config, server)?.settings.timeouts.load + LOAD_MARGIN;
        let path = path_of_server(server, operation.path());
        tell(&file, &path, timeout)
    }

    /// Edits the config, and has every process reload it.
    ///
    /// # Errors
    /// If the config cannot be edited, or would not be valid.
    pub(super) fn edit(&self, change: &ConfigEdit) -> Result<(), ApiError> {
        let file = self.file()?;
        edit::make(&self.options, file.clone(), change)?;
        let reloads = send_all::<IgnoredAny>(&file, &Method::POST, "/reload", REQUEST_TIMEOUT);
        let mut reloads = reloads.map_err(|error| unusable(&error))?.into_iter();
        reloads.find_map(Result::err).map_or(Ok(()), |why| {
            Err(conflict(format!("changed, but a running dormouse has not reloaded it: {why}")))
        })
    }

    /// Returns the changed tools of a server, each with its differences.
    pub(super) fn definition_changes(&self, server: &str) -> Result<Vec<DefinitionDiff>, ApiError> {
        let catalog = self.catalog_of(server)?;
        let changes = catalog.map(|(cache, key)| cache.changes(&key, None)).unwrap_or_default();
        Ok(DefinitionDiff::of_all(&changes))
    }

    /// Approves the present definition of a tool, if it is the one that the user has seen.
    ///
    /// # Errors
    /// If the definition has changed again, or nothing can be stored.
    pub(super) fn approve(&self, server: &str, tool: &str, seen: &str) -> Result<(), ApiError> {
        let approved = self.catalog_of(server)?.map(|(cache, key)| {
            cache.approve_seen(&key, tool, |changes| digest(tool, changes) == seen)
        });
        if !approved.transpose().map_err(|error| unusable(&error.into()))?.unwrap_or_default() {
            return Err(conflict("the definition has changed again: look at it once more"));
        }
        *self.stored.lock() = None;
        Ok(())
    }

    /// Returns the place of the stored catalog of a server; `None` if none can be stored.
    fn catalog_of(&self, server: &str) -> Result<Option<(Cache, CatalogKey)>, ApiError> {
        let PresentConfig { config, .. } = self.present()?;
        let key = CatalogKey::of(server_of(&config, server)?);
        let stores = StateStores::of(&config.settings);
        Ok(stores.map_err(|error| conflict(format!("{error:#}")))?.catalogs().zip(key))
    }
}

fn server_of<'a>(config: &'a Config, name: &str) -> Result<&'a ServerConfig, ApiError> {
    settings::server(config, name)
        .map_err(|error| ApiError::new(StatusCode::NOT_FOUND, error.to_string()))
}

/// Returns the answers of all processes, except those that refuse, hang or have another version.
fn ask<T: DeserializeOwned>(file: &ConfigFile, path: &str) -> Result<Vec<T>, ApiError> {
    let answers = send_all(file, &Method::GET, path, REQUEST_TIMEOUT);
    let answers = answers.map_err(|error| unusable(&error))?;
    Ok(answers.into_iter().filter_map(Result::ok).collect())
}

/// Sends a request to every process, and waits until all have answered.
fn tell(file: &ConfigFile, path: &str, patience: Duration) -> Result<(), ApiError> {
    let answers = send_all::<IgnoredAny>(file, &Method::POST, path, patience);
    let (done, refused): (Vec<_>, Vec<_>) =
        answers.map_err(|error| unusable(&error))?.into_iter().partition(Result::is_ok);
    match refused.into_iter().find_map(Result::err) {
        Some(why) if done.is_empty() => Err(conflict(why)),
        None if done.is_empty() => Err(conflict("no dormouse is running that serves this config")),
        _ => Ok(()),
    }
}

fn conflict(why: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, why)
}

fn unusable(error: &anyhow::Error) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{error:#}"))
}
