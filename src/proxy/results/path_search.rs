//! The values of a JSON text to which a path leads, found in bounded time and memory.

use super::{
    findings::{Findings, Gap, Stopped},
    json_path::{JsonPath, Segment, Selector},
    json_shape::shape,
};
use crate::wire::{Child, JsonKind, JsonNode};

/// Maximum length of a value in the answer, in bytes. The rest of a longer one is described.
const MAX_VALUE_BYTES: usize = 2000;
/// Maximum depth to which `..` descends.
const MAX_DEPTH: usize = 200;

/// Finds the values to which a path leads, in their order.
pub(super) fn search(root: JsonNode<'_>, path: &JsonPath, findings: &mut Findings) {
    // The findings say that the search was stopped.
    let _ = visit(root, &path.0, findings);
}

fn visit(node: JsonNode<'_>, path: &[Segment], findings: &mut Findings) -> Result<(), Stopped> {
    findings.check_time()?;
    let Some((segment, rest)) = path.split_first() else {
        return findings.add(&shown(node), 1);
    };
    select(node, &segment.selector, rest, findings)?;
    if !segment.descends {
        return Ok(());
    }
    let mut open = vec![node.children()];
    while let Some(children) = open.last_mut() {
        findings.check_time()?;
        let Some(Child { node, .. }) = children.next() else {
            open.pop();
            continue;
        };
        if matches!(node.kind(), JsonKind::Object | JsonKind::Array) {
            select(node, &segment.selector, rest, findings)?;
            if open.len() < MAX_DEPTH {
                open.push(node.children());
            } else if node.children().next().is_some() {
                findings.leave_out(Gap::Depth(MAX_DEPTH));
            }
        }
    }
    Ok(())
}

fn select(
    node: JsonNode<'_>,
    selector: &Selector,
    rest: &[Segment],
    findings: &mut Findings,
) -> Result<(), Stopped> {
    let range = match selector {
        Selector::Name(name) => {
            return node.member(name).map_or(Ok(()), |found| visit(found, rest, findings));
        }
        Selector::All => 0..usize::MAX,
        _ if node.kind() != JsonKind::Array => return Ok(()),
        Selector::Index(index) => match position(node, *index, findings)? {
            Some(at) => at..at + 1,
            None => return Ok(()),
        },
        Selector::Slice(from, to) => {
            let mut bound = |bound: &Option<i64>, default: usize| match bound {
                Some(bound) => Ok(position(node, *bound, findings)?.unwrap_or(0)),
                None => Ok(default),
            };
            bound(from, 0)?..bound(to, usize::MAX)?
        }
    };
    for (at, child) in node.children().take(range.end).enumerate() {
        findings.check_time()?;
        if at >= range.start {
            visit(child.node, rest, findings)?;
        }
    }
    Ok(())
}

/// Returns the position of an index, which may count from the end; `None` if that is before the
/// first element.
fn position(
    array: JsonNode<'_>,
    index: i64,
    findings: &mut Findings,
) -> Result<Option<usize>, Stopped> {
    if let Ok(position) = usize::try_from(index) {
        return Ok(Some(position.min(usize::MAX - 1)));
    }
    let mut count = 0_usize;
    for _ in array.children() {
        findings.check_time()?;
        count += 1;
    }
    let back = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    Ok(count.checked_sub(back))
}

fn shown(node: JsonNode<'_>) -> String {
    let text = node.text();
    if text.len() <= MAX_VALUE_BYTES {
        return text.to_owned();
    }
    let begin = &text[..text.floor_char_boundary(MAX_VALUE_BYTES)];
    format!("{begin}… ({} bytes in all: {})", text.len(), shape(node))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = r#"{"a": [{"b": 1}, {"b": [2, 3]}, 4], "b": {"b": null}, "k.e y": "x"}"#;

    fn found(text: &str, path: &str) -> Findings {
        let mut findings = Findings::within(Duration::from_hours(1), 50, 8000);
        search(JsonNode::new(text), &path.parse().unwrap(), &mut findings);
        findings
    }

    #[test]
    fn paths_lead_to_their_values() {
        for (path, values) in [
            ("$.a[0].b", "1"),
            ("$.a[-1]", "4"),
            ("$.a[1:]", "{\"b\": [2, 3]}\n4"),
            ("$.a[:-2]", "{\"b\": 1}"),
            ("$.a[*].b", "1\n[2, 3]"),
            ("$['k.e y']", "\"x\""),
            ("$..b", "{\"b\": null}\n1\n[2, 3]\nnull"),
            ("$.b.*", "null"),
            ("$..[1]", "{\"b\": [2, 3]}\n3"),
            ("$.a[7]", ""),
            ("$.a[-7]", ""),
            ("$.b[0]", ""),
            ("$", TEXT),
        ] {
            assert_eq!(found(TEXT, path).text, values, "{path}");
        }
    }

    #[test]
    fn long_value_is_cut_and_described() {
        let text = serde_json::json!({"a": "x".repeat(3000), "b": [1]}).to_string();
        let shown = found(&text, "$").text;
        assert!(
            shown.ends_with(r#"… (3016 bytes in all: {"a": string, "b": array of 1 of number})"#)
        );
    }

    #[test]
    fn searches_in_deep_and_wide_values_end() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let wide = format!("[{}1]", "{\"a\":[1,2]},".repeat(200_000));
        for (text, path, count, gaps) in [
            (&deep, "$..x", 0, vec![Gap::Depth(200)]),
            (&wide, "$..x", 0, vec![]),
            (&wide, "$..a", 50, vec![Gap::Full]),
            (&wide, "$[-1]", 1, vec![]),
            (&wide, "$..[-1]", 50, vec![Gap::Full]),
        ] {
            let found = found(text, path);
            assert_eq!((found.count, found.gaps), (count, gaps), "{path}");
        }
        let mut endless = Findings::within(Duration::from_millis(20), 50, 8000);
        search(JsonNode::new(&deep), &"$..*..*..*..x".parse().unwrap(), &mut endless);
        assert!(endless.gaps.contains(&Gap::OutOfTime), "{endless:?}");
    }

    proptest! {
        /// A path of names and indices leads to the value that `serde_json` finds by its pointer.
        #[test]
        fn every_value_is_found_by_its_path(
            values in proptest::collection::vec(("[a-z. '\\\\]{1,6}", 0..9_i32), 1..8),
        ) {
            let array: Vec<_> = values.iter().map(|(key, number)| {
                serde_json::json!({ key.as_str(): [number] })
            }).collect();
            let text = serde_json::Value::from(array).to_string();
            for (at, (key, number)) in values.iter().enumerate() {
                let quoted = key.replace('\\', "\\\\").replace('\'', "\\'");
                let back = values.len() - at;
                for index in [at.to_string(), format!("-{back}")] {
                    let path = format!("$[{index}]['{quoted}'][0]");
                    prop_assert_eq!(found(&text, &path).text, number.to_string());
                }
            }
        }
    }
}
