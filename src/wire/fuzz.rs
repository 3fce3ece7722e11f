//! The laws of this layer for bytes from outside (see `crate::fuzz`).

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use serde_json::Value;
use tokio::io::{AsyncRead, ReadBuf};

use super::{
    Id, InvalidMessage, Line, LineReader, LineSummary, Message, Raw, Request, Response, edit,
    on_one_line, parse_line,
    sse::{self, EventReader, SseEvent},
};
use crate::base::{Choices, FuzzInput, is_hidden, run_to_end};

/// `LineReader` finds the lines of a stream, however the stream is cut into pieces.
///
/// Arguments: the size limit of a line, and the sizes of the pieces.
pub(crate) fn lines(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let mut choices = input.choices();
    let limit = choices.number();
    let pieces = choices.pieces(input.rest()).into_iter().collect();
    let mut reader = LineReader::new(Pieces(pieces), limit);
    for expected in reference_lines(input.rest()) {
        match run_to_end(reader.next()).expect("reading from memory") {
            Some(Line::Text(line)) => {
                assert_eq!(line, expected);
                assert!(line.len() <= limit, "{} bytes are above {limit}", line.len());
            }
            Some(Line::Oversized(summary)) => {
                assert!(expected.len() > limit, "{} bytes are below {limit}", expected.len());
                check_summary(&summary, expected);
            }
            None => panic!("lost {:?}", String::from_utf8_lossy(expected)),
        }
    }
    let more = run_to_end(reader.next()).expect("reading from memory");
    assert!(more.is_none(), "{more:?} is not in the stream");
}

/// A reader that returns one piece at a time.
struct Pieces<'a>(VecDeque<&'a [u8]>);

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(piece) = self.0.pop_front() {
            let (now, later) = piece.split_at(piece.len().min(buffer.remaining()));
            buffer.put_slice(now);
            if !later.is_empty() {
                self.0.push_front(later);
            }
        }
        Poll::Ready(Ok(()))
    }
}

fn reference_lines(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    stream.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start).filter(|it| !it.is_empty())
}

/// Length above which an id is not kept, in bytes.
const MAX_ID_BYTES: usize = 256;

/// Checks the summary of a dropped line against the whole line, if that is an object.
fn check_summary(summary: &LineSummary, line: &[u8]) {
    assert_eq!(summary.size, line.len());
    let Ok(object) = Raw::parse(Bytes::copy_from_slice(line)) else { return };
    // The summary does not read escapes in keys.
    if !object.is_object() || memchr::memmem::find(line, b"\\").is_some() {
        return;
    }
    let id = edit::get(&object, "id").and_then(Id::new);
    let id = id.filter(|id| id.raw().len() <= MAX_ID_BYTES);
    assert_eq!(summary.id, id);
    assert_eq!(summary.is_call, edit::get(&object, "method").is_some());
}

/// `EventReader` finds the events of a stream, however the stream is cut into pieces, and reads
/// what dormouse itself writes.
///
/// Arguments: the size limit of an event, and the sizes of the pieces.
pub(crate) fn sse(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let mut choices = input.choices();
    let limit = choices.number();
    let stream = input.rest();
    let whole = events([stream], usize::MAX);
    assert_eq!(events(choices.pieces(stream), usize::MAX), whole);
    assert_eq!(events(stream.chunks(1), usize::MAX), whole);
    check_limit(&choices, stream, limit, &whole.0);
    for message in parse_line(&on_one_line(Bytes::copy_from_slice(stream))).into_iter().flatten() {
        check_written_event(&message);
    }
}

/// Reads all events, and the error that ends the stream.
fn events<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limit: usize,
) -> (Vec<SseEvent>, Option<String>) {
    let pieces: Vec<_> =
        pieces.into_iter().map(|piece| Ok::<_, io::Error>(Bytes::copy_from_slice(piece))).collect();
    let mut reader = EventReader::new(futures_util::stream::iter(pieces), limit, None);
    let mut events = Vec::new();
    loop {
        match run_to_end(reader.next()) {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return (events, None),
            Err(error) => return (events, Some(error.to_string())),
        }
    }
}

