//! A script that an agent wants to run.

use crate::wire::Raw;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedScript {
    pub code: String,
    /// The value of the variable `input`.
    pub input: Raw,
}
