//! The message about an unknown key.

pub(super) fn unknown_key(key: &str, known: &[String]) -> String {
    let near = known
        .iter()
        .map(|known| (strsim::jaro_winkler(&key.to_lowercase(), &known.to_lowercase()), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match near {
        Some((_, near)) => format!("unknown key {key:?}; did you mean {near:?}?"),
        None if known.is_empty() => format!("unknown key {key:?}"),
        None => format!("unknown key {key:?}; known keys: {}", known.join(", ")),
    }
}
