//! Reads and edits one level of a JSON object without encoding the rest of it again.

use std::fmt;

use bytes::{BufMut, BytesMut};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Raw, raw_key::RawKey};

/// The members of an object in their order, each value as raw text.
struct RawMembers<'a>(Vec<(RawKey<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = RawMembers<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry()? {
                    members.push((key, value));
                }
                Ok(RawMembers(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

fn read_members(object: &Raw) -> RawMembers<'_> {
    serde_json::from_slice(object.as_bytes()).unwrap_or(RawMembers(Vec::new()))
}

/// Returns the value of the member `key`; `None` if `object` is not an object or has no such
/// member.
pub(crate) fn get(object: &Raw, key: &str) -> Option<Raw> {
    let [value] = get_each(object, [key]);
    value
}

/// Returns the values of several members, in one pass over the object.
pub(crate) fn get_each<const N: usize>(object: &Raw, keys: [&str; N]) -> [Option<Raw>; N] {
    let RawMembers(members) = read_members(object);
    keys.map(|key| {
        // The last of several equal keys counts, as in the parsers of JavaScript and Python.
        let (_, value) = members.iter().rev().find(|(name, _)| *name == *key)?;
        Some(Raw::part_of(object.bytes(), value))
    })
}

/// Returns the string member `key`.
pub(crate) fn get_str(object: &Raw, key: &str) -> Option<String> {
    get(object, key)?.read().ok()
}

/// Returns every member with its value, in order; empty if `object` is not an object.
pub(crate) fn entries(object: &Raw) -> Vec<(String, Raw)> {
    let RawMembers(members) = read_members(object);
    members
        .into_iter()
        .map(|(key, value)| (key.to_text(), Raw::part_of(object.bytes(), value)))
        .collect()
}

/// Returns the elements of an array; `None` if `array` is not an array.
pub(crate) fn elements(array: &Raw) -> Option<Vec<Raw>> {
    let elements: Vec<&RawValue> = serde_json::from_slice(array.as_bytes()).ok()?;
    Some(elements.into_iter().map(|element| Raw::part_of(array.bytes(), element)).collect())
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
    let RawMembers(members) = read_members(object);
    // The replacements as (start, end, new text); additions follow separately.
    let mut replaced: Vec<(usize, usize, &Raw)> = Vec::with_capacity(changes.len());
    let mut added: Vec<(&str, &Raw)> = Vec::new();
    for (key, value) in changes {
        match members.iter().rev().find(|(name, _)| *name == **key) {
            Some((_, old)) => {
                let start = offset(text, old);
                replaced.push((start, start + old.get().len(), value));
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
    let RawMembers(members) = read_members(object);
    let is_removed = |name: &RawKey<'_>| keys.iter().any(|key| *name == **key);
    if !members.iter().any(|(name, _)| is_removed(name)) {
        return object.clone();
    }
    let mut edited = BytesMut::with_capacity(text.len());
    edited.put_u8(b'{');
    let mut end_of_last = 0;
    for (name, value) in &members {
        // A member is removed with the comma and the white space before it, but not with the
        // opening brace.
        let end = offset(text, value) + value.get().len();
        let member = text[end_of_last..end].trim_ascii_start();
        end_of_last = end;
        if !is_removed(name) {
            if edited.len() > 1 {
                edited.put_u8(b',');
            }
            edited.put_slice(member[1..].trim_ascii_start());
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
    let text = String::from_utf8_lossy(value.as_bytes());
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

fn offset(text: &[u8], part: &RawValue) -> usize {
    part.get().as_ptr() as usize - text.as_ptr() as usize
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
