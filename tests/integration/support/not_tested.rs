//! The end of a test that needs what the machine does not have.

use std::{env, fmt::Display};

/// If this variable is set, a test fails on a machine that cannot have its fault.
const REQUIRED: &str = "DORMOUSE_FAULTS_REQUIRED";

/// Reports that a test ends here, since this machine cannot have its fault.
#[track_caller]
pub fn not_tested(why: impl Display) {
    assert!(env::var_os(REQUIRED).is_none(), "not tested: {why}");
    eprintln!("not tested: {why}");
}
