//! The handshake of both eras: the identity and capabilities that dormouse sends, and those that it
//! reads.

use rmcp::model::{ErrorCode, ProtocolVersion};
use serde_json::{Value, json};

use super::{
    ClientIdentity, Era, LEGACY_VERSIONS, MODERN_VERSION, Meta, adapt, era::MAX_CAPABILITIES_BYTES,
    error, extension, implementation, supported_versions,
};
use crate::wire::{Outcome, Raw, edit};

/// Returns the capabilities that dormouse declares to every host from the start. A server that is
/// not loaded yet may have anything, so all features are declared (see
/// `docs/design/surfaces.md`).
pub(crate) fn offered_capabilities() -> Value {
    json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
    })
}

/// Returns the capabilities that dormouse declares in addition to a host of several servers, in the
/// form of the requested revision.
pub(crate) fn routed_capabilities(requested: &str) -> Value {
    if requested == MODERN_VERSION.as_str() {
        let skills = json!({"directoryRead": true});
        return json!({"extensions": {extension::TASKS: {}, extension::SKILLS: skills}});
    }
    let is_older = LEGACY_VERSIONS.iter().any(|known| known.as_str() == requested)
        && requested != ProtocolVersion::LATEST_WITH_INITIALIZE.as_str();
    if is_older {
        return json!({});
    }
    json!({"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}})
}

/// Returns the version with which dormouse answers an `initialize`. An unknown version is answered
/// with the newest version that has a handshake (2025-11-25, basic/lifecycle, Version Negotiation).
pub(super) fn answered_version(requested: &str) -> &'static str {
    LEGACY_VERSIONS
        .iter()
        .find(|version| version.as_str() == requested)
        .unwrap_or(&ProtocolVersion::LATEST_WITH_INITIALIZE)
        .as_str()
}

/// Returns the result of `initialize`.
pub(crate) fn answer_initialize(requested: &str, capabilities: &Raw, instructions: &str) -> Raw {
    let version = answered_version(requested);
    let members = json!({"protocolVersion": version, "serverInfo": implementation()});
    with_capabilities(&Raw::encode(&members), capabilities, instructions)
}

/// Returns the result of `server/discover`.
pub(crate) fn answer_discover(capabilities: &Raw, instructions: &str) -> Raw {
    let members = json!({"supportedVersions": supported_versions()});
    with_capabilities(&Raw::encode(&members), capabilities, instructions)
}

/// Adds the capabilities, and the instructions unless they are empty.
fn with_capabilities(result: &Raw, capabilities: &Raw, instructions: &str) -> Raw {
    let result = edit::set(result, "capabilities", capabilities);
    if instructions.is_empty() {
        return result;
    }
    edit::set(&result, "instructions", &Raw::encode(instructions))
}

/// Returns the `params` of dormouse's own `initialize`.
///
/// `info` is the `clientInfo` of the host if the connection serves that host alone.
pub(crate) fn initialize_params(capabilities: &Raw, info: Option<&Raw>) -> Raw {
    let members = json!({"protocolVersion": ProtocolVersion::LATEST_WITH_INITIALIZE.as_str()});
    let own = Raw::encode(&implementation());
    let said = [("capabilities", capabilities), ("clientInfo", info.unwrap_or(&own))];
    edit::set_each(&Raw::encode(&members), &said)
}

/// Returns the `params` of dormouse's own `server/discover`. `info` is the same as in
/// [`initialize_params`].
pub(crate) fn discover_params(capabilities: &Raw, info: Option<Raw>) -> Raw {
    let us =
        ClientIdentity { capabilities: capabilities.clone(), info, ..ClientIdentity::ourselves() };
    adapt::with_modern_meta(&us, &Raw::empty_object())
}

/// The answer of a server to the handshake.
#[derive(Clone, Debug, PartialEq)]
pub struct Greeting {
    pub era: Era,
    pub version: String,
    pub capabilities: Raw,
    pub instructions: Option<String>,
    /// The server's own description, or else its title.
    pub about: Option<String>,
    /// The whole result as the server sent it; `None` if it is too long, or was not stored.
    pub answer: Option<Raw>,
}

/// Maximum length of a handshake result that is stored as it was sent, in bytes.
const MAX_RESULT_BYTES: usize = 64 * 1024;

impl Greeting {
    /// Returns whether the server declared the capability `name`.
    pub fn offers(&self, name: &str) -> bool {
        edit::get(&self.capabilities, name).is_some()
    }

    /// Returns whether the server declared `name` with the flag `detail`, as in
    /// `resources.subscribe`.
    pub fn offers_detail(&self, name: &str, detail: &str) -> bool {
        edit::get(&self.capabilities, name)
            .and_then(|capability| edit::get(&capability, detail))
            .is_some_and(|flag| flag.as_bytes() == b"true")
    }
}

/// Reads the result of dormouse's `initialize`.
///
/// # Errors
/// Returns a sentence if the result is not an `InitializeResult`, or names a version that dormouse
/// does not speak.
pub(crate) fn read_initialize(result: &Raw) -> Result<Greeting, String> {
    let version = edit::get_str(result, "protocolVersion")
        .ok_or("the answer to initialize has no protocolVersion")?;
    if !LEGACY_VERSIONS.iter().any(|known| known.as_str() == version) {
        return Err(format!(
            "the server speaks protocol version {version:?}, which dormouse does not support"
        ));
    }
    Ok(Greeting {
        era: Era::Legacy,
        version,
        capabilities: capabilities(result)?,
        instructions: edit::get_str(result, "instructions"),
        about: edit::get(result, "serverInfo").and_then(|info| about(&info)),
        answer: detached_answer(result),
    })
}

/// The conclusion from a server's answer to the `server/discover` probe.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DiscoverAnswer {
    Modern(Greeting),
    /// The server has a handshake: continue with `initialize`.
    Legacy,
    /// The server is modern, but shares no version with dormouse, or its capabilities are too long.
    Unusable(String),
}

