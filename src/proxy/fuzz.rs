//! The laws of this layer for bytes from outside (see `crate::fuzz`).

use super::remembered_loads::{names_in, value_of};

pub(crate) use super::results::fuzz::large_results;

/// Names that were read are the same after they were written, whatever the value was.
pub(crate) fn remembered_loads(value: &[u8]) {
    let names = names_in(value);
    assert!(!names.contains(""));
    // No server has a name with a line end.
    if !names.iter().any(|name| name.ends_with('\r')) {
        assert_eq!(names_in(&value_of(names.clone())), names);
    }
}
