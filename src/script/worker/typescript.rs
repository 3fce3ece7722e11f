//! Scripts as the interpreter runs them: without the types of TypeScript, and with a known form of
//! their end.
//!
//! Types are replaced by spaces, so that errors have the places of the script as it was written.

use std::ops::Range;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrowFunctionExpression, Class, FormalParameter, FunctionBody, MethodDefinition,
    MethodDefinitionType, Program, PropertyDefinition, PropertyDefinitionType, ReturnStatement,
    Statement, TSAsExpression, TSClassImplements, TSIndexSignature, TSInterfaceDeclaration,
    TSNonNullExpression, TSSatisfiesExpression, TSThisParameter, TSTypeAliasDeclaration,
    TSTypeAnnotation, TSTypeAssertion, TSTypeParameterDeclaration, TSTypeParameterInstantiation,
    VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::{GetSpan as _, SourceType, Span};

use crate::script::message::{Failure, Place};

/// Maximum depth of brackets in a script. The parser calls itself for each.
const MAX_BRACKETS: usize = 500;

/// A script in JavaScript.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The script, with a space in place of each character of a type.
    pub(super) code: String,
    /// True if the script ends with a `return` outside of functions. The value of any other script
    /// is that of its last statement.
    pub(super) returns: bool,
}

impl Source {
    /// Reads a script in JavaScript or TypeScript.
    ///
    /// # Errors
    /// If it has a syntax error, or a form of TypeScript that is no mere type.
    pub(super) fn read(script: &str) -> Result<Self, Failure> {
        let allocator = Allocator::default();
        let program = parse(&allocator, script)?;
        let mut types =
            TypeFinder { script, found: Vec::new(), functions: 0, returns: false, refused: None };
        types.visit_program(&program);
        if let Some((what, at)) = types.refused {
            return Err(Failure::syntax(what, Some(place(script, at))));
        }
        Ok(Self { code: blank(script, types.found), returns: types.returns })
    }
}

/// Parses a script.
///
/// # Errors
/// If it has a syntax error.
pub(super) fn parse<'a>(allocator: &'a Allocator, script: &'a str) -> Result<Program<'a>, Failure> {
    if depth(script) > MAX_BRACKETS {
        let message = format!("the script has more than {MAX_BRACKETS} open brackets");
        return Err(Failure::syntax(message, None));
    }
    parse_of_any_depth(allocator, script)
}

/// Parses a script whose depth its author has bounded. Brackets in texts do not count.
///
/// # Errors
/// If it has a syntax error.
pub(super) fn parse_of_any_depth<'a>(
    allocator: &'a Allocator,
    script: &'a str,
) -> Result<Program<'a>, Failure> {
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let kind = SourceType::ts().with_module(true);
    let parsed = Parser::new(allocator, script, kind).with_options(options).parse();
    if let Some(problem) = parsed.diagnostics.first() {
        let place = problem.labels.first().map(|label| place(script, label.offset()));
        let help = problem.help.as_ref().map(|help| format!(" ({help})"));
        let message = format!("{}{}", problem.message, help.unwrap_or_default());
        return Err(Failure::syntax(message, place));
    }
    Ok(parsed.program)
}

