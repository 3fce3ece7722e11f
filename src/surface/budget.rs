//! The blocks `<mcp_servers>` and `<tools>`, written so that they fit a budget of bytes.

use super::{
    View,
    text::{escaped, first_sentence, one_line, sanitized},
};
use crate::catalog::Shown;

/// The longest text of a server or tool in characters, whatever the budget.
const LONGEST: usize = 1000;

/// How much is said. Each later form is shorter; the first that fits is used.
#[derive(Clone, Copy)]
struct Form {
    servers: Servers,
    tools: Tools,
}

#[derive(Clone, Copy)]
enum Servers {
    /// Each with its description, cut to this many characters.
    Described(usize),
    Named,
    /// Only the first so many by name, the rest as a number.
    Counted(usize),
}

#[derive(Clone, Copy)]
enum Tools {
    /// Each with the first sentence of its description, cut to this many characters.
    Summarized(usize),
    Named,
    /// A number for each server.
    Counted,
    /// One number for all.
    Summed,
    /// Left out altogether.
    None,
}

/// The order in which text gives way (DESIGN.md section 3): tools first, servers last.
fn forms(with_tools: bool, server_count: usize) -> Vec<Form> {
    let described = Servers::Described(LONGEST);
    if !with_tools {
        let full = Form { servers: described, tools: Tools::None };
        return std::iter::once(full)
            .chain(shorter(Tools::None))
            .chain(counted(Tools::None, server_count))
            .collect();
    }
    let summaries = [LONGEST, 120, 60, 30].map(Tools::Summarized);
    let shown = summaries.into_iter().chain([Tools::Named, Tools::Counted, Tools::Summed]);
    shown
        .map(|tools| Form { servers: described, tools })
        .chain(shorter(Tools::Counted))
        .chain(shorter(Tools::Summed))
        .chain(counted(Tools::Summed, server_count))
        .collect()
}

/// Shorter and shorter descriptions of servers, and their names alone.
fn shorter(tools: Tools) -> impl Iterator<Item = Form> {
    let lengths = [300, 200, 150, 120, 100, 80, 65, 50, 40, 30, 20].map(Servers::Described);
    lengths.into_iter().chain([Servers::Named]).map(move |servers| Form { servers, tools })
}

/// Fewer and fewer names of servers.
fn counted(tools: Tools, server_count: usize) -> impl Iterator<Item = Form> {
    (0..server_count).rev().map(move |shown| Form { servers: Servers::Counted(shown), tools })
}

/// `preamble`, then what can be loaded and the tools of what is, in the fullest form with which all of it
/// fits the budget.
pub(super) fn compose(view: View<'_>, preamble: &str, with_tools: bool) -> String {
    let offered = Block { tag: "mcp_servers", lines: offered(view) };
    compose_block(view, preamble, &offered, with_tools)
}

/// `preamble`, then these lines as groups of tools, as above.
pub(super) fn compose_groups(view: View<'_>, preamble: &str, groups: Vec<Line>) -> String {
    compose_block(view, preamble, &Block { tag: "groups", lines: groups }, false)
}

fn compose_block(view: View<'_>, preamble: &str, block: &Block, with_tools: bool) -> String {
    let server_count = block.lines.len();
    let compose = |form: Form| format!("{preamble}{}", blocks(view, block, form));
    let Some(budget) = view.snapshot.settings.description_budget else {
        let tools = if with_tools { Tools::Summarized(LONGEST) } else { Tools::None };
        return compose(Form { servers: Servers::Described(LONGEST), tools });
    };
    for form in forms(with_tools, server_count) {
        let composed = compose(form);
        if composed.len() <= budget {
            return composed;
        }
    }
    // No room for the preamble as well: at least how much there is to ask for, or as much of the
    // preamble as fits. A block is never cut.
    let tools = if with_tools { Tools::Summed } else { Tools::None };
    let counted = blocks(view, block, Form { servers: Servers::Counted(0), tools });
    let counted = counted.trim();
    if !counted.is_empty() && counted.len() <= budget {
        return counted.to_owned();
    }
    let end = (0..=budget.min(preamble.len())).rev().find(|end| preamble.is_char_boundary(*end));
    preamble[..end.unwrap_or(0)].trim_end().to_owned()
}

