//! `dormouse script`: run and check scripts, and print what they can call.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use serde_json::json;

use super::{
    arguments::ScriptSubcommand,
    one_call::{OneCall, print, read_input},
    runtime,
    script_check::{self, ScriptProblem},
    script_types, settings,
    shared_flags::Options,
    state_stores::StateStores,
};
use crate::{
    base::{read_bounded_text, visible},
    config::Startup,
    script::{CheckError, check_script},
    surface::{MAX_CODE_BYTES, to_run_script},
};

pub(super) fn run(options: &Options, command: &ScriptSubcommand) -> anyhow::Result<ExitCode> {
    match command {
        ScriptSubcommand::Run { file, input, json } => {
            run_script(options, file, input.as_deref(), *json)
        }
        ScriptSubcommand::Check { file, json } => check(options, file, *json),
        ScriptSubcommand::Types => script_types::run(options),
    }
}

/// Returns the text of a script.
fn read(path: &Path) -> anyhow::Result<String> {
    let text = read_bounded_text(path, MAX_CODE_BYTES as u64);
    text.with_context(|| format!("cannot read the script {}", path.display()))
}

fn run_script(
    options: &Options,
    path: &Path,
    input: Option<&str>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let file = settings::find_trusted(options)?;
    if !json {
        settings::say_which(&file);
    }
    let mut config = settings::parse(&file, options)?;
    let code = read(path)?;
    let input = read_input(input)?;
    config.settings.launch.is_for_person = true;
    config.settings.lists.scripts.runs_any = true;
    config.settings.loading.remember_loads = false;
    config.servers.retain(|server| server.enabled);
    for server in &mut config.servers {
        server.startup = Startup::Lazy;
    }
    let is_shared = config.servers.iter().any(|server| server.shared_identity().is_some());
    let params = to_run_script(&code, &input);
    let answer = OneCall { file: &file, options, config, is_shared, params }.make()?;
    Ok(print(&answer.outcome, json))
}

fn check(options: &Options, path: &PathBuf, is_json: bool) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = settings::parse(&file, options)?;
    let catalogs = StateStores::of(&config.settings)?.catalogs();
    let code = read(path)?;
    let problems = match runtime()?.block_on(check_script(code)) {
        Ok(uses) => script_check::problems_of(&config, catalogs, &uses),
        Err(CheckError::Script(failure)) => vec![ScriptProblem::from(failure)],
        Err(error) => bail!("cannot check the script: {error}"),
    };
    let has_failed = problems.iter().any(|problem| !problem.is_warning);
    if is_json {
        let report = json!({"script": path, "ok": !has_failed, "problems": problems});
        outln!("{}", super::output::json(&report)?);
    } else {
        settings::say_which(&file);
        for problem in &problems {
            let kind = if problem.is_warning { "warning: " } else { "" };
            let (path, place) = (path.display(), problem.place());
            outln!("{path}{place}: {kind}{}", visible(&problem.message));
        }
        if problems.is_empty() {
            outln!("{} is ready to run", path.display());
        }
    }
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
