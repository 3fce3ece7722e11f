//! Translates a server's handshake result for a host that sees only this server.

use serde_json::json;

use super::{Era, Greeting, Meta, adapt, extension, handshake, method, supported_versions};
use crate::wire::{Raw, edit};

/// Returns the result of a host's `initialize` or `server/discover` as the server itself gave it.
///
/// `version` is the protocol version that the host requested. Returns `None` if the server's result
/// was not stored.
pub(crate) fn introduced(greeting: &Greeting, host_era: Era, version: &str) -> Option<Raw> {
    let answer = greeting.answer.as_ref()?;
    let versions = Raw::encode(&supported_versions());
    let answered = Raw::encode(handshake::answered_version(version));
    Some(match (greeting.era, host_era) {
        (Era::Legacy, Era::Legacy) => edit::set(answer, "protocolVersion", &answered),
        (Era::Modern, Era::Modern) => edit::set(answer, "supportedVersions", &versions),
        (Era::Modern, Era::Legacy) => {
            let [capabilities, instructions, meta] =
                edit::get_each(answer, ["capabilities", "instructions", "_meta"]);
            let info = meta.and_then(|meta| edit::get(&meta, Meta::SERVER_INFO));
            let info = info.unwrap_or_else(|| Raw::encode(&super::implementation()));
            let capabilities = capabilities.unwrap_or_else(Raw::empty_object);
            let capabilities = extension::without(&capabilities, extension::TASKS);
            let mut members = vec![
                ("protocolVersion", &answered),
                ("capabilities", &capabilities),
                ("serverInfo", &info),
            ];
            members.extend(instructions.as_ref().map(|text| ("instructions", text)));
            edit::set_each(&Raw::empty_object(), &members)
        }
        (Era::Legacy, Era::Modern) => {
            let [capabilities, instructions, info] =
                edit::get_each(answer, ["capabilities", "instructions", "serverInfo"]);
            let capabilities = capabilities.unwrap_or_else(Raw::empty_object);
            let capabilities = edit::without(&capabilities, &["tasks"]);
            let mut members =
                vec![("supportedVersions", &versions), ("capabilities", &capabilities)];
            members.extend(instructions.as_ref().map(|text| ("instructions", text)));
            let meta =
                info.map(|info| edit::set(&Raw::encode(&json!({})), Meta::SERVER_INFO, &info));
            members.extend(meta.as_ref().map(|meta| ("_meta", meta)));
            let result = edit::set_each(&Raw::empty_object(), &members);
            adapt::own_result(method::SERVER_DISCOVER, Era::Modern, result)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{DiscoverAnswer, read_discover, read_initialize};

    const LEGACY: &str = concat!(
        r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"tasks":{}},"#,
        r#""serverInfo":{"name":"s","x":1e2},"instructions":"i","new":1}"#,
    );
    const MODERN: &str = concat!(
        r#"{"supportedVersions":["2026-07-28"],"#,
        r#""capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"#,
        r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","x":1e2}},"#,
        r#""resultType":"complete","ttlMs":5,"new":1}"#,
    );

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    fn greeting(text: &str) -> Greeting {
        match read_discover(&Ok(raw(text))) {
            DiscoverAnswer::Modern(greeting) => greeting,
            _ => read_initialize(&raw(text)).unwrap(),
        }
    }

    #[test]
    fn a_host_of_the_same_era_gets_the_result_with_other_versions() {
        let result = introduced(&greeting(LEGACY), Era::Legacy, "2025-11-25").unwrap();
        assert_eq!(result.to_string(), LEGACY.replace("2025-06-18", "2025-11-25"));
        let result = introduced(&greeting(MODERN), Era::Modern, "2026-07-28").unwrap();
        assert_eq!(
            edit::without(&result, &["supportedVersions"]),
            edit::without(&raw(MODERN), &["supportedVersions"])
        );
    }

    #[test]
    fn a_host_of_the_other_era_gets_a_translated_result() {
        let result = introduced(&greeting(MODERN), Era::Legacy, "2025-11-25").unwrap();
        let expected = concat!(
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"extensions":{}},"#,
            r#""serverInfo":{"name":"s","x":1e2}}"#,
        );
        assert_eq!(result.to_string(), expected);
        let result = introduced(&greeting(LEGACY), Era::Modern, "2026-07-28").unwrap().to_string();
        let members = concat!(
            r#""capabilities":{"tools":{}},"instructions":"i","#,
            r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","x":1e2}},"#,
            r#""resultType":"complete","cacheScope":"private","ttlMs":0}"#,
        );
        assert!(result.ends_with(members), "{result}");
    }

    #[test]
    fn an_overlong_result_is_not_stored() {
        let long = LEGACY.replace(r#""new":1"#, &format!(r#""new":"{}""#, "x".repeat(100_000)));
        assert_eq!(introduced(&greeting(&long), Era::Legacy, "2025-11-25"), None);
    }
}
