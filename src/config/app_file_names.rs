//! The names of files that belong to AI tools.

use std::path::Path;

/// The names of files in which AI tools keep their servers. Such a file is used only if it is named
/// by the user, and is never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AppFileNames(pub(crate) &'static [&'static str]);

impl AppFileNames {
    pub(crate) fn include(self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| self.0.contains(&name))
    }
}
