//! `dormouse store`: the store that several machines share.

use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::{
    arguments::StoreSubcommand,
    output, settings,
    shared_flags::Options,
    state_stores::StateStores,
    table::{numbers, rendered, table},
};
use crate::{
    base::{counted, random_token, visible},
    store::StoreReport,
};

pub(super) fn run(options: &Options, command: &StoreSubcommand) -> anyhow::Result<ExitCode> {
    match command {
        StoreSubcommand::Check { json } => check(options, *json),
        StoreSubcommand::Key => {
            outln!("{}", random_token::<32>());
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check(options: &Options, is_json: bool) -> anyhow::Result<ExitCode> {
    let file = settings::find_trusted(options)?;
    settings::say_which(&file);
    let config = settings::parse(&file, options)?;
    let stores = StateStores::of(&config.settings)?;
    let Some(shared) = stores.shared() else {
        bail!("the config has no store: logins, catalogs and loads are files of this user");
    };
    let report = StoreReport::of(shared)
        .with_context(|| format!("cannot use the store {}", visible(shared.place())))?;
    if is_json {
        outln!("{}", output::json(&report)?);
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &StoreReport) {
    let StoreReport { place, software, latency_ms, kinds, shortcomings } = report;
    outln!("{} ({}), answers in {latency_ms} ms", visible(place), visible(software));
    let mut listed = table(&["KIND", "VALUES", "BYTES"]);
    numbers(&mut listed, &[1, 2]);
    for kind in kinds {
        listed.add_row([kind.kind.to_owned(), kind.values.to_string(), kind.bytes.to_string()]);
    }
    outln!("{}", rendered(listed));
    if !shortcomings.is_empty() {
        outln!("{}:", counted(shortcomings.len(), "shortcoming"));
    }
    for shortcoming in shortcomings {
        outln!("- {}", visible(shortcoming));
    }
}
