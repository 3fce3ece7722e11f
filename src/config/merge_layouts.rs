//! In any layout of a config, a merge changes only the lines that have to change.

use std::{collections::BTreeSet, path::Path};

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::config::Environment;

/// A server's `tools` as a user may have written them.
#[derive(Clone, Debug)]
struct Server {
    tools: Option<Vec<(&'static str, &'static str)>>,
    is_inline: bool,
    comment: bool,
}

/// The layout of a file.
#[derive(Clone, Debug)]
struct Layout {
    extension: &'static str,
    indent: usize,
    trailing_comma: bool,
    blank_lines: bool,
    line_end: &'static str,
}

const NAMES: [&str; 8] =
    ["read_file", "list-all", "a.b", "yes", "12", "with space", "it's", "quote\"d"];
const SETTINGS: [&str; 4] = ["true", "false", "long", "stale"];

fn servers() -> impl Strategy<Value = Vec<Server>> {
    let tools = proptest::sample::subsequence(NAMES.to_vec(), 0..6).prop_flat_map(|names| {
        let settings =
            proptest::collection::vec(proptest::sample::select(&SETTINGS[..]), names.len());
        settings.prop_map(move |settings| names.iter().copied().zip(settings).collect::<Vec<_>>())
    });
    let server = (proptest::option::weighted(0.8, tools), any::<bool>(), any::<bool>())
        .prop_map(|(tools, is_inline, comment)| Server { tools, is_inline, comment });
    proptest::collection::vec(server, 1..4)
}

fn layout() -> impl Strategy<Value = Layout> {
    let extension = proptest::sample::select(vec!["json", "yaml", "toml"]);
    let line_end = proptest::sample::select(vec!["\n", "\n", "\r\n"]);
    (extension, 1..5usize, any::<bool>(), any::<bool>(), line_end).prop_map(
        |(extension, indent, trailing_comma, blank_lines, line_end)| Layout {
            extension,
            indent,
            trailing_comma,
            blank_lines,
            line_end,
        },
    )
}

impl Layout {
    fn render(&self, servers: &[Server]) -> String {
        let text = match self.extension {
            "json" => self.json(servers),
            "yaml" => self.yaml(servers),
            _ => self.toml(servers),
        };
        (text + self.end()).replace('\n', self.line_end)
    }

    /// Returns the text that follows the servers.
    fn end(&self) -> &'static str {
        match self.extension {
            "json" => "// # end\n",
            "yaml" => "# end\nlisting: growing\n",
            _ => "[timeouts] # end\ncall = 5\n",
        }
    }

    fn pad(&self, depth: usize) -> String {
        " ".repeat(self.indent * depth)
    }

    fn gap(&self) -> &'static str {
        if self.blank_lines { "\n" } else { "" }
    }

    fn json(&self, servers: &[Server]) -> String {
        let last = if self.trailing_comma { "," } else { "" };
        let mut text = "// the servers\n{\n".to_owned();
        text += &format!("{}\"surface\":  \"direct\" , /* kept */\n{}", self.pad(1), self.gap());
        text += &format!("{}\"mcpServers\": {{\n", self.pad(1));
        for (index, server) in servers.iter().enumerate() {
            text += &format!("{}\"s{index}\": {{ // number {index}\n", self.pad(2));
            text += &format!("{}\"command\": \"x\"", self.pad(3));
            if let Some(tools) = &server.tools {
                let tools = tools.iter().map(|(name, setting)| {
                    format!("{}: {}", Value::from(*name), long(setting, ": ", true))
                });
                text += &format!(",\n{}\"tools\": ", self.pad(3));
                text += &self.json_tools(tools.collect(), server, last);
            }
            let comma = if index + 1 < servers.len() { "," } else { last };
            text += &format!("{last}\n{}{}}}{comma}\n", self.gap(), self.pad(2));
        }
        text + &format!("{}}}{last}\n}}\n", self.pad(1))
    }

    fn json_tools(&self, tools: Vec<String>, server: &Server, last: &str) -> String {
        if server.is_inline || tools.is_empty() {
            return format!("{{{}}}", tools.join(", "));
        }
        let comment = if server.comment { " // first" } else { "" };
        let mut text = format!("{{{comment}\n");
        let count = tools.len();
        for (index, tool) in tools.into_iter().enumerate() {
            let comma = if index + 1 < count { "," } else { last };
            let comment = if server.comment { " // why" } else { "" };
            text += &format!("{}{tool}{comma}{comment}\n", self.pad(4));
        }
        text + &format!("{}}}", self.pad(3))
    }

    fn yaml(&self, servers: &[Server]) -> String {
        let mut text = "# the servers\nsurface:   direct # kept\n".to_owned();
        text += &format!("{}mcpServers:\n", self.gap());
        for (index, server) in servers.iter().enumerate() {
            text += &format!("{}s{index}: # number {index}\n", self.pad(1));
            let anchor = if index == 0 { "env: &env {A: b}" } else { "env: *env" };
            text += &format!("{}{anchor}\n{}command:   x\n", self.pad(2), self.pad(2));
            let Some(tools) = &server.tools else { continue };
            let tools = tools.iter();
            let tools: Vec<String> = tools
                .map(|(name, setting)| {
                    format!("{}: {}", Value::from(*name), long(setting, ": ", false))
                })
                .collect();
            if server.is_inline || tools.is_empty() {
                text += &format!("{}tools: {{{}}}\n", self.pad(2), tools.join(", "));
                continue;
            }
            text += &format!("{}tools:\n", self.pad(2));
            for tool in tools {
                let comment = if server.comment { "   # why" } else { "" };
                text += &format!("{}{tool}{comment}\n", self.pad(3));
            }
            text += self.gap();
        }
        text
    }

    fn toml(&self, servers: &[Server]) -> String {
        let mut text = format!("# the servers\nsurface =   \"direct\" # kept\n{}", self.gap());
        for (index, server) in servers.iter().enumerate() {
            text += &format!("[mcpServers.s{index}] # number {index}\ncommand =  'x'\n");
            if let Some(tools) = &server.tools {
                let tools: Vec<String> = tools
                    .iter()
                    .map(|(name, setting)| {
                        format!("{} = {}", Value::from(*name), long(setting, " = ", false))
                    })
                    .collect();
                if server.is_inline {
                    text += &format!("tools = {{ {} }}\n", tools.join(", "));
                } else {
                    text += &format!("{}[mcpServers.s{index}.tools]\n", self.gap());
                    for tool in tools {
                        let comment = if server.comment { " # why" } else { "" };
                        text += &format!("{}{tool}{comment}\n", self.pad(1));
                    }
                }
            }
            text += self.gap();
        }
        text
    }
}

