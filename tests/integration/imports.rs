//! The direction of imports: a layer may use only the layers below it (docs/ARCHITECTURE.md).

use std::{collections::BTreeSet, fs, path::Path};

/// The layers that each layer may use.
const MAY_USE: [(&str, &[&str]); 21] = [
    (
        "cli",
        &[
            "apps",
            "demo",
            "control",
            "daemon",
            "downstream",
            "telemetry",
            "proxy",
            "surface",
            "policy",
            "script",
            "identity",
            "upstream",
            "peer",
            "auth",
            "protocol",
            "wire",
            "catalog",
            "config",
            "store",
            "base",
        ],
    ),
    ("apps", &["config", "base"]),
    (
        "telemetry",
        &["proxy", "identity", "upstream", "protocol", "wire", "catalog", "config", "base"],
    ),
    ("demo", &["peer", "protocol", "wire", "base"]),
    ("control", &["telemetry", "proxy", "upstream", "auth", "catalog", "config", "base"]),
    ("daemon", &["protocol", "wire", "base"]),
    (
        "downstream",
        &[
            "proxy", "upstream", "peer", "auth", "identity", "protocol", "wire", "catalog",
            "config", "store", "base",
        ],
    ),
    (
        "proxy",
        &[
            "surface", "policy", "script", "identity", "upstream", "peer", "auth", "protocol",
            "wire", "catalog", "config", "store", "base",
        ],
    ),
    ("policy", &["config", "protocol", "wire", "base"]),
    ("script", &["wire", "base"]),
    ("surface", &["policy", "catalog", "config", "protocol", "wire", "base"]),
    ("upstream", &["peer", "auth", "protocol", "wire", "catalog", "config", "base"]),
    ("peer", &["protocol", "wire", "base"]),
    ("identity", &["wire", "config", "base"]),
    ("auth", &["protocol", "wire", "config", "store", "base"]),
    ("catalog", &["config", "protocol", "wire", "store", "base"]),
    ("protocol", &["wire", "base"]),
    ("config", &["store", "base"]),
    ("wire", &["base"]),
    ("store", &["base"]),
    ("base", &[]),
];

#[test]
fn layers_import_only_lower_layers() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let layers: BTreeSet<String> = fs::read_dir(&source)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    let known: BTreeSet<String> = MAY_USE.iter().map(|(layer, _)| (*layer).to_owned()).collect();
    assert_eq!(layers, known, "every layer has its row");
    for (layer, allowed) in MAY_USE {
        for (file, used) in uses(&source.join(layer)) {
            for other in used.iter().filter(|other| *other != layer) {
                assert!(allowed.contains(&other.as_str()), "{file} uses crate::{other}");
            }
        }
    }
}

/// Returns the top-level modules that each file below `directory` names after `crate::`.
fn uses(directory: &Path) -> Vec<(String, BTreeSet<String>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(uses(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path.display().to_string(), named(&text)));
        }
    }
    found
}

fn named(text: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (start, _) in text.match_indices("crate::") {
        let rest = &text[start + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ':' | ',' if depth == 0 && !word.is_empty() => {
                        named.insert(std::mem::take(&mut word));
                    }
                    c if depth == 0 && (c.is_alphanumeric() || c == '_') => {
                        // A word begins after a comma or at the start; a word after `::` is no
                        // layer.
                        word.push(c);
                    }
                    _ => {}
                }
            }
            named.extend((!word.is_empty()).then_some(word));
        } else {
            let word: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            named.insert(word);
        }
    }
    named.retain(|word| MAY_USE.iter().any(|(layer, _)| layer == word));
    named
}

#[test]
fn import_reader_sees_groups_and_paths() {
    let text = "use crate::{\n config::{A, wire},\n peer::B, protocol,\n};\nuse crate::wire::C; crate::upstream::D";
    let expected = ["config", "peer", "protocol", "upstream", "wire"].map(str::to_owned);
    assert_eq!(named(text), BTreeSet::from(expected));
}
