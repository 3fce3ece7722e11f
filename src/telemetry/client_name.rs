//! The names of hosts in records.

use crate::{
    base::shortened,
    protocol::ClientIdentity,
    wire::{Raw, edit},
};

/// Maximum length of a name that others have chosen, in characters.
pub(super) const MAX_NAME_CHARS: usize = 200;

/// Maximum size of a description that is kept to be compared with the next one, in bytes.
const MAX_KEPT_BYTES: usize = 4096;

/// Returns the name and the version that a host gives itself.
pub(crate) fn client_name(client: &ClientIdentity) -> Option<String> {
    let [name, version] = edit::get_each(client.info.as_ref()?, ["name", "version"]);
    let name = name?.read::<String>().ok()?;
    let version = version.and_then(|version| version.read::<String>().ok()).unwrap_or_default();
    let both = format!("{name} {version}");
    Some(shortened(both.trim_end(), MAX_NAME_CHARS))
}

/// The name that was read last. Requests that follow each other are mostly those of one host, and a
/// modern host describes itself in each.
#[derive(Default)]
pub(super) struct LastClientName {
    info: Option<Raw>,
    name: Option<String>,
}

impl LastClientName {
    /// Returns what [`client_name`] returns.
    pub(super) fn of(&mut self, client: &ClientIdentity) -> Option<&str> {
        if client.info.is_none() || self.info != client.info {
            let kept = client.info.as_ref().filter(|info| info.len() <= MAX_KEPT_BYTES);
            self.info = kept.map(Raw::detached);
            self.name = client_name(client);
        }
        self.name.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(info: &str) -> ClientIdentity {
        let info = Some(Raw::parse(info.to_owned()).unwrap());
        ClientIdentity { info, ..ClientIdentity::ourselves() }
    }

    #[test]
    fn client_is_named_with_its_version() {
        for (info, name) in [
            (r#"{"name":"a","version":"1"}"#, Some("a 1")),
            (r#"{"name":"a"}"#, Some("a")),
            (r#"{"version":"1"}"#, None),
            (r#"{"name":7}"#, None),
        ] {
            assert_eq!(client_name(&client(info)).as_deref(), name);
        }
    }

    #[test]
    fn last_name_is_that_of_the_client_in_question() {
        let mut last = LastClientName::default();
        let nameless = ClientIdentity { info: None, ..ClientIdentity::ourselves() };
        let long = client(&format!(r#"{{"name":"c","more":"{}"}}"#, "x".repeat(MAX_KEPT_BYTES)));
        for _ in 0..2 {
            assert_eq!(last.of(&long), Some("c"));
            assert_eq!(last.of(&nameless), None);
            assert_eq!(last.of(&client(r#"{"name":"a"}"#)), Some("a"));
            assert_eq!(last.of(&client(r#"{"name":"b"}"#)), Some("b"));
            assert_eq!(last.of(&client(r#"{"name":"b"}"#)), Some("b"));
            assert_eq!(last.of(&nameless), None);
        }
    }
}
