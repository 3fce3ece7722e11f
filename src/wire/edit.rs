//! Reads and edits one level of a JSON object without encoding the rest of it again.

use bytes::{BufMut, BytesMut};

use super::{
    Raw,
    json_node::{Child, JsonKind, JsonNode},
};

/// Returns the members of an object in their order; any other value has none.
fn members(object: &Raw) -> impl Iterator<Item = Child<'_>> {
    let node = object.node();
    (node.kind() == JsonKind::Object).then(|| node.children()).into_iter().flatten()
}

/// Returns the value of the member `key`; `None` if `object` is not an object or has no such
/// member.
pub(crate) fn get(object: &Raw, key: &str) -> Option<Raw> {
    let [value] = get_each(object, [key]);
    value
}

/// Returns the values of several members with different keys, in one pass over the object.
pub(crate) fn get_each<const N: usize>(object: &Raw, keys: [&str; N]) -> [Option<Raw>; N] {
    let mut found = [None; N];
    for member in members(object) {
        if let Some(position) = keys.iter().position(|key| member.has_key(key)) {
            // The last of several equal keys counts, as in the parsers of JavaScript and Python.
            found[position] = Some(member.node);
        }
    }
    found.map(|value| Some(Raw::part_of(object.bytes(), value?.text())))
}

/// Returns the string member `key`.
pub(crate) fn get_str(object: &Raw, key: &str) -> Option<String> {
    get(object, key)?.read().ok()
}

/// Returns every member with its value, in order; empty if `object` is not an object.
pub(crate) fn entries(object: &Raw) -> Vec<(String, Raw)> {
    members(object)
        .map(|member| (member.key_text(), Raw::part_of(object.bytes(), member.node.text())))
        .collect()
}

/// Returns the elements of an array; `None` if `array` is not an array.
pub(crate) fn elements(array: &Raw) -> Option<Vec<Raw>> {
    let node = array.node();
    let element = |child: Child<'_>| Raw::part_of(array.bytes(), child.node.text());
    (node.kind() == JsonKind::Array).then(|| node.children().map(element).collect())
}

/// Replaces the value of the member `key` in place, or adds the member at the end.
///
/// Every other byte of the object stays unchanged.
#[must_use]
pub(crate) fn set(object: &Raw, key: &str, value: &Raw) -> Raw {
    set_each(object, &[(key, value)])
}

/// Sets several members as [`set`] does, in one pass over the object.
#[must_use]
pub(crate) fn set_each(object: &Raw, changes: &[(&str, &Raw)]) -> Raw {
    let text = object.bytes();
    let members: Vec<Child<'_>> = members(object).collect();
    // The replacements as (start, end, new text); additions follow separately.
    let mut replaced: Vec<(usize, usize, &Raw)> = Vec::with_capacity(changes.len());
    let mut added: Vec<(&str, &Raw)> = Vec::new();
    for (key, value) in changes {
        match members.iter().rev().find(|member| member.has_key(key)) {
            Some(member) => {
                let (start, end) = span(text, member.node);
                replaced.push((start, end, value));
            }
            None => added.push((key, value)),
        }
    }
    replaced.sort_unstable_by_key(|(start, ..)| *start);
    let growth: usize = changes.iter().map(|(key, value)| key.len() + value.len() + 8).sum();
    let mut edited = BytesMut::with_capacity(text.len() + growth);
    let mut copied = 0;
    for (start, end, value) in replaced {
        edited.put_slice(&text[copied..start]);
        edited.put_slice(value.as_bytes());
        copied = end;
    }
    edited.put_slice(&text[copied..]);
    let mut is_empty = members.is_empty();
    for (key, value) in added {
        reopen(&mut edited);
        if !std::mem::take(&mut is_empty) {
            edited.put_u8(b',');
        }
        edited.put_slice(Raw::encode(key).as_bytes());
        edited.put_u8(b':');
        edited.put_slice(value.as_bytes());
        edited.put_u8(b'}');
    }
    Raw::trusted(edited.freeze())
}

/// Sets members of the object that is `object`'s member `outer`, and creates that object if it is
/// missing.
#[must_use]
pub(crate) fn set_within(object: &Raw, outer: &str, changes: &[(&str, &Raw)]) -> Raw {
    let inner = get(object, outer).unwrap_or_else(Raw::empty_object);
    set(object, outer, &set_each(&inner, changes))
}

/// Removes the closing brace, so that a member can be added. A value that is not an object becomes
/// an empty one.
fn reopen(object: &mut BytesMut) {
    let body = object.trim_ascii_end().strip_suffix(b"}").map(|body| body.trim_ascii_end().len());
    match body {
        Some(length) => object.truncate(length),
        None => *object = BytesMut::from(&b"{"[..]),
    }
}

