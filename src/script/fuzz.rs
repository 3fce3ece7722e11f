//! The laws of this layer for bytes from outside (see `crate::fuzz`).

use serde_json::{Value, json};

use super::{FromWorker, ResultShape, ToolStub, worker::is_script};
use crate::{
    base::{FuzzInput, is_hidden},
    wire::Raw,
};

/// Maximum length of a declaration, in bytes.
const MAX_DECLARATION_BYTES: usize = 64 * 1024;

/// Whatever servers write, the declarations of their tools are bounded, visible, and TypeScript.
///
/// Arguments: the name of a tool. The rest is the schema of its arguments, and a result.
pub(crate) fn declarations(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let name = input.text_line();
    let Ok(schema) = serde_json::from_slice::<Value>(input.rest()) else { return };
    let mut shape = ResultShape::default();
    shape.learn(&schema);
    for learned in [None, Some(&shape)] {
        let definition = json!({"description": schema["description"], "inputSchema": schema});
        let stub = ToolStub { server: &name, tool: &name, definition: &definition, learned };
        check(&format!("interface A {{\n{}\n}}", stub.member()));
    }
}

fn check(declaration: &str) {
    assert!(declaration.len() < MAX_DECLARATION_BYTES, "{} bytes", declaration.len());
    assert!(!declaration.contains(|c| c != '\n' && is_hidden(c)), "{declaration:?}");
    assert!(is_script(declaration), "{declaration}");
}

/// A message of a worker can be read or is refused, and is written again as it was.
pub(crate) fn worker_messages(bytes: &[u8]) {
    let Ok(message) = serde_json::from_slice::<FromWorker>(bytes) else { return };
    let written = serde_json::to_string(&message).expect("it was read");
    assert!(Raw::parse(written.clone()).is_ok(), "{written}");
    let again: FromWorker = serde_json::from_str(&written).expect("it was written");
    assert_eq!(serde_json::to_string(&again).expect("it was read"), written);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEYS: [&str; 12] = [
        "type",
        "properties",
        "required",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "items",
        "additionalProperties",
        "$ref",
        "description",
    ];

    fn schema() -> impl Strategy<Value = Value> {
        let word = prop::sample::select(vec!["object", "array", "string", "number", "#", "#/a"]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            word.prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 6, |inner| {
            let key =
                prop_oneof![prop::sample::select(KEYS.to_vec()).prop_map(str::to_owned), ".{0,6}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..6)
                    .prop_map(|members| { Value::Object(members.into_iter().collect()) }),
            ]
        })
    }

    proptest! {
        #[test]
        fn declarations_of_any_schema_are_typescript(name in ".{0,12}", schema in schema()) {
            declarations(format!("{name}\n{schema}").as_bytes());
        }
    }
}
