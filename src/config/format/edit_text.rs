//! Edits of a file's text in its own format.

use super::{
    file_format::Format,
    json,
    member_edit::{Edit, EditError},
    node::Unreadable,
    toml, yaml,
};

impl Format {
    /// Returns the text after the edits, which changes nothing else.
    ///
    /// # Errors
    /// If the text cannot be read, or not be edited without touching other parts.
    pub fn edit(self, text: &str, edits: &[Edit]) -> Result<String, EditError> {
        let mark = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
        let bare = &text[mark.len()..];
        // Not every library keeps the line ends of Windows.
        let is_windows = bare.contains('\n') && bare.split_inclusive('\n').all(ends_as_in_windows);
        let unix = if is_windows { bare.replace("\r\n", "\n") } else { bare.to_owned() };
        let says_nothing = self.read(&unix).is_err_and(|error| error == Unreadable::empty());
        let mut edited = if says_nothing {
            let comments = if unix.trim().is_empty() { "" } else { unix.trim_end() };
            let end = if comments.is_empty() { "" } else { "\n" };
            format!("{comments}{end}{}", self.edit_text(&self.beginning(edits), edits)?)
        } else {
            self.edit_text(&unix, edits)?
        };
        if is_windows {
            edited = edited.replace('\n', "\r\n");
        }
        // The result is checked whatever the library did: it must be exactly the wanted value.
        let read = |text: &str| self.value(text).ok();
        let before = read(bare).ok_or(EditError::ChangesMore)?;
        let mut wanted = before.clone();
        for edit in edits {
            edit.apply(&mut wanted);
        }
        // A removed or replaced part takes its line ends with it.
        let line_ends = |text: &str| text.matches("\r\n").count();
        let keeps_line_ends = match (line_ends(bare), line_ends(&edited)) {
            (had, has) if has >= had => true,
            (_, has) => has > 0 && edits.iter().any(|edit| edit.takes_away(&before)),
        };
        if !keeps_line_ends || read(&edited) != Some(wanted) {
            return Err(EditError::ChangesMore);
        }
        Ok(format!("{mark}{edited}"))
    }

    fn edit_text(self, text: &str, edits: &[Edit]) -> Result<String, EditError> {
        match self {
            Self::Json => json::edit(text, edits),
            Self::Yaml => yaml::edit(text, edits),
            Self::Toml => toml::edit(text, edits),
        }
    }

    /// Returns the start of a new file.
    fn beginning(self, edits: &[Edit]) -> String {
        match (self, edits.first()) {
            (Self::Json, _) => "{}\n".to_owned(),
            (Self::Yaml, Some(edit)) => format!("{}:\n", edit.path()[0]),
            _ => String::new(),
        }
    }
}

