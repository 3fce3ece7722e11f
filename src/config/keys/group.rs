//! A group of keys that belong to one subject.

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::config::key_path::Step;

/// The problem of a value of the right type: the path from the object of its group, and a message.
pub(in crate::config) type KeyProblem = (Vec<Step>, String);

/// Keys of one object of the file that belong to one subject.
///
/// The fields of the type are the keys. Their doc comments are the documentation, and
/// [`Default`] has the values of keys that are not written.
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
        let known = serde_json::to_value(Self::default()).unwrap_or_default();
        if let (Some(members), Some(known)) = (object.as_object_mut(), known.as_object()) {
            for key in known.keys() {
                taken.extend(members.shift_remove_entry(key));
            }
        }
        Value::Object(taken)
    }
}
