//! `dormouse disconnect`: remove dormouse from the configs of AI tools.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::Map;

use super::{Change, chosen, for_each, read};
use crate::{
    apps::{AppFile, Backups, ConnectRecord, Directories, OriginalFile},
    cli::{
        arguments::DisconnectArguments,
        settings::{self, directories},
        shared_flags::Options,
    },
};

pub(in crate::cli) fn disconnect(
    options: &Options,
    typed: &DisconnectArguments,
) -> anyhow::Result<ExitCode> {
    let directories = directories()?;
    let backups = settings::backups()?;
    let spots = chosen(&typed.apps, &directories, &backups)?;
    let disconnecting = Disconnecting { options, typed, directories, backups };
    Ok(for_each(&spots, |spot| disconnecting.disconnect(spot)))
}

struct Disconnecting<'a> {
    options: &'a Options,
    typed: &'a DisconnectArguments,
    directories: Directories,
    backups: Backups,
}

impl Disconnecting<'_> {
    fn disconnect(&self, spot: &AppFile) -> anyhow::Result<()> {
        let (name, path) = (spot.app.name, spot.path.display());
        let Some(before) = read(spot)? else {
            outln!("{name}: {path} does not exist");
            return Ok(());
        };
        let connection = self.backups.read_record(&spot.path).unwrap_or_else(|error| {
            errln!("{name}: cannot read the record of the replaced servers: {error}");
            None
        });
        let is_on_record = connection.is_some();
        let Some(undone) = undone(spot, &before, connection, &self.directories)? else {
            outln!("{name}: {path} has no dormouse");
            return Ok(());
        };
        let change = Change { spot, before: Some(&before), after: undone.text() };
        change.show(None);
        if !change.is_agreed(self.typed.consent)? {
            return Ok(());
        }
        let lost =
            if is_on_record { None } else { self.lost(spot, undone.text().unwrap_or_default()) };
        if matches!(undone, Undone::Edited(_)) {
            let copy = self.backups.save_copy(&spot.path, before.as_bytes());
            let copy = copy.context("cannot save a copy of the file")?;
            outln!("  original: {}", copy.display());
        }
        change.write()?;
        self.backups.delete_record(&spot.path);
        outln!("{name}: {path} {}", undone.says(is_on_record));
        lost.map_or(Ok(()), |lost| bail!("no record of the replaced servers was found; {lost}"))
    }

    /// Returns a note about servers that the file may have had before dormouse and lacks now.
    fn lost(&self, spot: &AppFile, text: &str) -> Option<String> {
        let names = |text: &str| spot.server_names(text, &self.directories).unwrap_or_default();
        let present = names(text);
        let absent = |mut names: Vec<String>| {
            names.retain(|name| !present.contains(name));
            (!names.is_empty()).then(|| names.join(", "))
        };
        let earlier = self.backups.copies_of(&spot.path).into_iter().find_map(|copy| {
            let text = crate::base::read_text(&copy).ok()?;
            let is_connected =
                spot.disconnect(&text, &Map::new(), &self.directories).ok()?.is_some();
            (!is_connected).then(|| names(&text))
        });
        if let Some(earlier) = earlier {
            return absent(earlier).map(|names| {
                format!("these servers are missing in the file and were not restored: {names}")
            });
        }
        let file = settings::find(self.options).ok()?;
        absent(file.entries().ok()?.keys().cloned().collect()).map(|names| {
            format!(
                "there is no copy of the original file either. These servers of {} are missing in \
                    it and were \
                    not restored: {names}",
                file.path.display()
            )
        })
    }
}

/// A file without dormouse.
enum Undone {
    /// The file is restored; `None` if it did not exist.
    Restored(Option<String>),
    /// The file was edited since, or its original is unknown.
    Edited(String),
}

impl Undone {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Restored(text) => text.as_deref(),
            Self::Edited(text) => Some(text),
        }
    }

    fn says(&self, is_on_record: bool) -> &'static str {
        match self {
            Self::Restored(_) => "is as it was before",
            Self::Edited(_) if !is_on_record => "no longer has dormouse",
            Self::Edited(_) => {
                "no longer has dormouse and has its own servers again; later changes are kept"
            }
        }
    }
}

/// `None` if there is nothing to do.
fn undone(
    spot: &AppFile,
    text: &str,
    connection: Option<ConnectRecord>,
    directories: &Directories,
) -> anyhow::Result<Option<Undone>> {
    let Some(connection) = connection else {
        let edited = spot.disconnect(text, &Map::new(), directories)?;
        return Ok(edited.map(Undone::Edited));
    };
    if connection.is_unchanged(text.as_bytes()) {
        match &connection.before {
            OriginalFile::Nothing => return Ok(Some(Undone::Restored(None))),
            OriginalFile::Copy(copy) => match std::fs::read_to_string(copy) {
                Ok(text) => return Ok(Some(Undone::Restored(Some(text)))),
                Err(error) => {
                    errln!("the copy of the original cannot be read ({}: {error})", copy.display());
                }
            },
            OriginalFile::Mixed => {}
        }
    }
    let edited = spot.disconnect(text, &connection.taken_out, directories)?;
    let text = edited.as_deref().unwrap_or(text);
    let put_back = spot.restore_projects(text, &connection.taken_out_of_projects, directories)?;
    Ok(put_back.or(edited).map(Undone::Edited))
}
