//! The key under which a server's catalog is stored.

use std::path::{Path, PathBuf};

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{
    base::hex,
    config::{Launch, ServerConfig, Transport},
};

/// The identity of a stored catalog: equal for config entries that start the same server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CatalogKey(String);

impl CatalogKey {
    /// Computes the key of a server. Returns `None` if the server's config is invalid.
    ///
    /// The values of variables and headers do not enter the key, and only a hash of everything else
    /// does.
    pub fn of(config: &ServerConfig) -> Option<Self> {
        let decisive = match config.transport.as_ref().ok()? {
            Transport::Stdio(launch) => json!({
                "command": launch.command,
                "args": launch.args,
                "cwd": decisive_directory(launch, || launch.context.directory()),
                "env": launch.env.keys().collect::<Vec<_>>(),
                "inheritEnv": launch.inherit_env,
            }),
            Transport::Http(remote) => json!({
                "url": remote.url.as_str(),
                "headers": remote.headers.keys().collect::<Vec<_>>(),
            }),
        };
        let protocol = config.connecting.protocol.name();
        let digest = Sha256::digest(format!("{protocol} {decisive}"));
        Some(Self(hex(&digest[..16])))
    }

    /// Returns the name of a stored value about the server.
    pub(super) fn name(&self, extension: &str) -> String {
        format!("{}.{extension}", self.0)
    }
}

/// Returns the working directory of the server if it affects which program runs: `./server`, or
/// `server.py` if such a file exists, is another program in another directory.
fn decisive_directory(launch: &Launch, here: impl FnOnce() -> Option<PathBuf>) -> Option<PathBuf> {
    if launch.cwd.is_some() {
        return launch.cwd.clone();
    }
    let here = here()?;
    let is_relative = |word: &str| {
        matches!(word, "." | "..") || word.starts_with("./") || word.starts_with("../")
    };
    let names_file =
        |word: &str| !word.is_empty() && Path::new(word).is_relative() && here.join(word).exists();
    let mut words = launch.args.iter().chain([&launch.command]);
    words.any(|word| is_relative(word) || names_file(word)).then_some(here)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn config(command: &str, env: &[(&str, &str)]) -> ServerConfig {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let launch = Launch { env: env.collect(), ..Launch::new(command, Arc::default()) };
        ServerConfig::new("s", Transport::Stdio(launch))
    }

    #[test]
    fn the_key_contains_names_of_variables_but_not_their_values() {
        let key = |command, env: &[(&str, &str)]| CatalogKey::of(&config(command, env)).unwrap();
        assert_eq!(key("a", &[("TOKEN", "x")]), key("a", &[("TOKEN", "y")]));
        assert_ne!(key("a", &[("TOKEN", "x")]), key("a", &[]));
        assert_ne!(key("a", &[]), key("b", &[]));
    }

    #[test]
    fn the_directory_matters_if_an_argument_is_a_file_in_it() {
        let here = tempfile::tempdir().unwrap();
        std::fs::write(here.path().join("server.py"), "").unwrap();
        let counts = |argument: &str| {
            let mut config = config("python3", &[]);
            let Ok(Transport::Stdio(launch)) = &mut config.transport else { panic!() };
            launch.args.push(argument.to_owned());
            decisive_directory(launch, || Some(here.path().to_owned())).is_some()
        };
        for (argument, expected) in [
            ("server.py", true),
            ("./other.py", true),
            ("..", true),
            ("other.py", false),
            ("/server.py", false),
            ("-m", false),
            ("", false),
        ] {
            assert_eq!(counts(argument), expected, "{argument:?}");
        }
    }

    #[test]
    fn catalog_of_0_1_0_is_found() {
        let key = CatalogKey::of(&config("golden-server", &[])).unwrap();
        assert_eq!(key.name("catalog"), "de66ddb515dbfe4cc53ecc031eeee45f.catalog");
    }
}