/// Checks that no event above the limit is returned, and that events before it are.
fn check_limit(choices: &Choices<'_>, stream: &[u8], limit: usize, all: &[SseEvent]) {
    let (found, error) = events(choices.pieces(stream), limit);
    let is_large = |event: &SseEvent| event.data.as_ref().is_some_and(|data| data.len() > limit);
    let fitting = all.iter().position(is_large).unwrap_or(all.len());
    assert!(found.len() <= fitting, "an event above {limit} bytes was returned");
    assert_eq!(found, all[..found.len()]);
    let is_refused = error.is_some_and(|error| error.contains("maxMessageBytes"));
    assert!(is_refused || found.len() == all.len(), "events are lost");
    assert!(!is_refused || stream.len() > limit, "{} bytes are below {limit}", stream.len());
}

fn check_written_event(message: &Message) {
    let written = sse::message_event(message, Some("7-1"));
    let expected = SseEvent {
        id: Some("7-1".to_owned()),
        data: Some(message.to_bytes()),
        ..SseEvent::default()
    };
    let (found, error) = events(written.iter().map(AsRef::as_ref), usize::MAX);
    assert_eq!((found, error), (vec![expected], None));
}

/// A parsed message is written as it was read, and a line has as many results as messages.
pub(crate) fn envelope(bytes: &[u8]) {
    let line = on_one_line(Bytes::copy_from_slice(bytes));
    assert_eq!(line.len(), bytes.len());
    assert_eq!(on_one_line(line.clone()), line);
    let parsed = parse_line(&line);
    let raw = Raw::parse(line.clone());
    let members = raw.as_ref().ok().and_then(edit::elements);
    assert_eq!(parsed.len(), members.map_or(1, |members| members.len().max(1)));
    for result in &parsed {
        match result {
            Ok(message) => check_message(&line, message),
            Err(InvalidMessage::Unparsable { .. }) => {
                let is_object = raw.as_ref().is_ok_and(Raw::is_object);
                assert!(parsed.len() == 1 && !is_object, "{raw:?} can be parsed");
            }
            Err(
                InvalidMessage::MalformedCall { id: Some(id), .. }
                | InvalidMessage::MalformedReply { id, .. },
            ) => check_part(&line, id.raw()),
            Err(InvalidMessage::MalformedCall { id: None, .. }) => {}
        }
    }
}

fn check_message(line: &[u8], message: &Message) {
    let payload = match message {
        Message::Request(Request { id, params, .. }) => {
            check_part(line, id.raw());
            params.as_ref()
        }
        Message::Notification(notification) => notification.params.as_ref(),
        Message::Response(Response { id, outcome: Ok(raw) | Err(raw) }) => {
            if let Some(id) = id {
                check_part(line, id.raw());
            }
            Some(raw)
        }
    };
    if let Some(payload) = payload {
        check_part(line, payload);
    }
    let written = message.to_bytes();
    assert_eq!(memchr::memchr2(b'\n', b'\r', &written), None);
    assert_eq!(parse_line(&written), [Ok(message.clone())]);
    let (mut batch, mut full) = (BytesMut::new(), Vec::new());
    message.write_line(&mut batch, &mut full);
    full.push(batch.freeze());
    assert_eq!(full.concat(), [&written[..], b"\n"].concat());
    assert!(message.weight() >= payload.map_or(0, Raw::len));
    check_envelope(&written, message);
}

/// Checks that a value is a part of the line as it was sent.
fn check_part(line: &[u8], part: &Raw) {
    check_json(part);
    assert!(memchr::memmem::find(line, part.as_bytes()).is_some(), "{part} was changed");
}

/// Checks the envelope of a written message against another parser.
fn check_envelope(written: &[u8], message: &Message) {
    let Ok(value) = serde_json::from_slice::<Value>(written) else { return };
    assert_eq!(value["jsonrpc"], "2.0");
    match message {
        Message::Request(Request { method, .. }) => {
            assert_eq!(value["method"], method.as_str());
            assert!(value["id"].is_string() || value["id"].is_number());
        }
        Message::Notification(notification) => {
            assert_eq!(value["method"], notification.method.as_str());
            assert_eq!(value.get("id"), None);
        }
        Message::Response(Response { outcome, .. }) => {
            assert_eq!(value.get("result").is_some(), outcome.is_ok());
            assert_eq!(value["error"].is_object(), outcome.is_err());
        }
    }
}

