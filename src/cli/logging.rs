//! Sets up the log on standard error. Standard output belongs to the protocol.

use std::{
    fmt,
    io::{self, IsTerminal as _},
    str::FromStr as _,
};

use tracing::{Dispatch, field::Field};

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    field::MakeExt as _,
    filter::{Targets, filter_fn},
    fmt::{
        self as subscriber, MakeWriter,
        format::{Writer, debug_fn},
        writer::BoxMakeWriter,
    },
    layer::SubscriberExt as _,
};

use super::{
    UsageError,
    output::with_escapes,
    shared_flags::{LogFormat, Options},
};
use crate::base::visible;

/// The variable with the level of the log.
pub(super) const LEVEL_VARIABLE: &str = "DORMOUSE_LOG";

/// Maximum number of log lines that wait to be written. Further lines are dropped: a host that does
/// not read standard error must not block the protocol.
const LINES_WAITING: usize = 1024;

/// Writes a field of an event without line breaks and control characters: text from servers must
/// neither forge a line of the log nor control the terminal.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = visible(&format!("{value:?}")).replace('\n', "\\n").replace('\t', " ");
    match field.name() {
        "message" => write!(writer, "{value}"),
        name => write!(writer, "{name}={value}"),
    }
}

/// Returns a writer that does not block, or a blocking one if the system cannot start a thread.
fn writer() -> (BoxMakeWriter, Option<WorkerGuard>) {
    let can_start_threads = std::thread::Builder::new().spawn(|| {}).is_ok();
    if !can_start_threads {
        return (BoxMakeWriter::new(std::io::stderr), None);
    }
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES_WAITING)
        .lossy(true)
        .finish(std::io::stderr());
    (BoxMakeWriter::new(writer), Some(guard))
}

/// A writer for lines of JSON that escapes invisible characters, including those that control a
/// terminal.
struct Visible<W>(W);

impl<W: io::Write> io::Write for Visible<W> {
    /// Writes one whole line: the JSON layer makes one call per line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(with_escapes(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

struct MakeVisible(BoxMakeWriter);

impl<'a> MakeWriter<'a> for MakeVisible {
    type Writer = Visible<<BoxMakeWriter as MakeWriter<'a>>::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Visible(self.0.make_writer())
    }
}

/// Starts logging on standard error, at the level of `--log-level`, `DORMOUSE_LOG` or `usual`, in
/// this order. Waiting lines are written when the returned guard is dropped.
pub(super) fn start(options: &Options, usual: &str) -> anyhow::Result<Option<WorkerGuard>> {
    let targets = targets(options, std::env::var(LEVEL_VARIABLE).ok(), usual)?;
    let (writer, guard) = writer();
    std::panic::set_hook(Box::new(|panic| {
        let panic = visible(&panic.to_string());
        if tracing::enabled!(tracing::Level::ERROR) {
            // Only one task has failed. Its caller receives an error.
            tracing::error!(%panic, "a task panicked");
        } else {
            errln!("dormouse: {panic}");
        }
    }));
    let log = log(options.log_format, targets, writer, std::io::stderr().is_terminal());
    tracing::dispatcher::set_global_default(log)?;
    Ok(guard)
}

/// Returns a log whose lines are given to a function. `level`: the value of [`LEVEL_VARIABLE`].
#[cfg(unix)]
pub(super) fn to_function(
    options: &Options,
    level: Option<String>,
    has_colours: bool,
    write: impl Fn(&str) + Clone + Send + Sync + 'static,
) -> anyhow::Result<Dispatch> {
    let targets = targets(options, level, "info")?;
    let writer = BoxMakeWriter::new(move || LineWriter(write.clone()));
    Ok(log(options.log_format, targets, writer, has_colours))
}

/// Gives each line to a function.
#[cfg(unix)]
struct LineWriter<F>(F);

#[cfg(unix)]
impl<F: Fn(&str)> io::Write for LineWriter<F> {
    /// Writes one whole line: the layers make one call per line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        (self.0)(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the targets of the log, with their levels.
fn targets(options: &Options, variable: Option<String>, usual: &str) -> anyhow::Result<Targets> {
    let asked = options.log_level.clone().or(variable);
    let level = asked.as_deref().map(str::trim).filter(|level| !level.is_empty()).unwrap_or(usual);
    let is_bare_word = !level.contains(['=', ',', ':']);
    let targets = Targets::from_str(level).ok().filter(|targets| {
        // `Targets` would parse a word that is not a level as a target with all levels enabled.
        !is_bare_word || targets.default_level().is_some()
    });
    Ok(targets.ok_or_else(|| {
        UsageError(format!(
            "--log-level or DORMOUSE_LOG: {level:?} is neither a level nor a list of target=level"
        ))
    })?)
}

fn log(format: LogFormat, targets: Targets, writer: BoxMakeWriter, has_colours: bool) -> Dispatch {
    // At lower levels, rmcp logs authorization codes. Hence these are off at every log level.
    let is_no_secret = |metadata: &tracing::Metadata<'_>| {
        !metadata.target().starts_with("rmcp") || *metadata.level() <= tracing::Level::WARN
    };
    let registry = tracing_subscriber::registry().with(targets).with(filter_fn(is_no_secret));
    match format {
        LogFormat::Pretty => Dispatch::new(
            registry.with(
                subscriber::layer()
                    .compact()
                    .fmt_fields(debug_fn(write_field).delimited(" "))
                    .with_target(false)
                    .with_ansi(has_colours)
                    .with_writer(writer),
            ),
        ),
        LogFormat::Json => {
            Dispatch::new(registry.with(
                subscriber::layer().json().flatten_event(true).with_writer(MakeVisible(writer)),
            ))
        }
    }
}