/// The last line may have no line end.
fn ends_as_in_windows(line: &str) -> bool {
    line.ends_with("\r\n") || !line.ends_with('\n')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn path(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    fn set(at: &str, value: Value) -> Edit {
        Edit::Set { path: path(at), value }
    }

    #[test]
    fn one_line_values_stay_on_one_line() {
        let edits = [
            set("a.tools.new", json!(true)),
            set("a.tools.old", json!({"enabled": true, "stale": true})),
            set("b.tools", json!({"x": true})),
        ];
        for (format, before, after) in [
            (
                Format::Json,
                r#"{ "a": { "tools": { "old": true } }, "b": { "c": 1 }, /* end */ }"#,
                concat!(
                    r#"{ "a": { "tools": { "old": { "enabled": true, "stale": true }, "#,
                    r#""new": true } }, "b": { "c": 1, "tools": { "x": true } }, /* end */ }"#
                ),
            ),
            (
                Format::Toml,
                "a = { tools = { old = true } } # a\nb = { c = 1 }\n",
                "a = { tools = { old = { enabled = true, stale = true }, new = true } } # a\nb = \
                    { c = 1, tools = { x = true } }\n",
            ),
            (
                Format::Yaml,
                "a: { tools: { old: true } } # a\nb: {c: 1}\n",
                "a: { tools: { old: {enabled: true, stale: true}, new: true } } # a\nb: {c: 1, \
                    tools: {x: true}}\n",
            ),
        ] {
            assert_eq!(format.edit(before, &edits).unwrap(), after, "{format:?}");
        }
    }

    #[test]
    fn values_on_separate_lines_get_more_lines() {
        let edits = [set("a.tools", json!({"x": true, "y": true}))];
        for (format, before, after) in [
            (
                Format::Yaml,
                "a: # note\n    c: 1\n    tools:\n",
                "a: # note\n    c: 1\n    tools:\n      x: true\n      y: true\n",
            ),
            (
                Format::Yaml,
                "a: # note\n  c: 1\n",
                "a: # note\n  c: 1\n  tools:\n    x: true\n    y: true\n",
            ),
            (Format::Toml, "[a]\nc = 1\n", "[a]\nc = 1\n\n[a.tools]\nx = true\ny = true\n"),
            (
                Format::Json,
                "{\n  \"a\": {\n    \"c\": 1\n  }\n}\n",
                "{\n  \"a\": {\n    \"c\": 1,\n    \"tools\": {\n      \"x\": true,\n      \"y\": \
                    true\n    }\n  }\n}\n",
            ),
        ] {
            assert_eq!(format.edit(before, &edits).unwrap(), after, "{format:?}");
        }
    }

    #[test]
    fn whole_member_is_replaced() {
        let edits = [set("m.a", json!({"url": "u"})), Edit::remove(&["m", "b"])];
        for (format, before, after) in [
            (
                Format::Toml,
                "[m]\n\n# why\n[m.a]\ncommand = \"x\"\n[m.a.env]\nK = \"v\"\n\n[m.b]\nc = \
                    1\n\n[z]\nq = 1\n",
                "[m]\n\n# why\n[m.a]\nurl = \"u\"\n\n[z]\nq = 1\n",
            ),
            (
                Format::Json,
                "{\r\n\t\"m\": {\r\n\t\t\"a\": 1,\r\n\t\t// gone\r\n\t\t\"b\": \
                    {\r\n\t\t}\r\n\t}\r\n}",
                "{\r\n\t\"m\": {\r\n\t\t\"a\": { \"url\": \"u\" }\r\n\t\t// gone\r\n\t}\r\n}",
            ),
            (Format::Yaml, "m:\n  b: 1\n  a:\n    c: 1\n", "m:\n  a: {url: u}\n"),
        ] {
            assert_eq!(format.edit(before, &edits).as_deref(), Ok(after), "{format:?}");
        }
    }

    #[test]
    fn lists_of_yaml_lose_and_gain_elements() {
        let before = "list:\n  # one\n  - name: x # why\n    args:\n      - -y\n  - name: y\n    \
            n: 2\n# end\nz: 1\n";
        let added = json!({"name": "z", "args": ["a", "b"], "env": {"K": "v"}});
        let edits = [set("list.-", added.clone()), Edit::remove(&["list", "0"])];
        let after = "list:\n  # one\n  - name: y\n    n: 2\n  - name: z\n    args: [a, b]\n    \
            env:\n      K: v\n# end\nz: 1\n";
        assert_eq!(Format::Yaml.edit(before, &edits).as_deref(), Ok(after));
        let after = "z: 1\nlist:\n  - name: z\n    args: [a, b]\n    env:\n      K: v\n";
        let edits = [set("list", json!([added]))];
        assert_eq!(Format::Yaml.edit("z: 1\n", &edits).as_deref(), Ok(after));
    }

    #[test]
    fn empty_file_gets_missing_mappings() {
        for (format, after) in [
            (Format::Json, "{\n  \"m\": {\n    \"a\": {\n      \"c\": 1\n    }\n  }\n}\n"),
            (Format::Toml, "[m.a]\nc = 1\n"),
            (Format::Yaml, "m:\n  a:\n    c: 1\n"),
        ] {
            let edits = [Edit::put(&json!({}), &["m", "a"], json!({"c": 1}))];
            assert_eq!(format.edit("", &edits).as_deref(), Ok(after), "{format:?}");
            let comment = if format == Format::Json { "// why" } else { "# why" };
            let after = format!("{comment}\n{after}");
            assert_eq!(format.edit(comment, &edits), Ok(after), "{format:?}");
        }
    }

    #[test]
    fn keys_that_look_like_values_are_found() {
        for name in ["1", "true", "~"] {
            let before = format!("{name}:\n  tools: {{a: true}}\n");
            let edited =
                Format::Yaml.edit(&before, &[set(&format!("{name}.tools.b"), json!(true))]);
            assert_eq!(edited.unwrap(), format!("{name}:\n  tools: {{a: true, b: true}}\n"));
        }
    }
}
