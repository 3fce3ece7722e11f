//! A script that a host wants to run.

use std::path::PathBuf;

use crate::wire::Raw;

/// Maximum length of a script, in bytes.
pub(crate) const MAX_CODE_BYTES: usize = 256 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedScript {
    /// The tool that runs the script.
    pub name: String,
    pub source: ScriptSource,
    /// The value of the variable `input`.
    pub input: Raw,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScriptSource {
    /// The text of the script.
    Text(String),
    /// The file with the text.
    File(PathBuf),
}
