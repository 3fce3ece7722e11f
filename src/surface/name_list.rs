//! Lists of names of a bounded size.

use crate::base::{one_line, shortened};

/// Maximum length of a list of names in an error, in bytes.
pub(super) const MAX_NAME_LIST_BYTES: usize = 4000;
/// Maximum length of a name in a long list of names, in bytes as written in JSON.
const MAX_NAME_BYTES: usize = 64;

/// Returns the first of `names` that fit into `room` bytes, and the number of the others.
pub(super) fn name_list(names: &[impl AsRef<str>], room: usize) -> String {
    let mut text = String::new();
    for (position, name) in names.iter().enumerate() {
        let name = shortened_name(name.as_ref());
        if position > 0 && text.len() + name.len() > room {
            return format!("{text} and {} more", names.len() - position);
        }
        if position > 0 {
            text.push_str(", ");
        }
        text.push_str(&name);
    }
    text
}

/// Returns a name that is short enough for a long list.
pub(super) fn shortened_name(name: &str) -> String {
    let name = one_line(&shortened(name, MAX_NAME_BYTES));
    let mut size = 0;
    let fitting = name.char_indices().find(|(_, c)| {
        size += if matches!(c, '"' | '\\') { 2 } else { c.len_utf8() };
        size > MAX_NAME_BYTES
    });
    fitting.map_or_else(|| name.clone(), |(at, _)| format!("{}…", &name[..at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_names_ends_with_a_number() {
        assert_eq!(name_list(&["a", "b"], 100), "a, b");
        let names: Vec<String> = (0..1000).map(|number| format!("server_{number}")).collect();
        insta::assert_snapshot!(name_list(&names, 30));
    }
}