/// Returns the object without the members named in `keys`; the others keep their text and order.
#[must_use]
pub(crate) fn without(object: &Raw, keys: &[&str]) -> Raw {
    let text = object.bytes();
    let members: Vec<Child<'_>> = members(object).collect();
    let is_removed = |member: &Child<'_>| keys.iter().any(|key| member.has_key(key));
    if !members.iter().any(is_removed) {
        return object.clone();
    }
    let mut edited = BytesMut::with_capacity(text.len());
    edited.put_u8(b'{');
    let mut end_of_last = 0;
    for member in members {
        // A member is removed with the comma and the white space before it, but not with the
        // opening brace.
        let (_, end) = span(text, member.node);
        let written = text[end_of_last..end].trim_ascii_start();
        end_of_last = end;
        if !is_removed(&member) {
            if edited.len() > 1 {
                edited.put_u8(b',');
            }
            edited.put_slice(written[1..].trim_ascii_start());
        }
    }
    edited.put_u8(b'}');
    Raw::trusted(edited.freeze())
}

/// The only ASCII control character that JSON permits inside a string (RFC 8259, section 7).
const DELETE: char = '\u{7f}';

/// Returns the same value with the characters for which `is_escaped` holds written as `\uXXXX`.
/// ASCII characters except delete stay as they are.
#[must_use]
pub(crate) fn escaped(value: &Raw, is_escaped: impl Fn(char) -> bool) -> Raw {
    let text = value.text();
    let is_escaped = |c: char| (c == DELETE || !c.is_ascii()) && is_escaped(c);
    if !text.contains(is_escaped) {
        return value.clone();
    }
    // JSON has these characters only inside strings, where an escape means the same.
    let mut edited = BytesMut::with_capacity(text.len() + 16);
    let mut encoded = [0; 4];
    for c in text.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                edited.put_slice(format!("\\u{unit:04x}").as_bytes());
            }
        } else {
            edited.put_slice(c.encode_utf8(&mut encoded).as_bytes());
        }
    }
    Raw::trusted(edited.freeze())
}

/// Returns the positions in `text` at which a part of it begins and ends.
fn span(text: &[u8], part: JsonNode<'_>) -> (usize, usize) {
    let start = part.text().as_ptr() as usize - text.as_ptr() as usize;
    (start, start + part.text().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn replacing_a_member_keeps_every_other_byte() {
        let object = raw(r#"{ "z" : 1e2 , "name":"a" , "u":"\ud800"}"#);
        assert_eq!(
            set(&object, "name", &raw("\"b\"")).to_string(),
            r#"{ "z" : 1e2 , "name":"b" , "u":"\ud800"}"#
        );
    }

    #[test]
    fn adding_a_member_appends_it() {
        assert_eq!(set(&raw(r#"{"a":1 }"#), "b", &raw("2")).to_string(), r#"{"a":1,"b":2}"#);
        assert_eq!(set(&raw("{}"), "b", &raw("2")).to_string(), r#"{"b":2}"#);
        assert_eq!(set(&raw("[1]"), "b", &raw("2")).to_string(), r#"{"b":2}"#);
    }

    #[test]
    fn sets_several_members_in_one_pass() {
        let object = raw(r#"{"name":"a", "arguments":{"x":1e2} ,"more":0}"#);
        let changes = [("arguments", &raw("{}")), ("new", &raw("7")), ("name", &raw("\"b\""))];
        assert_eq!(
            set_each(&object, &changes).to_string(),
            r#"{"name":"b", "arguments":{} ,"more":0,"new":7}"#
        );
        assert_eq!(
            set_each(&raw("[]"), &[("a", &raw("1")), ("b", &raw("2"))]).to_string(),
            r#"{"a":1,"b":2}"#
        );
        assert_eq!(
            get_each(&object, ["more", "no", "name"]),
            [Some(raw("0")), None, Some(raw("\"a\""))]
        );
    }

    #[test]
    fn removing_members_keeps_the_order_of_the_rest() {
        let object = raw(r#"{"c":1.10,"a":2,"b":3}"#);
        assert_eq!(without(&object, &["a", "x"]).to_string(), r#"{"c":1.10,"b":3}"#);
        assert_eq!(without(&object, &["x"]), object);
    }

    #[test]
    fn last_of_equal_keys_counts() {
        let object = raw(r#"{"a":1,"a":2}"#);
        assert_eq!(get(&object, "a"), Some(raw("2")));
        assert_eq!(set(&object, "a", &raw("3")).to_string(), r#"{"a":1,"a":3}"#);
    }

    #[test]
    fn non_unicode_key_is_kept() {
        let object = raw(r#"{"\ud800": 1, "a":2}"#);
        assert_eq!(get(&object, "a"), Some(raw("2")));
        assert_eq!(set(&object, "b", &raw("3")).to_string(), r#"{"\ud800": 1, "a":2,"b":3}"#);
        assert_eq!(without(&object, &["a"]).to_string(), r#"{"\ud800": 1}"#);
    }

    #[test]
    fn selected_characters_become_escapes() {
        let value = raw("{\"a\u{e0041}\": \"\u{200b}é\",\n \"b\": 1}");
        let escaped = escaped(&value, |c| c != 'é');
        assert_eq!(escaped.to_string(), "{\"a\\udb40\\udc41\": \"\\u200bé\",\n \"b\": 1}");
    }

    #[test]
    fn escaped_key_is_found() {
        assert_eq!(get_str(&raw(r#"{"n\u0061me":"x"}"#), "name").as_deref(), Some("x"));
    }
}
