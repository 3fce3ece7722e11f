//! The headers of a modern request, which repeat parts of its message.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    catalog::ServerCatalog,
    protocol::{Meta, method, request_headers},
    wire::{Request, edit},
};

/// Returns the headers for a modern request; `None` for a legacy one.
pub(super) fn build(request: &Request, catalog: Option<&ServerCatalog>) -> Option<HeaderMap> {
    let params = request.params.as_ref()?;
    let [meta, arguments] = edit::get_each(params, ["_meta", "arguments"]);
    let version = edit::get_str(&meta?, Meta::PROTOCOL_VERSION)?;
    let mut headers = HeaderMap::new();
    let mut put = |name: &str, value: &str| {
        // Cannot fail, since names are tokens and values are encoded.
        if let (Ok(name), Ok(value)) =
            (HeaderName::try_from(name), HeaderValue::try_from(request_headers::encode(value)))
        {
            headers.insert(name, value);
        }
    };
    put(request_headers::VERSION, &version);
    put(request_headers::METHOD, &request.method);
    let Some(subject) = request_headers::subject(&request.method, params) else {
        return Some(headers);
    };
    put(request_headers::NAME, &subject);
    let tool = (request.method == method::TOOLS_CALL)
        .then(|| catalog?.tools.iter().find(|tool| tool.name == subject))
        .flatten();
    if let (Some(tool), Some(arguments)) = (tool, arguments) {
        for (name, value) in request_headers::parameter_values(&tool.raw, &arguments) {
            if let Some(value) = value {
                put(&format!("{}{name}", request_headers::PARAMETER), &value);
            }
        }
    }
    Some(headers)
}
