//! The log on standard error. Standard output belongs to the protocol.

use std::{io::IsTerminal as _, str::FromStr as _};

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    filter::{Targets, filter_fn},
    fmt,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::{
    UsageError,
    arguments::{LogFormat, Options},
};

/// Lines that wait for a reader of our standard error; more are dropped. A host that does not read it
/// must not stop the protocol.
const LINES_WAITING: usize = 1024;

/// Starts logging at the level asked for: `--log-level`, else `DORMOUSE_LOG`, else `usual`. What waits
/// is written when the guard is dropped.
pub(super) fn start(options: &Options, usual: &str) -> anyhow::Result<WorkerGuard> {
    let asked = options.log_level.clone().or_else(|| std::env::var("DORMOUSE_LOG").ok());
    let level = asked.as_deref().map(str::trim).filter(|level| !level.is_empty()).unwrap_or(usual);
    let is_bare_word = !level.contains(['=', ',', ':']);
    let targets = Targets::from_str(level).ok().filter(|targets| {
        // A word that is no level would be taken for a target of all levels.
        !is_bare_word || targets.default_level().is_some()
    });
    let targets = targets.ok_or_else(|| {
        UsageError(format!(
            "--log-level or DORMOUSE_LOG: {level:?} is no level, nor a list of target=level"
        ))
    })?;
    // Below that it says the codes that tokens are given for, whatever is asked for.
    let is_no_secret = |metadata: &tracing::Metadata<'_>| {
        !metadata.target().starts_with("rmcp") || *metadata.level() <= tracing::Level::WARN
    };
    let registry = tracing_subscriber::registry().with(targets).with(filter_fn(is_no_secret));
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES_WAITING)
        .lossy(true)
        .finish(std::io::stderr());
    match options.log_format {
        LogFormat::Pretty => registry
            .with(
                fmt::layer()
                    .compact()
                    .with_target(false)
                    .with_ansi(std::io::stderr().is_terminal())
                    .with_writer(writer),
            )
            .init(),
        LogFormat::Json => {
            registry.with(fmt::layer().json().flatten_event(true).with_writer(writer)).init();
        }
    }
    Ok(guard)
}
