//! The JSON-RPC 2.0 envelope, and how a line is parsed into it.

use std::fmt;

use bytes::{Bytes, BytesMut};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Raw, raw_key::RawKey};

/// A request id in its original spelling: `1` and `"1"` are different ids (JSON-RPC 2.0 section 4).
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Id(Raw);

impl Id {
    /// Returns the id if its text is a JSON string or number; `None` for anything else, including
    /// `null`, which MCP forbids.
    pub(crate) fn new(raw: Raw) -> Option<Self> {
        matches!(raw.as_bytes().first()?, b'"' | b'-' | b'0'..=b'9').then_some(Self(raw))
    }

    /// Returns the id with this name, as a JSON string.
    pub(crate) fn named(name: &str) -> Self {
        Self(Raw::encode(name))
    }

    /// Returns the number if this is one of the ids that dormouse assigns.
    pub(crate) fn as_u64(&self) -> Option<u64> {
        std::str::from_utf8(self.0.as_bytes()).ok()?.parse().ok()
    }

    pub(crate) fn raw(&self) -> &Raw {
        &self.0
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self(Raw::trusted(number.to_string()))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The outcome of a request: the text of `result`, or the text of `error`.
pub(crate) type Outcome = Result<Raw, Raw>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub id: Id,
    pub method: String,
    pub params: Option<Raw>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Notification {
    pub method: String,
    pub params: Option<Raw>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Response {
    /// `None` only in the answer to an unreadable message (JSON-RPC 2.0 section 5: `"id": null`).
    pub id: Option<Id>,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// The reason that a line, or one member of a batch, is not a message.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum InvalidMessage {
    /// Text that is not JSON. `start` is its beginning, for logs.
    #[error("not JSON: {problem}")]
    Unparsable { problem: String, start: String },
    /// A call of the wrong shape, with its id if one could be read.
    #[error("not a JSON-RPC message: {reason}")]
    MalformedCall { id: Option<Id>, reason: &'static str },
    /// A reply of the wrong shape. Nothing answers it, but the request that it names can fail.
    #[error("not a JSON-RPC response: {reason}")]
    MalformedReply { id: Id, reason: &'static str },
}

impl InvalidMessage {
    fn unparsable(problem: &serde_json::Error, text: &[u8]) -> Self {
        const MAX_CHARS: usize = 80;
        let start = String::from_utf8_lossy(&text[..text.len().min(MAX_CHARS)]).into_owned();
        Self::Unparsable { problem: problem.to_string(), start }
    }
}

/// Returns `text` as one line: line breaks between the tokens of a JSON text become blanks.
///
/// A message over HTTP may have several lines. Inside its strings JSON has no line breaks.
pub(crate) fn on_one_line(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let blank = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    text.iter().map(blank).collect()
}

/// Reads the messages of one line: one message, or the members of a batch (2025-03-26).
pub(crate) fn parse_line(line: &Bytes) -> Vec<Result<Message, InvalidMessage>> {
    if line.trim_ascii_start().first() != Some(&b'[') {
        return vec![parse_message(line, line)];
    }
    match serde_json::from_slice::<Vec<&RawValue>>(line) {
        Err(error) => vec![Err(InvalidMessage::unparsable(&error, line))],
        Ok(members) if members.is_empty() => {
            vec![Err(InvalidMessage::MalformedCall { id: None, reason: "an empty batch" })]
        }
        Ok(members) => members.iter().map(|member| parse_member(line, member)).collect(),
    }
}

/// The members of a message; a member that is `null` is not absent.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    fn member(&mut self, key: &RawKey<'_>) -> Option<&mut Option<&'a RawValue>> {
        Some(match key.as_bytes() {
            b"jsonrpc" => &mut self.jsonrpc,
            b"id" => &mut self.id,
            b"method" => &mut self.method,
            b"params" => &mut self.params,
            b"result" => &mut self.result,
            b"error" => &mut self.error,
            _ => return None,
        })
    }
}

// Not derived, since the derived code refuses keys that are not Unicode.
impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EnvelopeVisitor;
        impl<'de> Visitor<'de> for EnvelopeVisitor {
            type Value = Envelope<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut envelope = Envelope::default();
                while let Some(key) = map.next_key::<RawKey<'de>>()? {
                    let Some(member) = envelope.member(&key) else {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    };
                    if member.replace(map.next_value()?).is_some() {
                        return Err(A::Error::custom("a repeated member"));
                    }
                }
                Ok(envelope)
            }
        }
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

const WRONG_SHAPE: InvalidMessage =
    InvalidMessage::MalformedCall { id: None, reason: "the envelope has the wrong shape" };

fn parse_message(line: &Bytes, text: &[u8]) -> Result<Message, InvalidMessage> {
    match serde_json::from_slice(text) {
        Ok(envelope) => message_of(line, &envelope),
        Err(error) if error.is_data() => Err(WRONG_SHAPE),
        Err(error) => Err(InvalidMessage::unparsable(&error, text)),
    }
}

/// Parses a member of a batch. It is JSON, even if serde cannot hold it, as the number `1e999`.
fn parse_member(line: &Bytes, member: &RawValue) -> Result<Message, InvalidMessage> {
    match serde_json::from_str(member.get()) {
        Ok(envelope) => message_of(line, &envelope),
        Err(_) => Err(WRONG_SHAPE),
    }
}

fn message_of(line: &Bytes, envelope: &Envelope<'_>) -> Result<Message, InvalidMessage> {
    let id = envelope.id.and_then(|id| Id::new(Raw::part_of(line, id.get())));
    let is_rpc = envelope.jsonrpc.is_some_and(|version| version.get() == r#""2.0""#);
    let is_reply = envelope.result.is_some() || envelope.error.is_some();
    match (envelope.method, id) {
        // The request that this reply names must fail rather than wait forever.
        (_, Some(id)) if is_reply && !is_rpc => {
            Err(InvalidMessage::MalformedReply { id, reason: "\"jsonrpc\" is not \"2.0\"" })
        }
        (Some(_), Some(id)) if is_reply => {
            Err(InvalidMessage::MalformedReply { id, reason: "a reply with a \"method\"" })
        }
        (_, id) if !is_rpc => {
            Err(InvalidMessage::MalformedCall { id, reason: "\"jsonrpc\" is not \"2.0\"" })
        }
        (Some(method), id) => parse_call(line, envelope, id, method),
        (None, id) => parse_reply(line, envelope, id),
    }
}

fn parse_call(
    line: &Bytes,
    envelope: &Envelope<'_>,
    id: Option<Id>,
    method: &RawValue,
) -> Result<Message, InvalidMessage> {
    let Ok(method) = serde_json::from_str::<String>(method.get()) else {
        return Err(InvalidMessage::MalformedCall { id, reason: "\"method\" is not a string" });
    };
    let params = envelope.params.filter(|params| !is_null(params));
    let params = params.map(|params| Raw::part_of(line, params.get()));
    if params.as_ref().is_some_and(|params| !matches!(params.as_bytes().first(), Some(b'{' | b'[')))
    {
        return Err(InvalidMessage::MalformedCall {
            id,
            reason: "\"params\" is neither an object nor an array",
        });
    }
    match (id, envelope.id.is_some()) {
        (Some(id), _) => Ok(Message::Request(Request { id, method, params })),
        (None, false) => Ok(Message::Notification(Notification { method, params })),
        (None, true) => Err(InvalidMessage::MalformedCall {
            id: None,
            reason: "\"id\" is neither a string nor a number",
        }),
    }
}

fn parse_reply(
    line: &Bytes,
    envelope: &Envelope<'_>,
    id: Option<Id>,
) -> Result<Message, InvalidMessage> {
    // Some servers send `"error": null` together with a result.
    let error = envelope.error.filter(|error| envelope.result.is_none() || !is_null(error));
    let result = envelope.result.filter(|result| error.is_none() || !is_null(result));
    let outcome = match (result, error) {
        (Some(result), None) => Ok(Raw::part_of(line, result.get())),
        (None, Some(error)) if error.get().starts_with('{') => Err(Raw::part_of(line, error.get())),
        (result, error) => {
            let reason = match (result, error) {
                (Some(_), _) => "both \"result\" and \"error\"",
                (None, Some(_)) => "\"error\" is not an object",
                (None, None) => "no \"method\", \"result\" or \"error\"",
            };
            return Err(match id {
                Some(id) => InvalidMessage::MalformedReply { id, reason },
                None => InvalidMessage::MalformedCall { id, reason },
            });
        }
    };
    Ok(Message::Response(Response { id, outcome }))
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// Size above which a value is written from its own buffer instead of being copied into the batch,
/// in bytes.
const MAX_COPIED_BYTES: usize = 16 * 1024;

impl Message {
    /// Returns the number of bytes that the message holds while it is queued.
    pub(crate) fn weight(&self) -> usize {
        let payload = match self {
            Self::Request(request) => request.params.as_ref().map_or(0, Raw::len),
            Self::Notification(notification) => notification.params.as_ref().map_or(0, Raw::len),
            Self::Response(Response { outcome: Ok(raw) | Err(raw), .. }) => raw.len(),
        };
        payload + 64
    }

    /// Appends the message as one line to `batch`. `full` receives the batches that are complete
    /// and each large value.
    pub(super) fn write_line(&self, batch: &mut BytesMut, full: &mut Vec<Bytes>) {
        self.write(batch, full);
        batch.extend_from_slice(b"\n");
    }

    /// Returns the message as one JSON text.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let (mut batch, mut chunks) = (BytesMut::new(), Vec::new());
        self.write(&mut batch, &mut chunks);
        chunks.push(batch.freeze());
        if chunks.len() == 1 { chunks.remove(0) } else { chunks.concat().into() }
    }

    /// Returns messages as one JSON text, a batch (2025-03-26).
    pub(crate) fn batch(messages: &[Self]) -> Bytes {
        let texts: Vec<Bytes> = messages.iter().map(Self::to_bytes).collect();
        [b"[", texts.join(b",".as_slice()).as_slice(), b"]"].concat().into()
    }

    /// Returns the message as one line, with its line break.
    #[cfg(unix)]
    pub(crate) fn to_line(&self) -> Vec<u8> {
        [&*self.to_bytes(), b"\n"].concat()
    }

    /// Appends the message as JSON text without a line break, in the same way as `write_line`.
    pub(crate) fn write(&self, batch: &mut BytesMut, full: &mut Vec<Bytes>) {
        batch.extend_from_slice(br#"{"jsonrpc":"2.0""#);
        match self {
            Self::Request(Request { id, method, params }) => {
                write_member(batch, "id", id.0.as_bytes());
                write_method(batch, method);
                if let Some(params) = params {
                    write_value(batch, full, "params", params);
                }
            }
            Self::Notification(Notification { method, params }) => {
                write_method(batch, method);
                if let Some(params) = params {
                    write_value(batch, full, "params", params);
                }
            }
            Self::Response(Response { id, outcome }) => {
                write_member(batch, "id", id.as_ref().map_or(b"null", |id| id.0.as_bytes()));
                match outcome {
                    Ok(result) => write_value(batch, full, "result", result),
                    Err(error) => write_value(batch, full, "error", error),
                }
            }
        }
        batch.extend_from_slice(b"}");
    }
}

fn write_method(batch: &mut BytesMut, method: &str) {
    write_member(batch, "method", Raw::encode(method).as_bytes());
}

fn write_member(batch: &mut BytesMut, key: &str, value: &[u8]) {
    write_key(batch, key);
    batch.extend_from_slice(value);
}

fn write_value(batch: &mut BytesMut, full: &mut Vec<Bytes>, key: &str, value: &Raw) {
    write_key(batch, key);
    if value.len() <= MAX_COPIED_BYTES {
        batch.extend_from_slice(value.as_bytes());
    } else {
        full.push(batch.split().freeze());
        full.push(value.bytes().clone());
    }
}

fn write_key(batch: &mut BytesMut, key: &str) {
    batch.extend_from_slice(b",\"");
    batch.extend_from_slice(key.as_bytes());
    batch.extend_from_slice(b"\":");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &'static str) -> Result<Message, InvalidMessage> {
        let mut messages = parse_line(&Bytes::from_static(text.as_bytes()));
        assert_eq!(messages.len(), 1);
        messages.remove(0)
    }

    fn rewrite(text: &'static str) -> String {
        let (mut batch, mut full) = (BytesMut::new(), Vec::new());
        parse(text).unwrap().write_line(&mut batch, &mut full);
        full.push(batch.freeze());
        String::from_utf8(full.concat()).unwrap()
    }

    #[test]
    fn request_is_written_as_it_was_read() {
        let line = r#"{"jsonrpc":"2.0","id":"a\u0001","method":"tools/call","params":{"x":1e2}}"#;
        assert_eq!(rewrite(line), format!("{line}\n"));
    }

    #[test]
    fn multi_line_text_becomes_one_line() {
        let text = Bytes::from_static(b"{\r\n  \"a\": \"b\\n\"\n}");
        assert_eq!(on_one_line(text), "{    \"a\": \"b\\n\" }");
    }

    #[test]
    fn null_result_is_a_result() {
        let line = r#"{"jsonrpc":"2.0","id":1,"result":null}"#;
        assert_eq!(rewrite(line), format!("{line}\n"));
    }

    #[test]
    fn members_that_are_not_known_may_have_any_key() {
        let line = r#"{"jsonrpc":"2.0","\ud800":{"\udc00":1},"\u0069d":7,"method":"m"}"#;
        assert!(
            matches!(parse(line), Ok(Message::Request(Request { id, .. })) if id == Id::from(7))
        );
        let repeated = parse(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#);
        assert!(matches!(repeated, Err(InvalidMessage::MalformedCall { id: None, .. })));
    }

    #[test]
    fn ids_keep_their_type() {
        assert_ne!(Id::new(Raw::parse("1").unwrap()), Id::new(Raw::parse("\"1\"").unwrap()));
        assert_eq!(Id::new(Raw::parse("null").unwrap()), None);
        assert_eq!(Id::new(Raw::parse("\"7\"").unwrap()).unwrap().as_u64(), None);
        assert_eq!(Id::from(7).as_u64(), Some(7));
    }

    #[test]
    fn batch_is_split_into_its_members() {
        let line = br#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"method":"b"},3]"#;
        let members = parse_line(&Bytes::from_static(line));
        assert!(matches!(&members[0], Ok(Message::Notification(n)) if n.method == "a"));
        assert!(matches!(&members[1], Ok(Message::Request(r)) if r.method == "b"));
        assert!(members[2].is_err());
    }

    #[test]
    fn reports_why_a_line_is_invalid() {
        assert!(matches!(parse("Server started!"), Err(InvalidMessage::Unparsable { .. })));
        assert!(matches!(parse("{\"jsonrpc\":\"2.0\","), Err(InvalidMessage::Unparsable { .. })));
        for (line, reason) in [
            (r#"{"id":1,"method":"x"}"#, "\"jsonrpc\" is not \"2.0\""),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
                "\"id\" is neither a string nor a number",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "\"method\" is not a string"),
            (
                r#"{"jsonrpc":"2.0","method":"x","params":3}"#,
                "\"params\" is neither an object nor an array",
            ),
        ] {
            assert!(
                matches!(
                    parse(line),
                    Err(InvalidMessage::MalformedCall { reason: found, .. }) if found == reason
                ),
                "{line}"
            );
        }
        for line in [
            r#"{"jsonrpc":"2.0","id":4,"result":1,"error":{}}"#,
            r#"{"id":4,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"x","result":1}"#,
            r#"{"jsonrpc":"2.0","id":4}"#,
        ] {
            assert!(
                matches!(
                    parse(line),
                    Err(InvalidMessage::MalformedReply { id, .. }) if id == Id::from(4)
                ),
                "{line}"
            );
        }
    }

    #[test]
    fn null_params_or_error_count_as_absent() {
        let line = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#;
        assert!(matches!(parse(line), Ok(Message::Request(Request { params: None, .. }))));
        let line = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#;
        assert!(matches!(parse(line), Ok(Message::Response(Response { outcome: Ok(_), .. }))));
        let line = r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{}}"#;
        assert!(matches!(parse(line), Ok(Message::Response(Response { outcome: Err(_), .. }))));
    }
}
