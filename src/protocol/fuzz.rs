//! The laws of this layer for bytes from outside (see `crate::fuzz`).

use std::collections::HashSet;

use bytes::Bytes;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use super::{
    ClientIdentity, DiscoverAnswer, Era, Greeting, LEGACY_VERSIONS, LogLevel, MODERN_VERSION,
    adapt, answer_discover, answer_initialize, discover_params, error, extension,
    initialize_params, introduced, invites_retry, is_modern_initialize, method, read_discover,
    read_initialize, request_headers, routed_capabilities, task,
};
use crate::{
    base::{Choices, FuzzInput},
    wire::{Raw, edit},
};

/// Methods whose messages differ between the eras, and one whose messages do not.
const METHODS: [&str; 7] = [
    method::TOOLS_CALL,
    method::RESOURCES_READ,
    method::TOOLS_LIST,
    method::SERVER_DISCOVER,
    method::ELICITATION_CREATE,
    method::TASKS_GET,
    method::PING,
];

/// A task id that no input contains by chance.
const OTHER_TASK: &str = "task-of-another-name";

/// A message of either era is translated, and only the members that differ between the eras change.
///
/// Arguments: the method and the log level; a text for names and headers; a host's capabilities.
pub(crate) fn eras(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let mut choices = input.choices();
    let text = input.text_line();
    let capabilities = Raw::parse(Bytes::copy_from_slice(input.line()));
    let capabilities = capabilities.unwrap_or_else(|_| Raw::empty_object());
    let Ok(document) = Raw::parse(Bytes::copy_from_slice(input.rest())) else { return };
    let method = choices.one_of(&METHODS);
    check_params(&mut choices, &capabilities, &document);
    check_result(method, &document);
    check_error(method, &document);
    check_server_handshake(&document, &text);
    check_own_handshake(&capabilities, &document, &text);
    check_extensions(&capabilities, &text);
    check_header_value(&text);
    check_header_parameters(&document, &capabilities);
    // Any text is accepted here.
    let _ = request_headers::decode(&text);
    let _ = request_headers::subject(method, &document);
    check_task(&document, &text);
}

/// Returns the members of an object except for those with these keys.
fn others(object: &Raw, keys: &[&str]) -> Vec<(String, Raw)> {
    let mut members = edit::entries(object);
    members.retain(|(name, _)| !keys.contains(&name.as_str()));
    members
}

fn check_json(raw: &Raw) {
    let parsed = Raw::parse(Bytes::copy_from_slice(raw.as_bytes()));
    assert_eq!(parsed.ok().as_ref(), Some(raw), "is not JSON");
}

/// A legacy host's request gets the metadata of a modern one, and loses it on the way back.
fn check_params(choices: &mut Choices<'_>, capabilities: &Raw, params: &Raw) {
    let levels = [LogLevel::Debug, LogLevel::Notice, LogLevel::Emergency];
    let level = choices.one_of(&levels);
    let legacy =
        ClientIdentity { capabilities: capabilities.clone(), ..ClientIdentity::ourselves() };
    let sent = adapt::params(&legacy, Era::Modern, Some(level), Some(params.clone()));
    let sent = sent.expect("a modern request has params");
    check_json(&sent);
    let meta = edit::get(&sent, "_meta").expect("a modern request has metadata");
    let client = ClientIdentity::from_meta(&meta).expect("a modern request has a version");
    assert_eq!((client.era, client.version.as_str()), (Era::Modern, MODERN_VERSION.as_str()));
    assert_eq!(client.capabilities, legacy.capabilities_for(Era::Modern));
    assert_eq!(LogLevel::of_meta(&meta), Some(level));
    assert_eq!(others(&sent, &["_meta"]), others(params, &["_meta"]));
    let back = adapt::params(&client, Era::Legacy, None, Some(sent)).expect("there were params");
    check_json(&back);
    assert_eq!(others(&back, &["_meta"]), others(params, &["_meta"]));
    if let Some(meta) = edit::get(&back, "_meta") {
        assert_eq!(ClientIdentity::from_meta(&meta), None);
        assert_eq!(LogLevel::of_meta(&meta), None);
    } else {
        assert!(edit::get(params, "_meta").is_none_or(|meta| edit::entries(&meta).is_empty()));
    }
}

