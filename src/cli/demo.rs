//! `dormouse demo`: a full run on embedded servers.

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use super::runtime;
use crate::demo::{DemoStep, tour};

pub(super) fn run(json: bool) -> anyhow::Result<ExitCode> {
    let runtime = runtime()?;
    if json {
        let mut steps = Vec::new();
        runtime.block_on(tour(|step| steps.push(step)))?;
        outln!("{}", serde_json::to_string_pretty(&steps)?);
    } else {
        runtime.block_on(tour(print))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// In colour if the terminal supports it; `anstream` removes it elsewhere.
fn print(step: DemoStep) {
    let title = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
    let quote = Style::new().dimmed();
    outln!("{title}▸ {}{title:#}", step.title);
    for line in step.lines {
        let style = if line.starts_with('│') { quote } else { Style::new() };
        outln!("  {style}{line}{style:#}");
    }
    outln!("");
}