/// Reads the answer to dormouse's `server/discover`. Only a recognized modern error keeps the
/// server modern; any other error means legacy (2026-07-28, basic/versioning, Backward
/// Compatibility).
pub(crate) fn read_discover(answer: &Outcome) -> DiscoverAnswer {
    match answer {
        Ok(result) => read_discover_result(result),
        Err(problem) if error::has_code(problem, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION) => {
            let data = edit::get(problem, "data").unwrap_or_else(Raw::empty_object);
            judge_versions(&strings(&data, "supported"), || {
                DiscoverAnswer::Unusable(error::message(problem))
            })
        }
        Err(_) => DiscoverAnswer::Legacy,
    }
}

/// Returns whether a server rejects dormouse's version but lists the same version as supported.
/// Such a server must be asked once more (2026-07-28, schema, `UnsupportedProtocolVersionError`).
pub(crate) fn invites_retry(answer: &Outcome) -> bool {
    let Err(problem) = answer else { return false };
    let data = edit::get(problem, "data").unwrap_or_else(Raw::empty_object);
    error::has_code(problem, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION)
        && strings(&data, "supported").iter().any(|version| version == MODERN_VERSION.as_str())
}

/// Returns whether a server answers `initialize` with the modern version, which has no
/// `initialize`.
pub(crate) fn is_modern_initialize(result: &Raw) -> bool {
    edit::get_str(result, "protocolVersion").as_deref() == Some(MODERN_VERSION.as_str())
}

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
        answer: detached_answer(result),
    })
}

fn detached_answer(result: &Raw) -> Option<Raw> {
    (result.len() <= MAX_RESULT_BYTES).then(|| result.detached())
}

fn about(info: &Raw) -> Option<String> {
    edit::get_str(info, "description").or_else(|| edit::get_str(info, "title"))
}

/// Returns a detached copy, since a greeting lives as long as the catalog.
fn capabilities(result: &Raw) -> Result<Raw, String> {
    let capabilities = edit::get(result, "capabilities").unwrap_or_else(Raw::empty_object);
    if capabilities.len() > MAX_CAPABILITIES_BYTES {
        return Err(format!("the capabilities have more than {MAX_CAPABILITIES_BYTES} bytes"));
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
    fn tasks_are_offered_in_the_form_of_the_revision() {
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
    fn unknown_versions_are_answered_with_the_newest_legacy_one() {
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
    fn capabilities_pass_verbatim() {
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
        let answer = read_discover(&Ok(raw(modern)));
        assert!(matches!(answer, DiscoverAnswer::Modern(greeting) if greeting.offers("tools")));
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
    fn a_server_of_an_unknown_version_is_refused() {
        let error = read_initialize(&raw(r#"{"protocolVersion":"1.0"}"#)).unwrap_err();
        insta::assert_snapshot!(error);
    }
}