/// The members of 2026-07-28 are added to a legacy server's result and removed from a modern one's.
fn check_result(method: &str, result: &Raw) {
    const ADDED: [&str; 3] = ["resultType", "cacheScope", "ttlMs"];
    let translate = |from: Era, to: Era, result: &Raw| {
        let result = adapt::outcome(method, from, to, Ok(result.clone()));
        let result = result.expect("a result stays a result");
        check_json(&result);
        result
    };
    let modern = translate(Era::Legacy, Era::Modern, result);
    let legacy = translate(Era::Modern, Era::Legacy, result);
    if !result.is_object() {
        assert_eq!((&modern, &legacy), (result, result));
        return;
    }
    assert!(edit::get(&modern, "resultType").is_some());
    let all = edit::entries(result);
    assert_eq!(edit::entries(&modern)[..all.len()], all);
    if adapt::is_input_required(result) {
        assert_eq!(legacy, *result);
    } else {
        assert_eq!(edit::get(&legacy, "resultType"), None);
        assert_eq!(others(&legacy, &ADDED), others(result, &ADDED));
        let again =
            translate(Era::Modern, Era::Legacy, &translate(Era::Legacy, Era::Modern, result));
        assert_eq!(others(&again, &ADDED), others(result, &ADDED));
    }
    let own = adapt::own_result(method, Era::Modern, result.clone());
    check_json(&own);
    assert!(edit::get(&own, "_meta").is_some());
    let asked = adapt::question(method, result);
    check_json(&asked);
    assert_eq!(edit::entries(&asked)[..all.len()], all);
    assert_eq!(others(&adapt::input_response(result), &[]), others(result, &["resultType"]));
}

/// Only the code of an error differs between the eras.
fn check_error(method: &str, problem: &Raw) {
    let code = error::code(problem);
    // No error can have no message.
    let _ = error::message(problem);
    for (from, to) in [(Era::Legacy, Era::Modern), (Era::Modern, Era::Legacy)] {
        let translated = adapt::outcome(method, from, to, Err(problem.clone()));
        let translated = translated.expect_err("an error stays an error");
        check_json(&translated);
        assert_eq!(others(&translated, &["code"]), others(problem, &["code"]));
        let pair = (code, error::code(&translated));
        assert!(pair.0 == pair.1 || matches!(pair, (-32002, -32602) | (-32602, -32002)));
    }
}

/// A server's handshake is understood again after it was translated for a host.
fn check_server_handshake(answer: &Raw, requested: &str) {
    if let Ok(greeting) = read_initialize(answer) {
        assert!(LEGACY_VERSIONS.iter().any(|version| version.as_str() == greeting.version));
        check_greeting(&greeting, requested);
    }
    if let DiscoverAnswer::Modern(greeting) = read_discover(&Ok(answer.clone())) {
        assert_eq!(greeting.version, MODERN_VERSION.as_str());
        assert!(!is_modern_initialize(answer) || edit::get(answer, "protocolVersion").is_some());
        check_greeting(&greeting, requested);
    }
    let refused = Err(answer.clone());
    if invites_retry(&refused) {
        assert!(!matches!(read_discover(&refused), DiscoverAnswer::Modern(_)));
    }
}

fn check_greeting(greeting: &Greeting, requested: &str) {
    check_json(&greeting.capabilities);
    assert!(!greeting.offers_detail("tools", "listChanged") || greeting.offers("tools"));
    let Some(legacy) = introduced(greeting, Era::Legacy, requested) else {
        panic!("the result of a short handshake was not kept");
    };
    check_json(&legacy);
    let again = read_initialize(&legacy).expect("a legacy host can read it");
    let modern = introduced(greeting, Era::Modern, MODERN_VERSION.as_str());
    let modern = modern.expect("the result was kept");
    check_json(&modern);
    assert!(matches!(read_discover(&Ok(modern)), DiscoverAnswer::Modern(_)));
    assert_eq!(again.instructions, greeting.instructions);
}