/// Returns the greatest number of brackets that are open at once, with those in texts.
fn depth(script: &str) -> usize {
    let (mut depth, mut greatest, mut before) = (0_usize, 0, 0);
    for byte in script.bytes() {
        match byte {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            // An arrow is no bracket.
            b'>' if before == b'=' => {}
            b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = byte;
        greatest = greatest.max(depth);
    }
    greatest
}

/// Returns the place of an offset in bytes.
pub(super) fn place(script: &str, offset: impl TryInto<usize>) -> Place {
    let offset = offset.try_into().unwrap_or(usize::MAX).min(script.len());
    let before = &script[..script.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.matches('\n').count() + 1;
    Place { line, column: before[line_start..].chars().count() + 1 }
}

/// A part of the script that is only for types.
struct RemovedText {
    at: Range<usize>,
    rest: Rest,
}

/// The characters that replace a removed text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Spaces,
    /// A semicolon at its begin, where the text separates its neighbours.
    Semicolon,
    /// A bracket at its begin: the text ends with the bracket that opens parameters, which has to
    /// be on the line of what is before.
    OpenBracket,
    /// A bracket at its end: the text begins with the bracket that closes parameters, and what
    /// follows has to be on the line of that bracket.
    Bracket,
}

/// Replaces the characters of types by spaces.
fn blank(script: &str, mut found: Vec<RemovedText>) -> String {
    found.sort_by_key(|text| text.at.start);
    let mut code = String::with_capacity(script.len());
    let mut done = 0;
    for RemovedText { at, rest } in found {
        if at.start < done {
            continue;
        }
        code.push_str(&script[done..at.start]);
        let last = script[at.clone()].chars().count().saturating_sub(1);
        for (position, c) in script[at.clone()].chars().enumerate() {
            code.push(match c {
                _ if position == last && rest == Rest::Bracket => ')',
                _ if position == 0 && rest == Rest::OpenBracket => '(',
                '\n' | '\r' | '\u{2028}' | '\u{2029}' => c,
                _ if position == 0 && rest == Rest::Semicolon => ';',
                _ => ' ',
            });
        }
        done = at.end;
    }
    code.push_str(&script[done..]);
    code
}

/// Finds the types of a script.
struct TypeFinder<'s> {
    script: &'s str,
    found: Vec<RemovedText>,
    /// The number of functions around the present node.
    functions: usize,
    returns: bool,
    /// What cannot be run, and its offset.
    refused: Option<(&'static str, u32)>,
}

const ENUM: &str = "enums are not supported: use an object, such as { A: 'a' }";
const NAMESPACE: &str = "namespaces are not supported";
const MODULE: &str =
    "a script cannot import or export: its tools are in mcp, and its answer is what it returns";
const PARTED_ASSERTION: &str = "a value has to begin on the line of the type before it";
const PARAMETER_PROPERTY: &str =
    "properties as parameters of a constructor are not supported: assign them in its body";

impl TypeFinder<'_> {
    fn remove(&mut self, start: u32, end: u32) {
        self.add(start, end, Rest::Spaces);
    }

    fn remove_statement(&mut self, span: Span) {
        self.add(span.start, span.end, Rest::Semicolon);
    }

    fn add(&mut self, start: u32, end: u32, rest: Rest) {
        let at = start as usize..end as usize;
        if !at.is_empty() {
            self.found.push(RemovedText { at, rest });
        }
    }

    /// Removes a type after an expression. A bracket on the next line begins another statement,
    /// which would continue the expression without the type.
    fn remove_after_expression(&mut self, start: u32, end: u32) {
        let rest = &self.script[end as usize..];
        let next = rest.trim_start();
        let is_on_other_line = rest[..rest.len() - next.len()].contains('\n');
        let separates = is_on_other_line && next.starts_with(['(', '[', '`']);
        self.add(start, end, if separates { Rest::Semicolon } else { Rest::Spaces });
    }

    /// Removes a sign such as `?` if it follows an offset.
    fn remove_sign(&mut self, after: u32, sign: char) {
        let rest = &self.script[after as usize..];
        let space = rest.len() - rest.trim_start().len();
        if rest[space..].starts_with(sign) {
            let at = after as usize + space;
            self.found.push(RemovedText { at: at..at + 1, rest: Rest::Spaces });
        }
    }

    /// Removes words such as `private` between two offsets.
    fn remove_words(&mut self, start: u32, end: u32, words: &[&str]) {
        let text = &self.script[start as usize..end as usize];
        let mut at = start as usize;
        for word in text.split(|c: char| !c.is_ascii_alphabetic()) {
            if words.contains(&word) {
                self.found.push(RemovedText { at: at..at + word.len(), rest: Rest::Spaces });
            }
            at += word.len();
            at += self.script[at..].chars().next().map_or(0, char::len_utf8);
        }
    }

    fn refuse(&mut self, what: &'static str, at: u32) {
        self.refused.get_or_insert((what, at));
    }
}

/// Modifiers of members of classes that are only for types.
const MODIFIERS: [&str; 5] = ["public", "private", "protected", "readonly", "override"];

