//! The keys of the file and of a server, over all groups.

use std::{collections::BTreeSet, sync::LazyLock};

use super::{
    AccessSettings, DaemonSettings, Limits, ListSettings, ListenSettings, LoadSettings,
    PeopleSettings, RootEntry, ServerEntry, ServerSettings, StoreSettings, TelemetrySettings,
    group::classes, key_class::KeyClass,
};

/// Returns the keys of the file as a whole, with their classes.
fn keys_of_file() -> Vec<(String, KeyClass)> {
    [
        classes::<ListSettings>(),
        classes::<LoadSettings>(),
        classes::<DaemonSettings>(),
        classes::<TelemetrySettings>(),
        classes::<StoreSettings>(),
        classes::<ServerSettings>(),
        classes::<Limits>(),
        classes::<AccessSettings>(),
        classes::<ListenSettings>(),
        classes::<PeopleSettings>(),
        classes::<RootEntry>(),
    ]
    .concat()
}

/// Returns the keys of a server's entry, with their classes.
pub(in crate::config) fn keys_of_server() -> Vec<(String, KeyClass)> {
    [classes::<ServerSettings>(), classes::<ServerEntry>()].concat()
}

/// Returns whether any text below a key of this name may be a secret.
pub(in crate::config) fn is_secret(key: &str) -> bool {
    static SECRET: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let keys = keys_of_file().into_iter().chain(keys_of_server());
        keys.filter(|(_, class)| class.is_secret).map(|(key, _)| key).collect()
    });
    SECRET.contains(key)
}

#[cfg(test)]
mod tests {
    use super::{super::key_class::ChangeEffect, *};
    use crate::config::json_schema;

    #[test]
    fn every_key_of_the_schema_has_a_class() {
        let schema = json_schema();
        let published = |properties: &serde_json::Value| {
            properties.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>()
        };
        let classified = |keys: Vec<(String, KeyClass)>| {
            keys.into_iter().map(|(key, _)| key).collect::<BTreeSet<_>>()
        };
        assert_eq!(published(&schema["properties"]), classified(keys_of_file()));
        let entry = &schema["$defs"]["ServerEntry"]["properties"];
        assert_eq!(published(entry), classified(keys_of_server()));
        assert!(!schema.to_string().contains("x-class"), "the classes are not published");
    }

    /// Returns the names of the keys as the documentation lists them.
    fn listed(keys: impl IntoIterator<Item = String>) -> String {
        keys.into_iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn documentation_lists_the_keys_of_each_class() {
        let of_effect = |keys: Vec<(String, KeyClass)>, effect| {
            let keys = keys.into_iter().filter(move |(_, class)| class.effect == effect);
            listed(keys.map(|(key, _)| key))
        };
        let at_once = of_effect(keys_of_server(), ChangeEffect::AtOnce);
        let at_next_start = of_effect(keys_of_file(), ChangeEffect::AtNextStart);
        let of_each_server = listed(classes::<ServerSettings>().into_iter().map(|(key, _)| key));
        for (page, text, lists) in [
            (
                "docs/design/config.md",
                include_str!("../../../docs/design/config.md"),
                vec![&at_once, &at_next_start, &of_each_server],
            ),
            (
                "docs/reference/config.md",
                include_str!("../../../docs/reference/config.md"),
                vec![&at_once],
            ),
        ] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for list in lists {
                assert!(text.contains(list), "{page} lacks this list: {list}");
            }
        }
    }

    #[test]
    fn keys_that_hold_secrets_are_known() {
        for (key, expected) in [
            ("env", true),
            ("headers", true),
            ("oauth", true),
            ("authTokens", true),
            ("apiTokens", true),
            ("store", true),
            ("storeKeys", true),
            ("listen", false),
            ("command", false),
        ] {
            assert_eq!(is_secret(key), expected, "{key}");
        }
    }
}
