//! Paths, arguments and variables in JSON: as text with percent signs for bytes that JSON cannot
//! hold.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use serde::{Deserialize as _, Deserializer, Serialize, Serializer};

const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

fn encoded(text: &OsStr) -> String {
    percent_encode(text.as_bytes(), ESCAPED).to_string()
}

fn decoded(text: &str) -> OsString {
    OsString::from_vec(percent_decode_str(text).collect())
}

pub(super) mod path {
    use std::path::{Path, PathBuf};

    use super::*;

    pub(in crate::daemon) fn serialize<S: Serializer>(
        path: &Path,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        encoded(path.as_os_str()).serialize(to)
    }

    pub(in crate::daemon) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<PathBuf, D::Error> {
        Ok(decoded(&String::deserialize(from)?).into())
    }
}

pub(super) mod list {
    use super::*;

    pub(in crate::daemon) fn serialize<S: Serializer>(
        list: &[OsString],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(|text| encoded(text)))
    }

    pub(in crate::daemon) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<OsString>, D::Error> {
        Ok(Vec::<String>::deserialize(from)?.iter().map(|text| decoded(text)).collect())
    }
}

pub(super) mod pairs {
    use super::*;

    pub(in crate::daemon) fn serialize<S: Serializer>(
        pairs: &[(OsString, OsString)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(pairs.iter().map(|(name, value)| (encoded(name), encoded(value))))
    }

    pub(in crate::daemon) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(OsString, OsString)>, D::Error> {
        let pairs = Vec::<(String, String)>::deserialize(from)?;
        Ok(pairs.iter().map(|(name, value)| (decoded(name), decoded(value))).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_of_the_system_survives(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let text = OsString::from_vec(bytes);
            prop_assert_eq!(decoded(&encoded(&text)), text);
        }
    }
}