impl<'a> Visit<'a> for TypeFinder<'_> {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        match it {
            Statement::VariableDeclaration(it) if it.declare => self.remove_statement(it.span),
            Statement::ClassDeclaration(it) if it.declare => self.remove_statement(it.span),
            Statement::FunctionDeclaration(it) if it.body.is_none() => {
                self.remove_statement(it.span);
            }
            Statement::TSEnumDeclaration(it) if it.declare => self.remove_statement(it.span),
            Statement::TSNamespaceDeclaration(it) if it.declare => self.remove_statement(it.span),
            Statement::TSGlobalDeclaration(it) if it.declare => self.remove_statement(it.span),
            Statement::TSEnumDeclaration(it) => self.refuse(ENUM, it.span.start),
            Statement::TSNamespaceDeclaration(it) => self.refuse(NAMESPACE, it.span.start),
            Statement::TSExternalModuleDeclaration(_) | Statement::TSGlobalDeclaration(_) => {
                self.refuse(NAMESPACE, it.span().start);
            }
            Statement::ImportDeclaration(_)
            | Statement::ExportAllDeclaration(_)
            | Statement::ExportDefaultDeclaration(_)
            | Statement::ExportNamedDeclaration(_)
            | Statement::TSExportAssignment(_)
            | Statement::TSImportEqualsDeclaration(_)
            | Statement::TSNamespaceExportDeclaration(_) => self.refuse(MODULE, it.span().start),
            _ => walk::walk_statement(self, it),
        }
    }

    fn visit_ts_type_alias_declaration(&mut self, it: &TSTypeAliasDeclaration<'a>) {
        self.remove_statement(it.span);
    }

    fn visit_ts_interface_declaration(&mut self, it: &TSInterfaceDeclaration<'a>) {
        self.remove_statement(it.span);
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.remove(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.remove(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.remove(it.span.start, it.span.end);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.remove_after_expression(it.expression.span().end, it.span.end);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.remove_after_expression(it.expression.span().end, it.span.end);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.remove(it.expression.span().end, it.span.end);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        let (start, end) = (it.span.start, it.expression.span().start);
        if self.script[start as usize..end as usize].contains('\n') {
            self.refuse(PARTED_ASSERTION, start);
        }
        self.remove(it.span.start, it.expression.span().start);
        self.visit_expression(&it.expression);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        if let Some(returned) = &it.return_type {
            let (start, end) = (returned.span.start as usize, returned.span.end as usize);
            let bracket = self.script[..start].rfind(')').and_then(|at| u32::try_from(at).ok());
            if let Some(bracket) = bracket.filter(|_| self.script[start..end].contains('\n')) {
                self.add(bracket, returned.span.end, Rest::Bracket);
            }
        }
        if let Some(parameters) = &it.type_parameters {
            let (start, end) = (parameters.span.start as usize, parameters.span.end as usize);
            let bracket = self.script[end..].find('(').and_then(|at| u32::try_from(end + at).ok());
            if let Some(bracket) = bracket.filter(|_| self.script[start..end].contains('\n')) {
                self.add(parameters.span.start, bracket + 1, Rest::OpenBracket);
            }
        }
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.remove(it.span.start, it.span.end);
        self.remove_sign(it.span.end, ',');
    }

    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {
        // Removed with its class, with the word before it.
    }

    fn visit_ts_index_signature(&mut self, it: &TSIndexSignature<'a>) {
        self.remove_statement(it.span);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.remove_sign(it.id.span().end, '!');
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            self.refuse(PARAMETER_PROPERTY, it.span.start);
        }
        if it.optional {
            self.remove_sign(it.pattern.span().end, '?');
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        let head = it.id.as_ref().map_or(it.body.span.start, |id| id.span.start);
        if it.r#abstract {
            self.remove_words(it.span.start, head, &["abstract"]);
        }
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last()) {
            let before = &self.script[..first.span.start as usize];
            let word = before.rfind("implements").unwrap_or(before.len());
            self.add(u32::try_from(word).unwrap_or(first.span.start), last.span.end, Rest::Spaces);
        }
        walk::walk_class(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition {
            return self.remove_statement(it.span);
        }
        self.remove_words(it.span.start, it.key.span().start, &MODIFIERS);
        let name_end = it.key.span().end + u32::from(it.computed);
        if it.optional {
            self.remove_sign(name_end, '?');
        }
        if it.definite {
            self.remove_sign(name_end, '!');
        }
        walk::walk_property_definition(self, it);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        let is_abstract = it.r#type == MethodDefinitionType::TSAbstractMethodDefinition;
        if is_abstract || it.value.body.is_none() {
            return self.remove_statement(it.span);
        }
        self.remove_words(it.span.start, it.key.span().start, &MODIFIERS);
        if it.optional {
            self.remove_sign(it.key.span().end + u32::from(it.computed), '?');
        }
        walk::walk_method_definition(self, it);
    }

    fn visit_function_body(&mut self, it: &FunctionBody<'a>) {
        self.functions += 1;
        walk::walk_function_body(self, it);
        self.functions -= 1;
    }

    fn visit_return_statement(&mut self, it: &ReturnStatement<'a>) {
        self.returns |= self.functions == 0;
        walk::walk_return_statement(self, it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(script: &str) -> String {
        Source::read(script).unwrap_or_else(|failure| panic!("{script}: {failure:?}")).code
    }

    /// Collapses spaces.
    fn squeezed(script: &str) -> String {
        code(script).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn types_are_replaced_by_spaces() {
        for (script, expected) in [
            ("const a: number = 1", "const a = 1"),
            ("let a!: string; let [b, c]: [number, string] = x", "let a ; let [b, c] = x"),
            (
                "function f<T>(this: T, a?: number, ...b: T[]): T | null { return a! }",
                "function f ( a , ...b ) { return a }",
            ),
            ("const f = async <T,>(a: T): Promise<T> => a as T", "const f = async (a ) => a"),
            ("type A = { b: number }\ninterface C<T> extends A { d?: T }\nlet e", "; ; let e"),
            ("declare const a: number; declare function f(): void; f()", "; ; f()"),
            ("function f(a: string): void; function f(a) {}", "; function f(a) {}"),
            ("const a = <number>b; const c = b satisfies D", "const a = b; const c = b"),
            (
                "const a = new Map<string, number[]>(); f<A>(1); g<B>`x`",
                "const a = new Map (); f (1); g `x`",
            ),
            (
                "abstract class A<T> extends B<T> implements C, D<T> { private readonly a?: T = 1; \
                b!: number; declare c: T; abstract d(): void; [key: string]: T; \
                protected async e(): Promise<void> {} }",
                "class A extends B { a = 1; b ; ; ; ; async e() {} }",
            ),
            (
                "try {} catch (e: unknown) {} for (const a of b as C[]) {}",
                "try {} catch (e ) {} for (const a of b ) {}",
            ),
            ("type A = 1\n(f as any)()", "; (f )()"),
            ("a! = 1; a!.b!.c; (a as B).c", "a = 1; a .b .c; (a ).c"),
        ] {
            assert_eq!(squeezed(script), expected, "{script}");
        }
    }

    #[test]
    fn removed_types_do_not_join_or_part_what_is_around_them() {
        let returned = "const f = (a: A): Promise<{\n  b: number\n}> => 1";
        let code = Source::read(returned).unwrap().code;
        assert_eq!(
            code.lines().map(str::trim_end).collect::<Vec<_>>(),
            ["const f = (a", "", " ) => 1"]
        );
        let next = Source::read("const a = b as C\n(d)").unwrap().code;
        assert_eq!(next, "const a = b;    \n(d)");
        assert!(Source::read(&"a=>(".repeat(600)).unwrap_err().message.contains("brackets"));
    }

    #[test]
    fn javascript_stays_as_it_is() {
        for script in [
            "const a = b ? c : d; label: for (;;) { break label }",
            "const a = await mcp.a.b({c: 1}); `x${a < b && c > d}`; /<T>/.test(a)",
            "class A { static b = 1; #c; get d() { return this.#c } static { this.b } }",
        ] {
            assert_eq!(code(script), script);
        }
    }

    #[test]
    fn places_of_the_rest_stay() {
        let script = "type Ä = {\n  b: 'ö' }\nconst é: Ä = x; throw 1";
        let code = code(script);
        assert_eq!(code.lines().count(), 3);
        assert_eq!(
            code.lines().last().unwrap().chars().count(),
            "const é: Ä = x; throw 1".chars().count()
        );
        assert!(code.ends_with("= x; throw 1"));
    }

    #[test]
    fn only_a_return_outside_of_functions_counts() {
        let returns = |script| Source::read(script).unwrap().returns;
        assert!(returns("if (a) { return 1 }"));
        assert!(returns("try { return await f() } finally {}"));
        assert!(!returns("const f = () => { return 1 }; function g() { return 2 } f()"));
        assert!(!returns("class A { b() { return 1 } }"));
    }

    #[test]
    fn errors_have_their_place() {
        for (script, line, column, text) in [
            ("const a = 1;\nconst b = ;", 2, 11, "Unexpected token"),
            ("enum A { B }", 1, 1, "enums are not supported"),
            ("1;\nnamespace A { export const b = 1 }", 2, 1, "namespaces"),
            ("import fs from 'fs'", 1, 1, "cannot import"),
            ("class A { constructor(private a: number) {} }", 1, 23, "constructor"),
        ] {
            let failure = Source::read(script).unwrap_err();
            assert!(failure.message.contains(text), "{script}: {failure:?}");
            assert_eq!(failure.place, Some(Place { line, column }), "{script}");
        }
    }

    #[test]
    fn deep_script_is_refused() {
        for script in ["[".repeat(200_000), "(".repeat(501), "{".repeat(1_000_000)] {
            assert!(Source::read(&script).is_err());
        }
        assert!(Source::read(&format!("{}1{}", "[".repeat(400), "]".repeat(400))).is_ok());
    }
}
