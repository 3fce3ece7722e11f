//! Changes of a config in place: what is written around them stays, and nobody else's are lost.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    ConfigError, ConfigFile, TrustStore,
    document::Document,
    format::{Edit, Format},
};

/// Why a config is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("cannot edit the entry of {server:?}, which has to be done by hand: {reason}")]
    Edit { server: String, reason: String },
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl ConfigFile {
    /// The file with this server in it, in the place of one of that name or behind all others.
    ///
    /// # Errors
    /// When that cannot be done without touching more, or the file is one of another system.
    pub fn with_server(&self, name: &str, entry: Value) -> Result<Self, MergeError> {
        self.edited_own(name, |value| Edit::put(value, &["mcpServers", name], entry))
    }

    /// The file with this member beside its servers.
    ///
    /// # Errors
    /// As for `with_server`.
    pub fn with_setting(&self, key: &str, value: Value) -> Result<Self, MergeError> {
        self.edited_own(key, |root| Edit::put(root, &[key], value))
    }

    /// The file without this server.
    ///
    /// # Errors
    /// As for `with_server`.
    pub fn without_server(&self, name: &str) -> Result<Self, MergeError> {
        self.edited_own(name, |_| Edit::remove(&["mcpServers", name]))
    }

    /// The file with this server switched on or off.
    ///
    /// # Errors
    /// As for `with_server`.
    pub fn with_enabled(&self, name: &str, enabled: bool) -> Result<Self, MergeError> {
        self.edited_own(name, |value| {
            Edit::put(value, &["mcpServers", name, "enabled"], Value::Bool(enabled))
        })
    }

    /// `edit` gets the value of a file that is ours.
    fn edited_own(
        &self,
        server: &str,
        edit: impl FnOnce(&Value) -> Edit,
    ) -> Result<Self, MergeError> {
        self.edited(server, |document| match document.dialect() {
            Some(dialect) => Err(format!("the file is a config of {}", dialect.name())),
            None => Ok(vec![edit(&document.value())]),
        })
    }

    /// The file after the edits, which concern the entry of a server; `edits` may say why there can be none.
    pub(super) fn edited(
        &self,
        server: &str,
        edits: impl FnOnce(&Document<'_>) -> Result<Vec<Edit>, String>,
    ) -> Result<Self, MergeError> {
        let by_hand = |reason: String| MergeError::Edit { server: server.to_owned(), reason };
        let text = str::from_utf8(&self.text).map_err(|error| by_hand(error.to_string()))?;
        let edits = edits(&Document::parse(text, &self.path)?).map_err(by_hand)?;
        let edited = Format::of(&self.path).edit(text, &edits);
        let edited = edited.map_err(|error| by_hand(error.to_string()))?;
        Ok(Self { text: edited.into_bytes(), ..self.clone() })
    }

    /// The file with more lines in `.env` beside it.
    #[must_use]
    pub fn with_variables(&self, lines: &str) -> Self {
        let mut variables = self.variables.clone();
        if !lines.is_empty() && variables.last().is_some_and(|last| *last != b'\n') {
            variables.push(b'\n');
        }
        variables.extend(lines.as_bytes());
        Self { variables, ..self.clone() }
    }

    fn replace_variables(&self, before: &Self) -> Result<(), ReplaceError> {
        let path = self.path.with_file_name(".env");
        if path.exists() {
            return replace_file(&path, &before.variables, &self.variables);
        }
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        // Secrets are in it.
        let mut file = private_file(&path)?;
        Ok(file.write_all(&self.variables)?)
    }

    /// Puts this in the place of `before`, `.env` included. Whoever trusted that trusts this.
    ///
    /// # Errors
    /// When the file is not as it was read before, or cannot be written.
    pub fn replace(&self, before: &Self, store: Option<&TrustStore>) -> Result<(), MergeError> {
        if self.variables != before.variables {
            self.replace_variables(before)?;
        }
        if before.is_written {
            replace_file(&self.path, &before.text, &self.text)?;
        } else {
            create_file(&self.path, &self.text).map_err(ReplaceError::Write)?;
        }
        if let Some(store) = store
            && before.is_trusted(store)
        {
            self.trust(store)?;
        }
        Ok(())
    }
}

/// Writes a file where there is none.
///
/// # Errors
/// When there is one, or it cannot be written.
pub fn create_file(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    File::create_new(path)?.write_all(text)
}

/// A new file that nobody else may read.
///
/// # Errors
/// When there is one, or it cannot be made.
pub fn private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Puts a text in the place of another, whole or not at all.
///
/// # Errors
/// When the file is not as it was read before, or cannot be written.
pub fn replace_file(path: &Path, before: &[u8], after: &[u8]) -> Result<(), ReplaceError> {
    // A link stays a link.
    let path = path.canonicalize()?;
    let permissions = path.metadata()?.permissions();
    if permissions.readonly() {
        return Err(ReplaceError::ReadOnly(path));
    }
    // Whoever waits for it finds then that the file is another.
    let lock = File::open(&path)?;
    super::lock(&lock)?;
    let directory = path.parent().unwrap_or(&path);
    let mut written = tempfile::NamedTempFile::new_in(directory)?;
    written.write_all(after)?;
    written.as_file().set_permissions(permissions)?;
    written.as_file().sync_all()?;
    if std::fs::read(&path)? != before {
        return Err(ReplaceError::Changed);
    }
    written.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// Why a file is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    #[error("the file was changed meanwhile; say it again")]
    Changed,
    #[error("{0} may not be written")]
    ReadOnly(PathBuf),
    #[error("cannot write the file")]
    Write(#[from] io::Error),
}