/// Returns a switch in the long form of a format.
fn long(setting: &str, equals: &str, quoted: bool) -> String {
    let quote = if quoted { "\"" } else { "" };
    match setting {
        "long" => format!("{{ {quote}enabled{quote}{equals}false }}"),
        "stale" => {
            format!("{{ {quote}enabled{quote}{equals}true, {quote}stale{quote}{equals}true }}")
        }
        plain => plain.to_owned(),
    }
}

fn file(layout: &Layout, servers: &[Server]) -> ConfigFile {
    let path = Path::new("dormouse").with_extension(layout.extension);
    ConfigFile::in_memory(path, layout.render(servers))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn merge_changes_only_necessary_lines(
        servers in servers(),
        layout in layout(),
        tools in proptest::sample::subsequence(NAMES.to_vec(), 0..=NAMES.len()),
        which in any::<proptest::sample::Index>(),
    ) {
        let before = file(&layout, &servers);
        let environment = Environment::default();
        let config = before.parse(&environment).unwrap().config;
        let which = which.index(servers.len());
        let changes = ToolChanges::between(&config.servers[which].offer.tools, &tools);
        let after = before.with_tools(&config.servers[which].name, &changes).unwrap();

        let merged = after.parse(&environment).unwrap().config;
        let again = ToolChanges::between(&merged.servers[which].offer.tools, &tools);
        prop_assert!(again.is_empty(), "{again:?} in\n{}", after.text());
        for name in NAMES {
            let old = &config.servers[which].offer.tools;
            let new = &merged.servers[which].offer.tools;
            prop_assert_eq!(old.allow(name), new.allow(name), "{}", name);
        }
        check_lines(&before.text(), &after.text(), &servers[which], which, &changes);
    }
}

/// Checks that both texts are equal outside of the server's lines, and that inside every line stays
/// that is not about a changed tool, except for the one after which the first new tool is added.
fn check_lines(before: &str, after: &str, server: &Server, which: usize, changes: &ToolChanges) {
    let shown = || format!("s{which}, {changes:?}\n{before}\n-----\n{after}");
    let ((start, old, end), (new_start, new, new_end)) =
        (parts(before, which), parts(after, which));
    assert_eq!((start, end), (new_start, new_end), "{}", shown());
    let moved: BTreeSet<String> =
        changes.gone.iter().chain(&changes.back).map(|name| quoted(name)).collect();
    let anchor = match &server.tools {
        // Tools are added after the command, or after the last tool; an inline map is on one line.
        None => "command".to_owned(),
        Some(_) if server.is_inline => "tools".to_owned(),
        Some(tools) => tools.last().map_or_else(|| "tools".to_owned(), |(name, _)| quoted(name)),
    };
    let mut left = new.lines();
    for line in old.lines().filter(|line| !line.trim().is_empty()) {
        let may_change = moved.iter().any(|name| line.contains(name.as_str()))
            || (!changes.is_empty() && line.contains(&anchor));
        assert!(may_change || left.any(|kept| kept == line), "lost {line:?} of {}", shown());
    }
    for comment in ["// why", "# why", "// first"] {
        assert_eq!(old.matches(comment).count(), new.matches(comment).count(), "{}", shown());
    }
}

/// Returns the text before a server's lines, those lines, and the rest.
fn parts(text: &str, which: usize) -> (&str, &str, &str) {
    let (own, next) = (format!("number {which}"), format!("number {}", which + 1));
    let start = text.find(&own).unwrap() + own.len();
    let line_of = |at: usize| text[..at].rfind('\n').unwrap() + 1;
    let end = text.find(&next).map_or_else(|| line_of(text.rfind("# end").unwrap()), line_of);
    (&text[..start], &text[start..end], &text[end..])
}

fn quoted(name: &str) -> String {
    Value::from(name).to_string()
}
