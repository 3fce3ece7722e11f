//! Translates the references to variables in each app's syntax into dormouse's: `${NAME}`.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use super::locations::Os;
use crate::config::literal;

/// The references that an app expands in the strings of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    /// No references.
    Literal,
    /// References in braces, such as `${NAME}`, `${env:NAME}` and `{env:NAME}`.
    Braces,
    /// References in braces, and `$NAME`.
    Dollar,
}

/// A reference that expands to a single `$`.
const DOLLAR_REFERENCE: &str = "${DORMOUSE_DOLLAR:-$}";

/// A variable that the user has to set, and its purpose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequiredVariable {
    pub name: String,
    pub purpose: String,
}

/// The values that the references in a file can have.
#[derive(Debug)]
pub(super) struct VariableContext<'a> {
    pub(super) syntax: VariableSyntax,
    pub(super) os: Os,
    pub(super) home: &'a Path,
    /// Directory of the project, for a file that belongs to one.
    pub(super) project: Option<&'a Path>,
    /// Descriptions of the values that the app asks the user for at its start, by id (VS Code,
    /// `inputs`).
    pub(super) inputs: BTreeMap<String, String>,
}

/// The required variables and the notes that a translation has produced.
#[derive(Debug, Default)]
pub(super) struct VariableFindings {
    pub(super) required: Vec<RequiredVariable>,
    pub(super) notes: Vec<String>,
}

impl VariableContext<'static> {
    /// Returns the context for a text of unknown origin.
    pub(super) fn for_unknown_file() -> Self {
        let here = Path::new("");
        Self {
            syntax: VariableSyntax::Braces,
            os: Os::Linux,
            home: here,
            project: None,
            inputs: BTreeMap::new(),
        }
    }
}

