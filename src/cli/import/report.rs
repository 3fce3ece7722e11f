//! The report of an import: what was found, what was done, and what is left to do.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Import;
use crate::{
    apps::{
        ImportPlan, PlannedOutcome, PlannedServer, RequiredVariable, ServerSource, SkippedServer,
        find_secrets, find_secrets_in_text, mask_secrets, mask_secrets_in_value,
    },
    base::{counted, visible},
    cli::table::{rendered, table, wrapped},
    config::ConfigFile,
};

impl Import<'_> {
    /// Prints what the user has to do next.
    pub(super) fn say_what_is_next(&self, file: &ConfigFile) {
        let written = self.plan.servers.iter().filter(|planned| planned.outcome.is_written());
        let written = counted(written.count(), "server");
        outln!("\nwrote {}: {written}", file.path.display());
        let variables = file.env_file().path();
        for RequiredVariable { name, purpose } in self.missing(file) {
            outln!("set {name} ({}) in {}", visible(&purpose), variables.display());
        }
        let count = self.secrets.all.len();
        let secrets = counted(count, "secret");
        if count > 0 && self.is_moving {
            outln!("moved to {}: {secrets}", variables.display());
        } else if count > 0 {
            outln!("in plain text: {secrets}; --move-secrets moves them to .env");
        }
        if file.is_written() && !self.settings.is_empty() {
            let keys: Vec<&str> = self.settings.keys().map(String::as_str).collect();
            outln!("not added to the existing config: {}", keys.join(", "));
        }
        self.profiles.say_how_to_use();
        outln!("next: dormouse test, then dormouse connect APP --replace");
    }

    /// Returns the variables that nothing defines.
    fn missing(&self, file: &ConfigFile) -> Vec<RequiredVariable> {
        let environment = file.environment();
        let written = self.plan.servers.iter().filter(|planned| planned.outcome.is_written());
        let needed = written.flat_map(|planned| &planned.required);
        let mut missing: Vec<RequiredVariable> =
            needed.filter(|needed| environment.get(&needed.name).is_none()).cloned().collect();
        missing.sort();
        missing.dedup();
        missing
    }

    pub(super) fn report(
        &self,
        file: &ConfigFile,
        unreadable: &[(PathBuf, String)],
        is_written: bool,
    ) -> ImportReport {
        let hide = |entry: &Map<String, Value>| {
            let entry = json!(entry);
            let path = file.path.with_extension("json");
            let secrets = [&find_secrets_in_text(&path, &entry.to_string())[..], &self.secrets.all];
            mask_secrets_in_value(&entry, &secrets.concat())
        };
        let of_plan = self.plan.servers.iter().zip(&self.secrets.of).map(|(planned, secrets)| {
            ReportedServer {
                name: planned.name.clone(),
                from: planned.from.iter().map(From::from).collect(),
                outcome: outcome_text(planned.outcome),
                entry: Some(hide(&planned.entry)),
                notes: planned.notes.clone(),
                set: planned.required.iter().map(|needed| needed.name.clone()).collect(),
                secrets: secrets.iter().map(|secret| secret.location.to_string()).collect(),
            }
        });
        let skipped = self.plan.skipped.iter().map(|skipped| ReportedServer {
            name: skipped.name.clone(),
            from: vec![(&skipped.source).into()],
            outcome: "skipped",
            notes: vec![skipped.why.clone()],
            ..ReportedServer::default()
        });
        ImportReport {
            config: file.path.clone(),
            is_written,
            servers: of_plan.chain(skipped).collect(),
            profiles: self.profiles.reported(),
            unreadable: unreadable
                .iter()
                .map(|(path, why)| json!({"path": path, "why": why}))
                .collect(),
        }
    }
}

fn outcome_text(outcome: PlannedOutcome) -> &'static str {
    match outcome {
        PlannedOutcome::Added => "added",
        PlannedOutcome::Replaced => "replaced",
        PlannedOutcome::AlreadyThere => "already there",
        PlannedOutcome::NameTaken => "name taken",
    }
}

/// The report of `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportReport {
    config: PathBuf,
    #[serde(rename = "written")]
    is_written: bool,
    servers: Vec<ReportedServer>,
    /// The servers of each profile, by the name of the profile.
    profiles: BTreeMap<&'static str, BTreeSet<String>>,
    unreadable: Vec<Value>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportedServer {
    name: String,
    from: Vec<ReportedSource>,
    /// `added`, `replaced`, `already there`, `name taken` or `skipped`.
    outcome: &'static str,
    /// Without its secrets.
    entry: Option<Value>,
    notes: Vec<String>,
    /// Variables that the server needs.
    set: Vec<String>,
    /// The places of secrets in plain text.
    secrets: Vec<String>,
}

#[derive(Serialize)]
struct ReportedSource {
    app: &'static str,
    path: PathBuf,
}

impl From<&ServerSource> for ReportedSource {
    fn from(source: &ServerSource) -> Self {
        Self { app: source.app, path: source.path.clone() }
    }
}

/// Prints the plan. `is_whole`: commands are shown in full, since the user is asked whether to run
/// them.
pub(super) fn show(plan: &ImportPlan, file: &ConfigFile, is_whole: bool) {
    let mut shown = table(&["SERVER", "FROM", "RUNS", ""]);
    for planned in &plan.servers {
        let from: Vec<String> = planned.from.iter().map(ToString::to_string).collect();
        let becomes = match planned.outcome {
            PlannedOutcome::Added => "is added",
            PlannedOutcome::Replaced => "replaces the existing one",
            PlannedOutcome::AlreadyThere => "exists already",
            PlannedOutcome::NameTaken => "name is taken",
        };
        let runs = visible(&runs(planned));
        shown.add_row([visible(&planned.name), from.join(", "), runs, becomes.to_owned()]);
    }
    if plan.servers.is_empty() {
        errln!("nothing to import into {}", file.path.display());
    } else {
        outln!("{}\n", if is_whole { wrapped(shown) } else { rendered(shown) });
    }
    if plan.servers.iter().any(|planned| planned.outcome == PlannedOutcome::NameTaken) {
        errln!("--force replaces servers of the same name");
    }
    for SkippedServer { name, source, why } in &plan.skipped {
        errln!("skipped {} of {source}: {}", visible(name), visible(why));
    }
    for planned in &plan.servers {
        for note in &planned.notes {
            errln!("{}: {}", visible(&planned.name), visible(note));
        }
    }
}

/// Returns the command or the URL, without secrets.
fn runs(planned: &PlannedServer) -> String {
    let text = |key: &str| planned.entry.get(key).and_then(Value::as_str);
    let words = planned.entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let words = text("url").or(text("command")).into_iter().chain(words.filter_map(Value::as_str));
    let runs = words.collect::<Vec<_>>().join(" ");
    mask_secrets(&runs, &find_secrets(&planned.name, &planned.entry))
}
