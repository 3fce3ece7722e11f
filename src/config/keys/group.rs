//! A group of keys that belong to one subject.

use std::fmt;

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::key_class::{CLASS, ChangeEffect, KeyClass};
use crate::config::key_path::Step;

/// The problem of a value of the right type: the path from the object of its group, and a message.
pub(in crate::config) type KeyProblem = (Vec<Step>, String);

/// Keys of one object of the file that belong to one subject.
///
/// The fields of the type are the keys. Their doc comments are the documentation, their attributes
/// have their [`KeyClass`], and [`Default`] has the values of keys that are not written.
pub(in crate::config) trait KeyGroup:
    Default + Serialize + DeserializeOwned + JsonSchema
{
    /// Returns the problems of values that have the right type. `written` has the keys of this
    /// group with their variables expanded.
    fn problems(&self, _written: &Value) -> Vec<KeyProblem> {
        Vec::new()
    }

    /// Removes the keys of this group from an object, and returns an object of them.
    fn take(object: &mut Value) -> Value {
        let mut taken = Map::new();
        if let Some(written) = object.as_object_mut() {
            for key in members(&Self::default()).keys() {
                taken.extend(written.shift_remove_entry(key));
            }
        }
        Value::Object(taken)
    }

    /// Returns these values as a running dormouse can adopt them in place of `now`, and the keys
    /// that keep their values until the next start.
    fn adopted(&self, now: &Self) -> (Self, Vec<String>) {
        let (mut adopted, now) = (members(self), members(now));
        let fixed = classes::<Self>().into_iter().filter(|(key, class)| {
            class.effect == ChangeEffect::AtNextStart && adopted.get(key) != now.get(key)
        });
        let fixed: Vec<String> = fixed.map(|(key, _)| key).collect();
        for key in &fixed {
            adopted.insert(key.clone(), now[key].clone());
        }
        let adopted = serde_json::from_value(Value::Object(adopted));
        (adopted.expect("values of one type have one form"), fixed)
    }

    /// Returns whether a change from these values to others takes effect at once.
    fn changes_at_once(&self, other: &Self) -> bool {
        let (these, others) = (members(self), members(other));
        classes::<Self>().iter().all(|(key, class)| {
            class.effect == ChangeEffect::AtOnce || these.get(key) == others.get(key)
        })
    }

    /// Writes the values without secrets, for `Debug`.
    fn fmt_without_secrets(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (values, mut shown) = (members(self), f.debug_struct(name));
        for (key, class) in classes::<Self>() {
            if class.is_secret {
                shown.field(&key, &"…");
            } else {
                shown.field(&key, &format_args!("{}", values[&key]));
            }
        }
        shown.finish()
    }
}

/// Returns the keys that a type declares, with their classes.
pub(in crate::config) fn classes<T: JsonSchema>() -> Vec<(String, KeyClass)> {
    let schema = T::json_schema(&mut SchemaGenerator::default()).to_value();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let class = |property: &Value| serde_json::from_value(property[CLASS].clone());
    properties
        .map(|(key, property)| {
            let class = class(property);
            (key.clone(), class.unwrap_or_else(|_| panic!("the key {key:?} declares no class")))
        })
        .collect()
}

/// Returns the values of a group by their keys.
fn members<G: KeyGroup>(group: &G) -> Map<String, Value> {
    match serde_json::to_value(group) {
        Ok(Value::Object(members)) => members,
        other => panic!("a group of keys is an object, and not {other:?}"),
    }
}
