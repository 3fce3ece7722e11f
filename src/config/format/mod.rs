//! The three formats of a config: each is read into the same tree of located values, and edited in
//! place with every other byte preserved.

mod edit_text;
mod file_format;
mod json;
mod member_edit;
mod node;
mod toml;
mod yaml;

pub use file_format::Format;
pub(crate) use member_edit::{Edit, EditError};
pub(super) use node::{Content, Member, Node, Unreadable, place};

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{ConfigError, Environment, parse};

    const FORMS: [(&str, &str); 3] = [
        (
            "x.json",
            "// é\n{\n  \"surface\": \"direct\",\n  \"mcpServers\": {\"a\": {\"command\": \"x\", \
                \"args\": [\"1\", TAIL]}}\n}",
        ),
        ("x.yml", "# é\nsurface: direct\nmcpServers:\n  a: {command: x, args: ['1', TAIL]}\n"),
        (
            "x.toml",
            "# é\nsurface = \"direct\"\n[mcpServers]\na = { command = \"x\", args = [\"1\", TAIL] \
                }\n",
        ),
    ];

    #[test]
    fn all_formats_have_the_same_meaning() {
        let values = FORMS.map(|(name, text)| {
            let text = text.replace("TAIL", "\"2\"");
            Format::of(Path::new(name)).read(&text).unwrap().to_value()
        });
        assert_eq!(values[0]["mcpServers"]["a"]["args"][1], "2");
        assert_eq!(values[0], values[1]);
        assert_eq!(values[0], values[2]);
    }

    #[test]
    fn problems_have_places_in_all_formats() {
        let environment = Environment::default();
        for (name, text) in FORMS {
            let wrong = text.replace("TAIL", "7");
            let Err(ConfigError::Invalid(problems)) = parse(&wrong, Path::new(name), &environment)
            else {
                panic!("{name} is valid")
            };
            let problem = &problems[0];
            let line = wrong.lines().nth(problem.line - 1).unwrap();
            let rest: String = line.chars().skip(problem.column - 1).collect();
            assert!(rest.starts_with('7'), "{name}: {problem}");
            assert_eq!(problem.key_path, "mcpServers.a.args[1]", "{name}");
        }
    }
}
