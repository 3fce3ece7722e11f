//! The laws of this layer for bytes from outside (see `crate::fuzz`).

use std::collections::BTreeSet;

use super::{
    Cache, Digests, StoredServer,
    definition_change::{changes, keep_former},
    record::with_header,
    uri_matcher::UriMatcher,
};
use crate::base::FuzzInput;

/// A template matches the URIs that its expansion can have.
///
/// Arguments: the template. The rest is a URI.
pub(crate) fn templates(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let (template, uri) = (input.text_line(), input.rest_text());
    let matches = |uri: &str| UriMatcher::new(uri).matches(&template);
    let found = matches(&uri);
    let Some(parts) = parts(&template) else {
        assert!(!found, "a malformed template matches");
        return;
    };
    if !is_within_limits(&template, &parts, &uri) {
        return;
    }
    let expressions = parts.iter().filter(|part| matches!(part, Part::Expression(_))).count();
    if expressions == 0 {
        assert_eq!(found, template == uri);
    }
    // The time of the reference grows exponentially.
    if expressions <= 3 && uri.len() <= 24 {
        assert_eq!(found, is_expansion(&parts, &uri), "{template} {uri}");
    }
    let expansion: String = parts.iter().map(Part::expanded).collect();
    if is_within_limits(&template, &parts, &expansion) {
        assert!(matches(&expansion), "{template} does not match {expansion}");
    }
}

fn is_within_limits(template: &str, parts: &[Part<'_>], uri: &str) -> bool {
    template.len() <= 1024 && parts.len() <= 32 && uri.len() <= 8 * 1024
}

/// A part of a template: a text, or an expression without its braces.
enum Part<'a> {
    Text(&'a str),
    Expression(&'a str),
}

fn parts(template: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        let end = start + rest[start..].find('}')?;
        parts.push(Part::Text(&rest[..start]));
        parts.push(Part::Expression(&rest[start + 1..end]));
        rest = &rest[end + 1..];
    }
    parts.push(Part::Text(rest));
    Some(parts)
}

impl<'a> Part<'a> {
    fn is_query(expression: &str) -> bool {
        expression.starts_with(['?', '&'])
    }

    fn may_hold_slashes(expression: &str) -> bool {
        expression.starts_with(['?', '&', '+', '#', '/']) || expression.ends_with('*')
    }

    /// Returns a text that may stand in place of the part.
    fn expanded(&self) -> &'a str {
        match self {
            Self::Text(text) => text,
            Self::Expression(expression) if Self::is_query(expression) => "?a=1",
            Self::Expression(expression) if Self::may_hold_slashes(expression) => "a/ä",
            Self::Expression(_) => "ä.b",
        }
    }
}

/// Tries every way in which the parts can share the text.
fn is_expansion(parts: &[Part<'_>], uri: &str) -> bool {
    match parts.split_first() {
        None => uri.is_empty(),
        Some((Part::Text(text), others)) => {
            uri.strip_prefix(text).is_some_and(|rest| is_expansion(others, rest))
        }
        Some((Part::Expression(expression), others)) => {
            let ends = (0..=uri.len()).filter(|end| uri.is_char_boundary(*end));
            ends.filter(|end| *end > 0 || Part::is_query(expression))
                .filter(|end| Part::may_hold_slashes(expression) || !uri[..*end].contains('/'))
                .any(|end| is_expansion(others, &uri[end..]))
        }
    }
}

/// A stored catalog that can be read is written and read again as the same.
///
/// The input is a file. Since its checksum is wrong after any change, the body is also read with
/// the right one.
pub(crate) fn catalog_file(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    input.line();
    for file in [bytes.to_vec(), with_header(input.rest().to_vec())] {
        if let Ok(stored) = StoredServer::decode(file) {
            check_stored(&stored);
        }
    }
}

fn check_stored(stored: &StoredServer) {
    assert_eq!(StoredServer::decode(stored.encode()), Ok(stored.clone()));
    let changed: BTreeSet<String> =
        changes(stored, None).into_iter().map(|change| change.now.name).collect();
    for record in &stored.records {
        let digests = Digests::of(&record.catalog);
        let differing = stored.pins.changed(&digests);
        let unverified = stored.pins.unverified(&digests);
        assert!(differing.is_subset(&unverified) && unverified.is_subset(&changed));
        assert!(record.covers(&record.catalog.discovery.declared));
        // A tool that is approved, or seen for the first time, is not suspicious.
        let mut pins = stored.pins.clone();
        record.catalog.tools.iter().for_each(|tool| pins.approve(tool));
        assert!(pins.unverified(&digests).is_empty());
        let mut former = stored.former.clone();
        keep_former(&mut former, &stored.records[0].catalog, &record.catalog, &pins);
    }
    let declared = stored.records.last().map(|record| record.catalog.discovery.declared.clone());
    if let Some(declared) = declared {
        let best = Cache::best(stored.records.clone(), Some(&declared));
        assert!(best.is_some_and(|best| best.is_for(&declared)));
    }
    assert_eq!(Cache::best(stored.records.clone(), None), stored.records.first().cloned());
}
