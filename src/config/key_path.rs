//! Paths from a value to a part of it.

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// Returns the path of these keys.
pub(super) fn keys<const N: usize>(keys: [&str; N]) -> Vec<Step> {
    keys.map(|key| Step::Key(key.to_owned())).to_vec()
}

/// Returns a path in the form `mcpServers.docs.args[1]`.
pub(super) fn show_path(path: &[Step]) -> String {
    let mut shown = String::new();
    for step in path {
        match step {
            Step::Key(key) => {
                if !shown.is_empty() {
                    shown.push('.');
                }
                shown.push_str(key);
            }
            Step::Index(index) => shown.push_str(&format!("[{index}]")),
        }
    }
    shown
}
