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
    let app_files = chosen(&typed.apps, &directories, &backups)?;
    let disconnecting = Disconnecting { options, typed, directories, backups };
    Ok(for_each(&app_files, |app_file| disconnecting.disconnect(app_file)))
}

struct Disconnecting<'a> {
    options: &'a Options,
    typed: &'a DisconnectArguments,
    directories: Directories,
    backups: Backups,
}

impl Disconnecting<'_> {
    fn disconnect(&self, app_file: &AppFile) -> anyhow::Result<()> {
        let (name, path) = (app_file.app.name, app_file.path.display());
        let Some(before) = read(app_file)? else {
            outln!("{name}: {path} does not exist");
            return Ok(());
        };
        let record = self.backups.read_record(&app_file.path);
        if let Err(error) = &record {
            errln!("{name}: cannot read the record of the replaced servers: {error}");
        }
        let is_unreadable = record.is_err();
        let connection = record.unwrap_or_default();
        let is_on_record = connection.is_some();
        let Some(restored) = restored_file(app_file, &before, connection, &self.directories)?
        else {
            outln!("{name}: {path} has no dormouse");
            return Ok(());
        };
        let change = Change { app_file, before: Some(&before), after: restored.text() };
        change.show(None);
        if !change.is_agreed(self.typed.consent)? {
            return Ok(());
        }
        let lost = if is_on_record {
            None
        } else {
            self.lost(app_file, restored.text().unwrap_or_default())
        };
        if matches!(restored, RestoredFile::Edited(_)) {
            let copy = self.backups.save_copy(&app_file.path, before.as_bytes());
            let copy = copy.context("cannot save a copy of the file")?;
            outln!("  original: {}", copy.display());
        }
        change.write()?;
        self.backups.delete_record(&app_file.path);
        outln!("{name}: {path} {}", restored.report(is_on_record));
        match lost {
            Some(lost) => bail!("no record of the replaced servers was found; {lost}"),
            None if is_unreadable => bail!("servers that dormouse replaced may be missing"),
            None => Ok(()),
        }
    }

    /// Returns a note about servers that the file may have had before dormouse and lacks now.
    fn lost(&self, app_file: &AppFile, text: &str) -> Option<String> {
        let names = |text: &str| app_file.server_names(text, &self.directories).unwrap_or_default();
        let present = names(text);
        let absent = |mut names: Vec<String>| {
            names.retain(|name| !present.contains(name));
            (!names.is_empty()).then(|| names.join(", "))
        };
        let earlier = self.backups.copies_of(&app_file.path).into_iter().find_map(|copy| {
            let text = crate::base::read_text(&copy).ok()?;
            let is_connected =
                app_file.disconnect(&text, &Map::new(), &self.directories).ok()?.is_some();
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
enum RestoredFile {
    /// The file is restored; `None` if it did not exist.
    Restored(Option<String>),
    /// The file was edited since, or its original is unknown.
    Edited(String),
}

impl RestoredFile {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Restored(text) => text.as_deref(),
            Self::Edited(text) => Some(text),
        }
    }

    fn report(&self, is_on_record: bool) -> &'static str {
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
fn restored_file(
    app_file: &AppFile,
    text: &str,
    connection: Option<ConnectRecord>,
    directories: &Directories,
) -> anyhow::Result<Option<RestoredFile>> {
    let Some(connection) = connection else {
        let edited = app_file.disconnect(text, &Map::new(), directories)?;
        return Ok(edited.map(RestoredFile::Edited));
    };
    if connection.is_unchanged(text.as_bytes()) {
        match &connection.before {
            OriginalFile::Nothing => return Ok(Some(RestoredFile::Restored(None))),
            OriginalFile::Copy(copy) => match connection.read_copy(copy) {
                Ok(text) => return Ok(Some(RestoredFile::Restored(Some(text)))),
                Err(error) => {
                    errln!("the copy of the original cannot be read ({}: {error})", copy.display());
                }
            },
            OriginalFile::Mixed => {}
        }
    }
    let edited = app_file.disconnect(text, &connection.taken_out, directories)?;
    let text = edited.as_deref().unwrap_or(text);
    let put_back =
        app_file.restore_projects(text, &connection.taken_out_of_projects, directories)?;
    Ok(put_back.or(edited).map(RestoredFile::Edited))
}
