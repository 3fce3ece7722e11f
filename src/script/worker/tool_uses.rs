//! The calls of tools that a script contains, for a check before it runs.

use oxc_allocator::Allocator;
use oxc_ast::ast::{Argument, CallExpression, Expression, ObjectPropertyKind, PropertyKey};
use oxc_ast_visit::{Visit, walk};

use super::typescript::{parse, place};
use crate::script::message::ToolUse;

/// Maximum number of calls that are reported.
const MAX_USES: usize = 1000;

/// Returns the calls of tools in a script; none if it has a syntax error.
pub(super) fn tool_uses(script: &str) -> Vec<ToolUse> {
    let allocator = Allocator::default();
    let mut finder = Finder { script, found: Vec::new() };
    if let Ok(program) = parse(&allocator, script) {
        finder.visit_program(&program);
    }
    finder.found
}

struct Finder<'s> {
    script: &'s str,
    found: Vec<ToolUse>,
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        let used = called(&it.callee, &it.arguments).filter(|_| self.found.len() < MAX_USES);
        if let Some((server, tool, arguments)) = used {
            let arguments = names_of(arguments);
            let place = place(self.script, it.span.start);
            self.found.push(ToolUse { server, tool, arguments, place });
        }
        walk::walk_call_expression(self, it);
    }
}

/// Returns the server, the tool and its arguments of `mcp.server.tool(…)` and of
/// `tools.call("server/tool", …)`.
fn called<'e, 'a>(
    callee: &'e Expression<'a>,
    arguments: &'e [Argument<'a>],
) -> Option<(String, String, &'e [Argument<'a>])> {
    let (object, last) = member(callee)?;
    if let Expression::Identifier(name) = object {
        let is_call = name.name == "tools" && last == "call";
        let Some(Argument::StringLiteral(named)) = arguments.first().filter(|_| is_call) else {
            return None;
        };
        let (server, tool) = named.value.split_once('/')?;
        let tool = tool.rsplit('/').next().unwrap_or(tool);
        return Some((server.to_owned(), tool.to_owned(), &arguments[1..]));
    }
    let (root, server) = member(object)?;
    let is_mcp = matches!(root, Expression::Identifier(name) if name.name == "mcp");
    is_mcp.then_some((server, last, arguments))
}

/// Returns the object of `object.name` or `object["name"]`, and the name.
fn member<'e, 'a>(expression: &'e Expression<'a>) -> Option<(&'e Expression<'a>, String)> {
    match expression {
        Expression::StaticMemberExpression(it) => Some((&it.object, it.property.name.to_string())),
        Expression::ComputedMemberExpression(it) => match &it.expression {
            Expression::StringLiteral(name) => Some((&it.object, name.value.to_string())),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the names of the arguments; `None` if they are not written in the call.
fn names_of(arguments: &[Argument<'_>]) -> Option<Vec<String>> {
    let object = match arguments {
        [] => return Some(Vec::new()),
        [Argument::ObjectExpression(object)] => object,
        _ => return None,
    };
    let name = |property: &ObjectPropertyKind<'_>| match property {
        ObjectPropertyKind::ObjectProperty(it) => match &it.key {
            PropertyKey::StaticIdentifier(name) => Some(name.name.to_string()),
            PropertyKey::StringLiteral(name) => Some(name.value.to_string()),
            _ => None,
        },
        ObjectPropertyKind::SpreadProperty(_) => None,
    };
    object.properties.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_tools_are_found_with_the_names_of_their_arguments() {
        let script = "const x: number = 1;
            const all = await Promise.all([mcp.a.get({ x, 'y z': 2 }), mcp['b-c'][\"d\"]()]);
            await tools.call('e/f/g', { ...all });
            for (const it of all) await mcp.a.put(it);
            mcp[x].y(); other.a.b(); tools.search('s'); mcp.a";
        let found: Vec<String> = tool_uses(script)
            .into_iter()
            .map(|it| {
                format!("{}/{} {:?} line {}", it.server, it.tool, it.arguments, it.place.line)
            })
            .collect();
        insta::assert_snapshot!(found.join("\n"));
        assert_eq!(tool_uses("mcp.a.b("), []);
    }
}
