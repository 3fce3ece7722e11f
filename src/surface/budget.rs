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
    /// Left out altogether.
    None,
}

/// The order in which text gives way (DESIGN.md section 3): tools first, servers last.
fn forms(with_tools: bool, server_count: usize) -> impl Iterator<Item = Form> {
    let tools: &[Tools] = if with_tools {
        &[
            Tools::Summarized(LONGEST),
            Tools::Summarized(120),
            Tools::Summarized(60),
            Tools::Summarized(30),
            Tools::Named,
            Tools::Counted,
        ]
    } else {
        &[Tools::None]
    };
    let least = if with_tools { Tools::Counted } else { Tools::None };
    let giving_way =
        tools.iter().map(|tools| Form { servers: Servers::Described(LONGEST), tools: *tools });
    let lengths = [300, 200, 150, 120, 100, 80, 65, 50, 40, 30, 20];
    let shorter = lengths.map(|length| Form { servers: Servers::Described(length), tools: least });
    let named = std::iter::once(Form { servers: Servers::Named, tools: least });
    let counted = (0..server_count)
        .rev()
        .map(move |shown| Form { servers: Servers::Counted(shown), tools: least });
    giving_way.chain(shorter).chain(named).chain(counted)
}

/// `preamble`, then the blocks in the fullest form with which all of it fits the budget.
pub(super) fn compose(view: View<'_>, preamble: &str, with_tools: bool) -> String {
    let offered = offered(view);
    let server_count = offered.len();
    let compose = |form: Form| format!("{preamble}{}", blocks(view, &offered, form));
    let Some(budget) = view.settings.description_budget else {
        let tools = if with_tools { Tools::Summarized(LONGEST) } else { Tools::None };
        return compose(Form { servers: Servers::Described(LONGEST), tools });
    };
    let mut composed = String::new();
    for form in forms(with_tools, server_count) {
        composed = compose(form);
        if composed.len() <= budget {
            return composed;
        }
    }
    // No room for the preamble: at least how much there is to ask for.
    let count = Form { servers: Servers::Counted(0), tools: Tools::None };
    let counted = blocks(view, &offered, count);
    if !counted.is_empty() && counted.trim().len() <= budget {
        return counted.trim().to_owned();
    }
    let end = (0..=budget.min(composed.len())).rev().find(|end| composed.is_char_boundary(*end));
    composed.truncate(end.unwrap_or(0));
    composed
}

fn blocks(view: View<'_>, offered: &[Line], form: Form) -> String {
    let mut text = servers_block(offered, form.servers);
    match (tools_block(view, form.tools), form.tools) {
        (_, Tools::None) => {}
        (Some(tools), _) => text.push_str(&tools),
        (None, _) => text.push_str("\nNo tools are loaded yet."),
    }
    text
}

/// A server that has no catalog to show.
struct Line {
    name: String,
    /// What is said of it; on one line, and not yet escaped or cut.
    about: String,
}

fn offered(view: View<'_>) -> Vec<Line> {
    let lines = view.snapshot.servers.iter().filter_map(|server| {
        let Shown::Offered { trouble } = server.shown(view.settings.listing) else { return None };
        let about = server.description.clone().unwrap_or_default();
        let about = match trouble {
            Some(trouble) => {
                format!("{about} (not reachable now: {trouble})").trim_start().to_owned()
            }
            None => about,
        };
        Some(Line { name: sanitized(&server.name, 64), about: one_line(&about) })
    });
    lines.collect()
}

fn servers_block(offered: &[Line], form: Servers) -> String {
    if offered.is_empty() {
        return String::new();
    }
    let mut block = "\n<mcp_servers>\n".to_owned();
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
    block.push_str("</mcp_servers>\n");
    block
}

/// `None` when no server shows any tool.
fn tools_block(view: View<'_>, form: Tools) -> Option<String> {
    let mut block = "\n<tools>\n".to_owned();
    let mut is_empty = true;
    for server in &view.snapshot.servers {
        let Shown::Live(catalog) = server.shown(view.settings.listing) else { continue };
        is_empty = false;
        let name = sanitized(&server.name, 64);
        if matches!(form, Tools::Counted) {
            block.push_str(&format!("{name}: {} tools; ask with `query`\n", catalog.tools.len()));
            continue;
        }
        block.push_str(&format!("{name}:\n"));
        for tool in &catalog.tools {
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
