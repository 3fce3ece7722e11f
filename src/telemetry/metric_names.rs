//! The names of the semantic conventions of OpenTelemetry for MCP, and of dormouse's own metrics.

use std::borrow::Cow;

use crate::protocol::method;

/// The bounds of the buckets of durations, in seconds (semantic conventions for MCP, metrics).
pub(super) const BUCKETS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// A metric.
pub(super) struct MetricName {
    /// The name in OpenTelemetry.
    pub(super) name: &'static str,
    /// In the notation of UCUM.
    pub(super) unit: &'static str,
    pub(super) meaning: &'static str,
}

pub(super) const REQUESTS: MetricName = MetricName {
    name: "mcp.server.operation.duration",
    unit: "s",
    meaning: "Duration of the requests of hosts, from their arrival to the answer.",
};
pub(super) const CALLS: MetricName = MetricName {
    name: "mcp.client.operation.duration",
    unit: "s",
    meaning: "Duration of the requests of hosts to servers, from sending them to the answer.",
};
pub(super) const SESSIONS: MetricName = MetricName {
    name: "mcp.server.session.duration",
    unit: "s",
    meaning: "Duration of the sessions of hosts that have ended.",
};
pub(super) const WAKES: MetricName = MetricName {
    name: "dormouse.server.wake.duration",
    unit: "s",
    meaning: "Time that connecting a server took.",
};
pub(super) const STORE: MetricName = MetricName {
    name: "dormouse.store.operation.duration",
    unit: "s",
    meaning: "Duration of the operations on the store that several machines share.",
};
pub(super) const BYTES: MetricName = MetricName {
    name: "dormouse.call.size",
    unit: "By",
    meaning: "Bytes of the parameters (in) and the answers (out) of requests to servers.",
};
pub(super) const WITHHELD: MetricName = MetricName {
    name: "dormouse.result.withheld",
    unit: "By",
    meaning: "Bytes of results withheld from hosts, since they were above maxResultBytes.",
};
pub(super) const HOSTS: MetricName =
    MetricName { name: "dormouse.hosts", unit: "{host}", meaning: "Hosts that are connected." };
pub(super) const SERVERS: MetricName =
    MetricName { name: "dormouse.servers", unit: "{server}", meaning: "Servers in each state." };
pub(super) const TURNS: MetricName = MetricName {
    name: "dormouse.turns",
    unit: "{turn}",
    meaning: "Turns of models in which a tool was called.",
};
pub(super) const SAVED: MetricName = MetricName {
    name: "dormouse.saved.tokens",
    unit: "{token}",
    meaning: "Estimate of the tokens of tool definitions that models did not have to read.",
};

/// The properties of an operation with their values.
pub(super) type Attributes = Vec<(Attribute, AttributeValue)>;

/// The value of an attribute. Texts of dormouse are borrowed, so that no request copies them.
pub(super) type AttributeValue = Cow<'static, str>;

/// A property of a measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attribute {
    Direction,
    Server,
    ServerState,
    ErrorType,
    Operation,
    Prompt,
    Tool,
    RequestId,
    Method,
    Protocol,
    Resource,
    Transport,
    StatusCode,
}

impl Attribute {
    #[cfg(test)]
    const ALL: [Self; 13] = [
        Self::Direction,
        Self::Server,
        Self::ServerState,
        Self::ErrorType,
        Self::Operation,
        Self::Prompt,
        Self::Tool,
        Self::RequestId,
        Self::Method,
        Self::Protocol,
        Self::Resource,
        Self::Transport,
        Self::StatusCode,
    ];

    /// Returns the name in OpenTelemetry.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Direction => "dormouse.direction",
            Self::Server => "dormouse.server",
            Self::ServerState => "dormouse.server.state",
            Self::ErrorType => "error.type",
            Self::Operation => "gen_ai.operation.name",
            Self::Prompt => "gen_ai.prompt.name",
            Self::Tool => "gen_ai.tool.name",
            Self::RequestId => "jsonrpc.request.id",
            Self::Method => "mcp.method.name",
            Self::Protocol => "mcp.protocol.version",
            Self::Resource => "mcp.resource.uri",
            Self::Transport => "network.transport",
            Self::StatusCode => "rpc.response.status_code",
        }
    }
}

/// Returns a method of MCP as the value of an attribute, which has few values.
pub(super) fn method_name(method: &str) -> &'static str {
    let known = method::REQUESTS_OF_HOSTS.iter().find(|known| **known == method);
    known.copied().unwrap_or("_OTHER")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns the names of the conventions, as they are in their YAML model.
    fn conventions() -> Value {
        let text = include_str!("../../tests/conventions/mcp.json");
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn metrics_are_those_of_the_conventions_or_named_as_our_own() {
        let known = conventions();
        let durations = [REQUESTS, CALLS, SESSIONS, WAKES];
        let others = [BYTES, WITHHELD, HOSTS, SERVERS, TURNS, SAVED];
        for metric in durations.into_iter().chain(others) {
            match known["metrics"].get(metric.name) {
                Some(known) => {
                    assert_eq!(known, &json!({"instrument": "histogram", "unit": metric.unit}));
                }
                None => assert!(metric.name.starts_with("dormouse."), "{}", metric.name),
            }
        }
        assert_eq!(known["bucketBounds"].as_array().map(Vec::len), Some(BUCKETS.len()));
        for (known, bound) in known["bucketBounds"].as_array().unwrap().iter().zip(BUCKETS) {
            assert_eq!(known.as_f64(), Some(bound));
        }
    }

    #[test]
    fn attributes_are_those_of_the_conventions_or_named_as_our_own() {
        let known = conventions();
        let names = |group: &str| known[group].as_array().cloned().unwrap();
        let known = [names("operationAttributes"), names("spanAttributes")].concat();
        let mut of_conventions = 0;
        for attribute in Attribute::ALL {
            let name = attribute.name();
            let is_known = known.iter().any(|known| known == name);
            of_conventions += usize::from(is_known);
            assert!(is_known || name.starts_with("dormouse."), "{name}");
        }
        assert_eq!(of_conventions, 10);
    }

    #[test]
    fn methods_of_the_conventions_have_their_names() {
        for known in conventions()["methods"].as_array().unwrap() {
            let known = known.as_str().unwrap();
            assert_eq!(method_name(known), known);
        }
        assert_eq!(method_name("made/up"), "_OTHER");
    }
}