/// Every edit of a JSON text results in JSON, does what it says, and changes nothing else.
///
/// Arguments: a key, then a value for it.
pub(crate) fn json_edit(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let key = input.text_line();
    let value = Raw::parse(Bytes::copy_from_slice(input.line()));
    let value = value.unwrap_or_else(|_| Raw::encode(&7));
    let Ok(document) = Raw::parse(Bytes::copy_from_slice(input.rest())) else { return };
    let members = edit::entries(&document);
    check_set(&document, &key, &value);
    check_without(&document, &key);
    for (other, _) in members.iter().take(2) {
        check_set(&document, other, &value);
        check_without(&document, other);
        check_set_each(&document, &key, other, &value);
    }
    check_set_within(&document, &key, &value);
    check_escaped(&document);
    if let Some(elements) = edit::elements(&document) {
        elements.iter().for_each(check_json);
        assert_eq!(edit::elements(&Raw::array(&elements)), Some(elements));
    }
}

fn check_json(raw: &Raw) {
    let parsed = Raw::parse(Bytes::copy_from_slice(raw.as_bytes()));
    assert_eq!(parsed.ok().as_ref(), Some(raw), "is not JSON");
}

/// Returns whether a name from [`edit::entries`] may stand for several keys that are not Unicode.
fn is_ambiguous(name: &str) -> bool {
    name.contains('\u{fffd}')
}

fn check_set(document: &Raw, key: &str, value: &Raw) {
    let edited = edit::set(document, key, value);
    check_json(&edited);
    assert_eq!(edit::get(&edited, key).as_ref(), Some(value));
    let mut expected = edit::entries(document);
    if is_ambiguous(key) {
        return;
    }
    match expected.iter_mut().rev().find(|(name, _)| name == key) {
        Some((_, old)) => *old = value.clone(),
        None => expected.push((key.to_owned(), value.clone())),
    }
    assert_eq!(edit::entries(&edited), expected);
    let values = (document.read::<Value>(), value.read::<Value>(), edited.read::<Value>());
    if let (Ok(before), Ok(value), Ok(after)) = values {
        let mut expected = before.as_object().cloned().unwrap_or_default();
        expected.insert(key.to_owned(), value);
        assert_eq!(after, Value::Object(expected));
    }
}

fn check_without(document: &Raw, key: &str) {
    let edited = edit::without(document, &[key]);
    check_json(&edited);
    assert_eq!(edit::get(&edited, key), None);
    let mut expected = edit::entries(document);
    if !is_ambiguous(key) {
        expected.retain(|(name, _)| name != key);
        assert_eq!(edit::entries(&edited), expected);
    }
    assert_eq!(edit::without(&edited, &[key]), edited);
}

fn check_set_each(document: &Raw, key: &str, other: &str, value: &Raw) {
    if key == other {
        return;
    }
    let null = Raw::encode(&Value::Null);
    let edited = edit::set_each(document, &[(key, value), (other, &null)]);
    check_json(&edited);
    assert_eq!(edited, edit::set(&edit::set(document, key, value), other, &null));
    let found = edit::get_each(&edited, [other, key]);
    assert_eq!(found, [Some(null), Some(value.clone())]);
}

fn check_set_within(document: &Raw, key: &str, value: &Raw) {
    let edited = edit::set_within(document, key, &[(key, value)]);
    check_json(&edited);
    let inner = edit::get(&edited, key);
    assert_eq!(inner.and_then(|inner| edit::get(&inner, key)).as_ref(), Some(value));
}

fn check_escaped(document: &Raw) {
    let edited = edit::escaped(document, is_hidden);
    check_json(&edited);
    let is_left = |c: char| !c.is_ascii() && is_hidden(c);
    assert!(!edited.to_string().contains(is_left), "{edited} has hidden characters");
    assert_eq!(edited.read::<Value>().ok(), document.read::<Value>().ok());
}