fn blocks(view: View<'_>, block: &Block, form: Form) -> String {
    let mut text = servers_block(block, form.servers);
    match (tools_block(view, form.tools), form.tools) {
        (_, Tools::None) => {}
        (Some(tools), _) => text.push_str(&tools),
        (None, _) => text.push_str("\nNo tools are loaded yet."),
    }
    text
}

/// Servers between two tags, one a line.
struct Block {
    tag: &'static str,
    lines: Vec<Line>,
}

/// A server, and what is said of it.
pub(super) struct Line {
    name: String,
    /// On one line, and not yet escaped or cut.
    about: String,
}

impl Line {
    pub(super) fn new(name: &str, about: &str) -> Self {
        Self { name: sanitized(name, 64), about: one_line(about) }
    }
}

fn offered(view: View<'_>) -> Vec<Line> {
    let lines = view.snapshot.servers.iter().filter_map(|server| {
        let Shown::Offered { trouble, .. } = server.shown(view.snapshot.settings.listing) else {
            return None;
        };
        let about = server.description.clone().unwrap_or_default();
        let about = match trouble {
            Some(trouble) => format!("{about} ({trouble})").trim_start().to_owned(),
            None => about,
        };
        Some(Line::new(&server.name, &about))
    });
    lines.collect()
}

fn servers_block(block: &Block, form: Servers) -> String {
    let Block { tag, lines: offered } = block;
    if offered.is_empty() {
        return String::new();
    }
    let mut block = format!("\n<{tag}>\n");
    let (shown, longest) = match form {
        Servers::Described(longest) => (offered.len(), longest),
        Servers::Named => (offered.len(), 0),
        Servers::Counted(shown) => (shown, 0),
    };
    for Line { name, about } in offered.iter().take(shown) {
        let about = if longest == 0 { String::new() } else { escaped(about, longest) };
        if about.is_empty() {
            block.push_str(&format!("- {name}\n"));
        } else {
            block.push_str(&format!("- {name}: {about}\n"));
        }
    }
    if shown < offered.len() {
        block.push_str(&format!("({} more; ask with `query`)\n", offered.len() - shown));
    }
    block.push_str(&format!("</{tag}>\n"));
    block
}

/// `None` when no server shows any tool.
fn tools_block(view: View<'_>, form: Tools) -> Option<String> {
    if matches!(form, Tools::Summed) {
        return summed(view);
    }
    let mut block = "\n<tools>\n".to_owned();
    let mut is_empty = true;
    for server in &view.snapshot.servers {
        let Shown::Live(exposed) = server.shown(view.snapshot.settings.listing) else { continue };
        let tools = &exposed.catalog.tools;
        is_empty = false;
        let name = sanitized(&server.name, 64);
        if matches!(form, Tools::Counted) {
            block.push_str(&format!("{name}: {} tools; ask with `query`\n", tools.len()));
            continue;
        }
        block.push_str(&format!("{name}:\n"));
        for tool in tools {
            block.push_str(&format!("- {}", sanitized(&tool.name, 200)));
            if let Tools::Summarized(longest) = form {
                let summary = sanitized(first_sentence(&tool.description), longest);
                if !summary.is_empty() {
                    block.push_str(&format!(": {summary}"));
                }
            }
            block.push('\n');
        }
    }
    block.push_str("</tools>");
    (!is_empty).then_some(block)
}

fn summed(view: View<'_>) -> Option<String> {
    let (mut servers, mut tools) = (0, 0);
    for server in &view.snapshot.servers {
        if let Shown::Live(exposed) = server.shown(view.snapshot.settings.listing) {
            servers += 1;
            tools += exposed.catalog.tools.len();
        }
    }
    let block =
        format!("\n<tools>\n{tools} tools of {servers} servers; ask with `query`\n</tools>");
    (servers > 0).then_some(block)
}