impl VariableContext<'_> {
    /// Translates the references in all strings of a value, and adds what it finds to `findings`.
    pub(super) fn translate(&self, value: &mut Value, findings: &mut VariableFindings) {
        match value {
            Value::String(text) => *text = self.translate_text(text, findings),
            Value::Array(values) => {
                for value in values {
                    self.translate(value, findings);
                }
            }
            Value::Object(members) => {
                for value in members.values_mut() {
                    self.translate(value, findings);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn translate_text(&self, text: &str, findings: &mut VariableFindings) -> String {
        if self.syntax == VariableSyntax::Literal {
            return literal(text);
        }
        let mut written = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            written.push_str(&rest[..at]);
            rest = &rest[at..];
            let length = if let Some((length, ours)) = self.translate_reference(rest, findings) {
                if ours.starts_with("${") && written.ends_with('$') {
                    // `$${` would be an escaped reference.
                    written.pop();
                    written.push_str(DOLLAR_REFERENCE);
                }
                written.push_str(&ours);
                length
            } else if rest.starts_with("${") {
                // Without an end this is not a reference.
                written.push_str("$${");
                2
            } else {
                written.push_str(&rest[..1]);
                1
            };
            rest = &rest[length..];
        }
        written + rest
    }

    /// Returns the length in bytes of the reference at the beginning of the text, and its
    /// translation. `None` if the text does not begin with a reference.
    fn translate_reference(
        &self,
        text: &str,
        findings: &mut VariableFindings,
    ) -> Option<(usize, String)> {
        if let Some(inside) = text_between(text, "${{", "}}") {
            let name = inside.trim().rsplit('.').next().unwrap_or_default();
            let ours = require_variable(name, format!("{} of Continue", inside.trim()), findings);
            return Some((inside.len() + 5, ours));
        }
        if let Some(inside) = text_between(text, "${", "}") {
            return Some((inside.len() + 3, self.translate_braced(inside, findings)));
        }
        if let Some(inside) = text_between(text, "{{", "}}") {
            let length = inside.len() + 4;
            let placeholder = &text[..length];
            findings.notes.push(format!(
                "{placeholder} is replaced only by its app, and passed on unchanged"
            ));
            return Some((length, placeholder.to_owned()));
        }
        for kind in ["env", "file"] {
            let opening = format!("{{{kind}:");
            if let Some(inside) = text_between(text, &opening, "}") {
                let inside = format!("{kind}:{inside}");
                return Some((inside.len() + 2, self.translate_braced(&inside, findings)));
            }
        }
        let name = text.strip_prefix('$').filter(|_| self.syntax == VariableSyntax::Dollar)?;
        let length = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let name = &name[..length.unwrap_or(name.len())];
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_name.then(|| (name.len() + 1, format!("${{{name}}}")))
    }

    /// Translates the text between the braces of a reference.
    fn translate_braced(&self, inside: &str, findings: &mut VariableFindings) -> String {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let (kind, argument) = inside.split_once(':').unwrap_or((inside, ""));
        let of_project =
            |part: fn(&Path) -> &Path, findings: &mut VariableFindings| match self.project {
                Some(project) => path(part(project)),
                None => require_variable(
                    "WORKSPACE_FOLDER",
                    "the directory of the project".to_owned(),
                    findings,
                ),
            };
        match kind {
            "env" => format!("${{{argument}}}"),
            "input" => {
                let purpose = self.inputs.get(argument).cloned().unwrap_or_default();
                let purpose = if purpose.is_empty() {
                    format!("the answer to {argument:?}")
                } else {
                    purpose
                };
                require_variable(argument, purpose, findings)
            }
            "file" => {
                let file = argument.rsplit(['/', '\\']).next().unwrap_or_default();
                require_variable(file, format!("the content of {argument}"), findings)
            }
            "userHome" if self.home.as_os_str().is_empty() => "${HOME}".to_owned(),
            "userHome" => path(self.home),
            "workspaceFolder" | "workspaceRoot" => of_project(|project| project, findings),
            "workspaceFolderBasename" => {
                of_project(|project| project.file_name().map_or(project, Path::new), findings)
            }
            "pathSeparator" | "/" => if self.os == Os::Windows { "\\" } else { "/" }.to_owned(),
            "command" | "config" => {
                require_variable(argument, format!("the value of {inside:?} in the app"), findings)
            }
            // `NAME` and `NAME:-default` are the same in dormouse.
            _ => format!("${{{inside}}}"),
        }
    }
}

/// Returns the text between `opening`, with which the text must begin, and the next `closing`.
fn text_between<'a>(text: &'a str, opening: &str, closing: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(opening)?;
    Some(&rest[..rest.find(closing)?])
}

/// Records that the user has to set a variable, and returns a reference to it.
fn require_variable(id: &str, purpose: String, findings: &mut VariableFindings) -> String {
    let name = variable_name(id);
    let required = RequiredVariable { name, purpose };
    let reference = format!("${{{}}}", required.name);
    if !findings.required.contains(&required) {
        findings.required.push(required);
    }
    reference
}

/// Turns a text into the customary form of a variable name: upper case, with `_` as separator.
pub(super) fn variable_name(text: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = text.chars().map(upper).collect();
    let name = name.trim_matches('_');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.to_owned()
    } else {
        format!("_{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(syntax: VariableSyntax, text: &str) -> (String, Vec<String>) {
        let inputs = BTreeMap::from([("gh-token".to_owned(), "GitHub token".to_owned())]);
        let variables = VariableContext {
            syntax,
            os: Os::Linux,
            home: Path::new("/home/u"),
            project: Some(Path::new("/work/p")),
            inputs,
        };
        let mut findings = VariableFindings::default();
        let text = variables.translate_text(text, &mut findings);
        let required = findings.required.into_iter().map(|n| format!("{}: {}", n.name, n.purpose));
        (text, required.chain(findings.notes).collect())
    }

    #[test]
    fn each_syntax_becomes_that_of_dormouse() {
        for (theirs, ours, said) in [
            ("${env:A}/x", "${A}/x", ""),
            ("{env:A}{env:B}", "${A}${B}", ""),
            ("${A:-d}", "${A:-d}", ""),
            ("Bearer ${input:gh-token}", "Bearer ${GH_TOKEN}", "GH_TOKEN: GitHub token"),
            ("${input:other}", "${OTHER}", "OTHER: the answer to \"other\""),
            ("${{ secrets.KEY }}", "${KEY}", "KEY: secrets.KEY of Continue"),
            ("{file:~/.key.txt}", "${KEY_TXT}", "KEY_TXT: the content of ~/.key.txt"),
            ("${userHome}${/}x", "/home/u/x", ""),
            ("${workspaceFolder}/${workspaceFolderBasename}", "/work/p/p", ""),
            (
                "{{LIBRECHAT_USER_ID}}",
                "{{LIBRECHAT_USER_ID}}",
                "{{LIBRECHAT_USER_ID}} is replaced only by its app, and passed on unchanged",
            ),
            (r#"{"a": 1} $5 $A {x"#, r#"{"a": 1} $5 $A {x"#, ""),
            ("é${env:A}é", "é${A}é", ""),
            ("$${env:A}", "${DORMOUSE_DOLLAR:-$}${A}", ""),
        ] {
            let (found, told) = translated(VariableSyntax::Braces, theirs);
            assert_eq!((found.as_str(), told.join("; ").as_str()), (ours, said), "{theirs}");
        }
        assert_eq!(translated(VariableSyntax::Dollar, "$A-${B} $5 $").0, "${A}-${B} $5 $");
    }

    #[test]
    fn literal_text_stays_literal() {
        for (theirs, ours) in
            [("${A} $A {env:A}", "$${A} $A {env:A}"), ("${{ a }}", "$${{ a }}"), ("$${A", "$$${A")]
        {
            assert_eq!(translated(VariableSyntax::Literal, theirs).0, ours);
        }
        assert_eq!(translated(VariableSyntax::Braces, "${env:A} ${env:B").0, "${A} $${env:B");
    }
}
