//! What both sides say of themselves when they meet, in either era.

use rmcp::model::{ErrorCode, ProtocolVersion};
use serde_json::{Value, json};

use super::{
    Client, Era, LEGACY_VERSIONS, MODERN_VERSION, Meta, adapt, error, extension, supported_versions,
};
use crate::wire::{Outcome, Raw, edit};

/// Our name and version, as `serverInfo` to hosts and as `clientInfo` to servers.
pub fn implementation() -> Value {
    json!({"name": "dormouse", "title": "dormouse", "version": env!("CARGO_PKG_VERSION")})
}

/// What dormouse offers to every host from the start, since a server that is not loaded yet may
/// have anything (DESIGN.md section 4, Capabilities).
pub fn offered_capabilities() -> Value {
    json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
    })
}

/// What dormouse offers in addition to a host of several servers, in the words of the revision that the host asks for.
pub fn routed_capabilities(requested: &str) -> Value {
    if requested == MODERN_VERSION.as_str() {
        return json!({"extensions": {extension::TASKS: {}, extension::SKILLS: {"directoryRead": true}}});
    }
    let is_older = LEGACY_VERSIONS.iter().any(|known| known.as_str() == requested)
        && requested != ProtocolVersion::LATEST_WITH_INITIALIZE.as_str();
    if is_older {
        return json!({});
    }
    json!({"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}})
}

/// The version that answers an `initialize`. One that we do not know is answered with the newest that has a
/// handshake (2025-11-25, basic/lifecycle, Version Negotiation).
pub(super) fn answered_version(requested: &str) -> &'static str {
    LEGACY_VERSIONS
        .iter()
        .find(|version| version.as_str() == requested)
        .unwrap_or(&ProtocolVersion::LATEST_WITH_INITIALIZE)
        .as_str()
}

/// The result of `initialize`.
pub fn answer_initialize(requested: &str, capabilities: &Raw, instructions: &str) -> Raw {
    let version = answered_version(requested);
    let members = json!({"protocolVersion": version, "serverInfo": implementation()});
    with_said(&Raw::encode(&members), capabilities, instructions)
}

/// The result of `server/discover`.
pub fn answer_discover(capabilities: &Raw, instructions: &str) -> Raw {
    let members = json!({"supportedVersions": supported_versions()});
    with_said(&Raw::encode(&members), capabilities, instructions)
}

/// Adds what is offered, and how to use it where there is anything to say.
fn with_said(result: &Raw, capabilities: &Raw, instructions: &str) -> Raw {
    let result = edit::set(result, "capabilities", capabilities);
    if instructions.is_empty() {
        return result;
    }
    edit::set(&result, "instructions", &Raw::encode(instructions))
}

/// The `params` of our own `initialize`. `info`: the `clientInfo` of the host for which the connection is made, where it
/// is made for one alone.
pub fn initialize_params(capabilities: &Raw, info: Option<&Raw>) -> Raw {
    let members = json!({"protocolVersion": ProtocolVersion::LATEST_WITH_INITIALIZE.as_str()});
    let own = Raw::encode(&implementation());
    let said = [("capabilities", capabilities), ("clientInfo", info.unwrap_or(&own))];
    edit::set_each(&Raw::encode(&members), &said)
}

/// The `_meta` members that every modern request of ours carries.
pub fn client_meta(client: &Client) -> [(&'static str, Raw); 3] {
    let info = client.info.clone().unwrap_or_else(|| Raw::encode(&implementation()));
    [
        (Meta::PROTOCOL_VERSION, Raw::encode(MODERN_VERSION.as_str())),
        (Meta::CLIENT_INFO, info),
        (Meta::CLIENT_CAPABILITIES, client.capabilities.clone()),
    ]
}

/// The `params` of our own `server/discover`. `info`: as in `initialize_params`.
pub fn discover_params(capabilities: &Raw, info: Option<Raw>) -> Raw {
    let us = Client { capabilities: capabilities.clone(), info, ..Client::ourselves() };
    adapt::with_modern_meta(&us, &Raw::empty_object())
}

/// What a server said of itself in the handshake.
#[derive(Clone, Debug, PartialEq)]
pub struct Greeting {
    pub era: Era,
    pub version: String,
    pub capabilities: Raw,
    pub instructions: Option<String>,
    /// What it says it is: its description, or its title.
    pub about: Option<String>,
    /// The whole result, as it came; `None` where it is long, or was not kept.
    pub said: Option<Raw>,
}

/// Bytes of a handshake that is kept as it came.
const MAX_SAID: usize = 64 * 1024;
/// Bytes of the capabilities of a server or a host: they are read and put together for each host.
pub(super) const MAX_CAPABILITIES: usize = 64 * 1024;

impl Greeting {
    /// Whether the server declared the capability `name`.
    pub fn offers(&self, name: &str) -> bool {
        edit::get(&self.capabilities, name).is_some()
    }

    /// Whether the server declared `name` with the flag `detail`, as in `resources.subscribe`.
    pub fn offers_detail(&self, name: &str, detail: &str) -> bool {
        edit::get(&self.capabilities, name)
            .and_then(|capability| edit::get(&capability, detail))
            .is_some_and(|flag| flag.as_bytes() == b"true")
    }
}

/// Reads the result of our `initialize`.
///
/// # Errors
/// A sentence, when the result is no `InitializeResult` or names a version that we do not speak.
pub fn read_initialize(result: &Raw) -> Result<Greeting, String> {
    let version = edit::get_str(result, "protocolVersion")
        .ok_or("the answer to initialize has no protocolVersion")?;
    if !LEGACY_VERSIONS.iter().any(|known| known.as_str() == version) {
        return Err(format!("it speaks protocol version {version:?}, which dormouse does not"));
    }
    Ok(Greeting {
        era: Era::Legacy,
        version,
        capabilities: capabilities(result)?,
        instructions: edit::get_str(result, "instructions"),
        about: edit::get(result, "serverInfo").and_then(|info| about(&info)),
        said: said(result),
    })
}

/// What an answer to the `server/discover` probe tells of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum DiscoverAnswer {
    Modern(Greeting),
    /// It has a handshake: go on with `initialize`.
    Legacy,
    /// It is modern, and we have no version in common, or it says too much.
    Unusable(String),
}

/// Reads the answer to our `server/discover` (2026-07-28, basic/versioning, Backward Compatibility:
/// only a recognised modern error keeps the server modern, any other means legacy).
pub fn read_discover(answer: &Outcome) -> DiscoverAnswer {
    match answer {
        Ok(result) => read_discover_result(result),
        Err(problem) if error::code(problem) == i64::from(UNSUPPORTED) => {
            let data = edit::get(problem, "data").unwrap_or_else(Raw::empty_object);
            judge_versions(&strings(&data, "supported"), || {
                DiscoverAnswer::Unusable(error::message(problem))
            })
        }
        Err(_) => DiscoverAnswer::Legacy,
    }
}

/// Whether a server that refuses our version names it among those that it speaks: it is to be asked once more
/// (2026-07-28, schema, `UnsupportedProtocolVersionError`).
pub fn invites_retry(answer: &Outcome) -> bool {
    let Err(problem) = answer else { return false };
    let data = edit::get(problem, "data").unwrap_or_else(Raw::empty_object);
    error::code(problem) == i64::from(UNSUPPORTED)
        && strings(&data, "supported").iter().any(|version| version == MODERN_VERSION.as_str())
}

/// Whether a server answers `initialize` with a version that has none.
pub fn is_modern_initialize(result: &Raw) -> bool {
    edit::get_str(result, "protocolVersion").as_deref() == Some(MODERN_VERSION.as_str())
}

const UNSUPPORTED: i32 = ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0;

fn read_discover_result(result: &Raw) -> DiscoverAnswer {
    let versions = strings(result, "supportedVersions");
    if !versions.iter().any(|version| version == MODERN_VERSION.as_str()) {
        return judge_versions(&versions, || DiscoverAnswer::Legacy);
    }
    let capabilities = match capabilities(result) {
        Ok(capabilities) => capabilities,
        Err(why) => return DiscoverAnswer::Unusable(why),
    };
    DiscoverAnswer::Modern(Greeting {
        era: Era::Modern,
        version: MODERN_VERSION.to_string(),
        capabilities,
        instructions: edit::get_str(result, "instructions"),
        about: edit::get(result, "_meta")
            .and_then(|meta| edit::get(&meta, Meta::SERVER_INFO))
            .and_then(|info| about(&info)),
        said: said(result),
    })
}

fn said(result: &Raw) -> Option<Raw> {
    (result.len() <= MAX_SAID).then(|| result.detached())
}

fn about(info: &Raw) -> Option<String> {
    edit::get_str(info, "description").or_else(|| edit::get_str(info, "title"))
}

/// Detached, since a greeting lives as long as the catalog.
fn capabilities(result: &Raw) -> Result<Raw, String> {
    let capabilities = edit::get(result, "capabilities").unwrap_or_else(Raw::empty_object);
    if capabilities.len() > MAX_CAPABILITIES {
        return Err(format!("its capabilities have more than {MAX_CAPABILITIES} bytes"));
    }
    Ok(capabilities.detached())
}

fn judge_versions(offered: &[String], none: impl FnOnce() -> DiscoverAnswer) -> DiscoverAnswer {
    let has_handshake =
        |version: &String| LEGACY_VERSIONS.iter().any(|known| known.as_str() == version);
    if offered.iter().any(has_handshake) { DiscoverAnswer::Legacy } else { none() }
}

fn strings(object: &Raw, key: &str) -> Vec<String> {
    edit::get(object, key).and_then(|list| list.read().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn tasks_are_offered_in_the_words_of_the_revision() {
        for (version, expected) in [
            ("2024-11-05", None),
            ("2025-06-18", None),
            ("2025-11-25", Some("tasks")),
            ("2031-01-01", Some("tasks")),
            ("2026-07-28", Some("extensions")),
        ] {
            let offered = routed_capabilities(version);
            assert_eq!(offered.as_object().unwrap().keys().next().map(String::as_str), expected);
        }
    }

    #[test]
    fn every_legacy_version_is_answered_with_itself_and_others_with_the_newest() {
        for (requested, answered) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("1.0", "2025-11-25"),
        ] {
            let result = answer_initialize(requested, &Raw::empty_object(), "");
            assert_eq!(edit::get_str(&result, "protocolVersion").unwrap(), answered);
        }
    }

    #[test]
    fn capabilities_that_no_value_can_hold_pass_verbatim() {
        let nested = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for text in [r#"{"n":1e400}"#, r#"{"s":"\ud800"}"#, &format!(r#"{{"d":{nested}}}"#)] {
            for said in [
                answer_initialize("2025-11-25", &raw(text), ""),
                answer_discover(&raw(text), ""),
                initialize_params(&raw(text), None),
            ] {
                assert_eq!(edit::get(&said, "capabilities"), Some(raw(text)));
            }
        }
    }

    #[test]
    fn the_probe_tells_the_eras_apart() {
        let modern = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#;
        assert!(
            matches!(read_discover(&Ok(raw(modern))), DiscoverAnswer::Modern(g) if g.offers("tools"))
        );
        for legacy in [
            Ok(r#"{"supportedVersions":["2025-11-25"]}"#),
            Ok(r#"{"anything":"else"}"#),
            Err(r#"{"code":-32601,"message":"Method not found"}"#),
            Err(r#"{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}"#),
        ] {
            let answer = legacy.map(raw).map_err(raw);
            assert_eq!(read_discover(&answer), DiscoverAnswer::Legacy, "{answer:?}");
        }
        let stranger = raw(r#"{"code":-32022,"message":"no","data":{"supported":["2031-01-01"]}}"#);
        assert_eq!(read_discover(&Err(stranger)), DiscoverAnswer::Unusable("no".to_owned()));
    }

    #[test]
    fn a_server_of_an_unknown_version_is_refused_with_the_version() {
        let error = read_initialize(&raw(r#"{"protocolVersion":"1.0"}"#)).unwrap_err();
        insta::assert_snapshot!(error);
    }
}
