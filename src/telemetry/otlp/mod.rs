//! Export of traces and metrics to a collector: OTLP 1 over HTTP, in JSON.
//!
//! The crates of OpenTelemetry are not used: they read the environment of the process, which in the
//! daemon is not that of the host, run a thread for each fleet and exporter, and add 0.8 MB to the
//! program. What they would be used for is this folder.

mod export_settings;
mod exporter;
mod payload;

pub(crate) use export_settings::ExportSettings;
pub(super) use exporter::{Exporter, ExporterTask};
