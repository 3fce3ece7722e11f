//! The causes of an error.

use std::{error::Error, iter::successors};

/// Returns the text of an error with those of its causes: `cannot write the file: disk full`.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