/// A handshake that dormouse writes is read back unchanged.
fn check_own_handshake(capabilities: &Raw, info: &Raw, text: &str) {
    let answer = answer_initialize(text, capabilities, text);
    check_json(&answer);
    let greeting = read_initialize(&answer).expect("dormouse speaks a version that it knows");
    assert_eq!(greeting.capabilities, *capabilities);
    assert_eq!(greeting.instructions.as_deref().unwrap_or_default(), text);
    let answer = answer_discover(capabilities, text);
    check_json(&answer);
    assert!(matches!(read_discover(&Ok(answer)), DiscoverAnswer::Modern(_)));
    let said = ClientIdentity::from_initialize(&initialize_params(capabilities, Some(info)));
    assert_eq!((&said.capabilities, said.info.as_ref()), (capabilities, Some(info)));
    let said = discover_params(capabilities, Some(info.clone()));
    let said = ClientIdentity::from_meta(&edit::get(&said, "_meta").expect("metadata"));
    let said = said.expect("dormouse sends a version");
    assert_eq!((&said.capabilities, said.info.as_ref()), (capabilities, Some(info)));
    assert!(routed_capabilities(text).is_object());
}

fn check_extensions(capabilities: &Raw, name: &str) {
    for name in extension::declared(capabilities).iter().map(String::as_str).chain([name]) {
        // Several keys that are not Unicode have the same name.
        if name.contains('\u{fffd}') {
            continue;
        }
        let without = extension::without(capabilities, name);
        check_json(&without);
        assert!(!extension::declares(&without, name));
        assert_eq!(others(&without, &["extensions"]), others(capabilities, &["extensions"]));
    }
}

/// Any text can be a header's value, and is read as it was.
fn check_header_value(text: &str) {
    let encoded = request_headers::encode(text);
    assert_eq!(encoded.trim(), encoded, "a server would trim the header");
    let header = HeaderValue::from_str(&encoded).expect("a valid header");
    let read = header.to_str().ok().and_then(request_headers::decode);
    assert_eq!(read.as_deref(), Some(text));
}

/// The parameters of an accepted tool have names of headers.
fn check_header_parameters(tool: &Raw, arguments: &Raw) {
    let values = request_headers::parameter_values(tool, arguments);
    if request_headers::check_parameters(tool).is_err() {
        assert!(values.is_empty());
        return;
    }
    let mut names = HashSet::new();
    for (name, value) in values {
        let header = format!("{}{name}", request_headers::PARAMETER);
        let header = HeaderName::try_from(header).expect("a valid name");
        assert!(names.insert(header), "{name} occurs twice");
        if let Some(value) = value {
            check_header_value(&value);
        }
    }
}

/// A renamed task has the new name in all places, and gets its old one back.
fn check_task(object: &Raw, name: &str) {
    let _ = task::is_over(object);
    let created = [Era::Legacy, Era::Modern].map(|era| task::created(era, object));
    let known = created.iter().flatten().map(|task| task.id.clone()).chain(task::related(object));
    for name in known.chain([name.to_owned()]) {
        let renamed = task::renamed(object, &name, OTHER_TASK);
        check_json(&renamed);
        for (era, created) in [Era::Legacy, Era::Modern].into_iter().zip(&created) {
            let expected = created.as_ref().map(|task| &task.id);
            let expected = expected.map(|id| if *id == name { OTHER_TASK } else { id });
            let found = task::created(era, &renamed);
            assert_eq!(found.as_ref().map(|task| task.id.as_str()), expected);
        }
        let back = task::renamed(&renamed, OTHER_TASK, &name);
        let is_in_both = memchr::memmem::find(object.as_bytes(), OTHER_TASK.as_bytes()).is_some();
        if let (Ok(before), Ok(after)) = (object.read::<Value>(), back.read::<Value>()) {
            assert!(is_in_both || before == after, "{object} became {back}");
        }
    }
}
