//! A request as a measured operation: its attributes and its span.

use std::sync::Arc;

use super::{
    call_record::without_secrets,
    metric_names::{Attribute, AttributeValue, Attributes, method_name},
    span_record::{SpanKind, SpanRecord},
};
use crate::{
    protocol::method,
    proxy::{CallFault, EndedCall, EndedRequest, SentCall, Span, TimeSpan},
};

/// Codes of JSON-RPC that are a mistake of the host, and no error of the server that answers
/// (semantic conventions for MCP, attributes of the server's status).
const CLIENT_ERROR_CODES: [i64; 5] = [-32700, -32600, -32601, -32602, -32002];
/// Maximum length of the value of an attribute from outside, in characters.
const MAX_ATTRIBUTE_CHARS: usize = 128;

/// Returns the attributes of a host's request.
pub(super) fn of_request(request: &EndedRequest) -> Attributes {
    // A refused request may name something that does not exist.
    let is_refused = matches!(request.fault, Some(CallFault::Refused(_)));
    let subject = request.subject.as_deref().filter(|_| !is_refused);
    let mut attributes = common(&request.method, subject, &request.client.version);
    let is_error = request.fault.filter(|fault| match fault {
        CallFault::Refused(code) => !CLIENT_ERROR_CODES.contains(code),
        _ => true,
    });
    attributes.extend(of_fault(request.fault, is_error));
    attributes
}

/// Returns the attributes of a request to a server.
pub(super) fn of_call(call: &EndedCall, sent: &SentCall) -> Attributes {
    let mut attributes = common(&call.method, call.subject.as_deref(), &sent.protocol);
    attributes.push((Attribute::Server, call.server.clone().into()));
    let transport = if sent.is_remote { "tcp" } else { "pipe" };
    attributes.push((Attribute::Transport, transport.into()));
    attributes.extend(of_fault(call.fault, call.fault));
    attributes
}

/// Returns the span of a host's request, if there is one.
pub(super) fn span_of_request(request: &EndedRequest) -> Option<SpanRecord> {
    let span = request.span.clone()?;
    let mut attributes = of_request(request);
    attributes.push((Attribute::RequestId, bounded(&request.id)));
    attributes.extend(resource_of(&request.method, request.subject.as_deref()));
    Some(span_with(span, SpanKind::Server, request.time, attributes))
}

/// Returns the span of a request to a server, if there is one.
pub(super) fn span_of_call(call: &EndedCall) -> Option<SpanRecord> {
    let sent = call.sent.as_ref()?;
    let span = sent.span.clone()?;
    let mut attributes = of_call(call, sent);
    attributes.push((Attribute::RequestId, sent.id.to_string().into()));
    attributes.extend(resource_of(&call.method, call.subject.as_deref()));
    Some(span_with(span, SpanKind::Client, sent.time, attributes))
}

fn span_with(
    span: Arc<Span>,
    kind: SpanKind,
    time: TimeSpan,
    attributes: Attributes,
) -> SpanRecord {
    let is_error = attributes.iter().any(|(name, _)| *name == Attribute::ErrorType);
    SpanRecord { name: span_name(&attributes), span, kind, time, is_error, attributes }
}

fn common(method: &str, subject: Option<&str>, protocol: &str) -> Attributes {
    let name = method_name(method);
    let mut attributes =
        vec![(Attribute::Method, name.into()), (Attribute::Protocol, bounded(protocol))];
    if name == method::TOOLS_CALL {
        attributes.push((Attribute::Operation, "execute_tool".into()));
    }
    let kind = match name {
        method::TOOLS_CALL => Some(Attribute::Tool),
        method::PROMPTS_GET => Some(Attribute::Prompt),
        // URIs are without number.
        _ => None,
    };
    attributes.extend(kind.zip(subject.map(bounded)));
    attributes
}

/// Returns the URI that a request names, for spans only: there is no end of URIs.
fn resource_of(method: &str, subject: Option<&str>) -> Option<(Attribute, AttributeValue)> {
    let is_of_resource = matches!(
        method,
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE
    );
    let uri = subject.filter(|_| is_of_resource)?;
    Some((Attribute::Resource, bounded(&without_secrets(uri))))
}

fn of_fault(fault: Option<CallFault>, error: Option<CallFault>) -> Attributes {
    let mut attributes = Vec::new();
    if let Some(CallFault::Refused(code)) = fault {
        attributes.push((Attribute::StatusCode, code.to_string().into()));
    }
    attributes.extend(error.map(|error| (Attribute::ErrorType, error.kind())));
    attributes
}

/// Returns the method, and the tool or prompt (semantic conventions for MCP, spans).
fn span_name(attributes: &Attributes) -> String {
    let value = |wanted: &[Attribute]| {
        let mut found = attributes.iter().filter(|(name, _)| wanted.contains(name));
        found.next().map(|(_, value)| value.as_ref())
    };
    let method = value(&[Attribute::Method]).unwrap_or_default();
    match value(&[Attribute::Tool, Attribute::Prompt]) {
        Some(subject) => format!("{method} {subject}"),
        None => method.to_owned(),
    }
}

/// Returns a text of a host or a server as the value of an attribute.
fn bounded(text: &str) -> AttributeValue {
    let end = text.char_indices().nth(MAX_ATTRIBUTE_CHARS).map_or(text.len(), |(end, _)| end);
    text[..end].to_owned().into()
}
