//! Telemetry: the log of calls, metrics, traces and savings, each a fold over the events of a
//! fleet. On the way of a message the end of a request is only noted.

mod call_log;
mod call_record;
mod client_name;
mod fleet_telemetry;
mod metric_names;
mod metrics;
mod operation;
mod otlp;
mod pending;
mod prometheus;
mod savings;
mod server_counts;
mod span_record;
mod turn_record;

pub(crate) use call_log::{CallLogDirectory, FollowedLog, LogEntry};
pub(crate) use call_record::{CallOutcome, CallRecord};
pub(crate) use client_name::client_name;
pub(crate) use fleet_telemetry::{FleetTelemetry, TelemetryOptions};
pub(crate) use otlp::ExportSettings;
pub(crate) use prometheus::CONTENT_TYPE as METRICS_CONTENT_TYPE;
pub(crate) use savings::SavingsReport;
pub(crate) use server_counts::ServerTally;
pub(crate) use turn_record::TurnRecord;
