//! The edit that adds an exception to a rule of a policy.

use std::cmp::Reverse;

use serde_json::{Map, Value, json};

use super::{ConfigFile, Unchanged, document::Document, format::Edit, keys::PolicyRule};

/// An exception to a rule: a rule before it that allows tools under the same conditions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuleException {
    /// The path of the list.
    pub list: Vec<String>,
    /// The position of the rule when the config was read, from 0.
    pub position: usize,
    /// The rule, with its variables expanded.
    pub rule: PolicyRule,
    /// The name of the tools that are allowed.
    pub tools: String,
}

/// Returns the file with all exceptions.
///
/// # Errors
/// If one of them cannot be added.
pub(super) fn add_all(
    exceptions: &[RuleException],
    file: &ConfigFile,
) -> Result<ConfigFile, Unchanged> {
    let mut exceptions: Vec<&RuleException> = exceptions.iter().collect();
    // An exception moves the later rules of its list.
    exceptions.sort_by_key(|exception| Reverse(exception.position));
    exceptions.iter().try_fold(file.clone(), |file, exception| exception.added_to(&file))
}

impl RuleException {
    /// Returns the file with the exception, or the same file if it has it already.
    fn added_to(&self, file: &ConfigFile) -> Result<ConfigFile, Unchanged> {
        match self.edited(file, ListPlace::insertion) {
            // Not every format can have an element inserted in place.
            Err(Unchanged::RuleByHand { .. }) => self.edited(file, ListPlace::replacement),
            done => done,
        }
    }

    fn edited(
        &self,
        file: &ConfigFile,
        edit: impl FnOnce(ListPlace, Value) -> Edit,
    ) -> Result<ConfigFile, Unchanged> {
        let name = self.list.join(".");
        let mut rule = String::new();
        let edited = file.edited(&name, |document| {
            if let Some(dialect) = document.dialect() {
                return Err(Unchanged::NotOurs(dialect.name()));
            }
            let place = self.find(document).ok_or_else(|| Unchanged::RuleGone(name.clone()))?;
            let exception = self.exception(&place.rules[place.at]);
            if place.rules[..place.at].contains(&exception) {
                return Ok(Vec::new());
            }
            rule = format!("write {exception} before the rule {name}[{}]", place.at);
            Ok(vec![edit(place, exception)])
        });
        edited.map_err(|error| match error {
            Unchanged::ByHand { reason, .. } => Unchanged::RuleByHand { reason, rule },
            error => error,
        })
    }

    /// Finds the rule, which other edits may have moved.
    fn find(&self, document: &Document<'_>) -> Option<ListPlace> {
        let root = document.value();
        let written = self.list.iter().fold(&root, |value, step| &value[step.as_str()]);
        let rules = written.as_array()?.clone();
        let expanded = serde_json::to_value(&self.rule).ok()?;
        let is_it = |at: &usize| rules.get(*at).is_some_and(|rule| is_written_as(rule, &expanded));
        let at = Some(self.position).filter(is_it).or_else(|| (0..rules.len()).find(is_it))?;
        Some(ListPlace { path: self.list.clone(), rules, at })
    }

    /// Returns the exception to a rule as it is written: its variables stay unexpanded.
    fn exception(&self, rule: &Value) -> Value {
        let mut members = Map::new();
        members.insert("tools".to_owned(), json!(self.tools));
        let conditions = rule.as_object().into_iter().flatten();
        let conditions =
            conditions.filter(|(key, _)| ["when", "arguments"].contains(&key.as_str()));
        members.extend(conditions.map(|(key, value)| (key.clone(), value.clone())));
        members.insert("then".to_owned(), json!("allow"));
        Value::Object(members)
    }
}

/// The place of a rule in a list as it is written.
struct ListPlace {
    path: Vec<String>,
    rules: Vec<Value>,
    at: usize,
}

impl ListPlace {
    /// Inserts an element before the rule.
    fn insertion(self, value: Value) -> Edit {
        Edit::Set { path: [self.path, vec![self.at.to_string()]].concat(), value }
    }

    /// Writes the whole list again.
    fn replacement(mut self, value: Value) -> Edit {
        self.rules.insert(self.at, value);
        Edit::Set { path: self.path, value: Value::Array(self.rules) }
    }
}

/// Returns whether a rule is written in this way. Strings with variables stand for any value.
fn is_written_as(written: &Value, rule: &Value) -> bool {
    match (written, rule) {
        (Value::String(text), _) if text.contains("${") => true,
        (Value::Object(written), Value::Object(rule)) => {
            let is_default = |key: &str, value: &Value| {
                *value == json!({}) || value.is_null() || key == "tools" && *value == json!("*")
            };
            let are_there = rule.iter().all(|(key, value)| {
                written.get(key).is_some_and(|written| is_written_as(written, value))
            });
            let mut others = written.iter().filter(|(key, _)| !rule.contains_key(*key));
            are_there && others.all(|(key, value)| is_default(key, value))
        }
        _ => written == rule,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn exception(position: usize, rule: &Value) -> RuleException {
        let rule = serde_json::from_value(rule.clone()).unwrap();
        let list = vec!["policy".to_owned()];
        RuleException { list, position, rule, tools: "a/x".to_owned() }
    }

    fn added(path: &str, text: &str, exception: &RuleException) -> Result<String, Unchanged> {
        let file = exception.added_to(&ConfigFile::in_memory(Path::new(path), text))?;
        // A second addition changes nothing.
        assert_eq!(exception.added_to(&file).unwrap().text(), file.text());
        Ok(file.text().into_owned())
    }

    #[test]
    fn exception_precedes_its_rule_in_each_format() {
        let rule = json!({"tools": "a/*", "when": {"readOnly": false}, "then": "ask"});
        let exception = exception(1, &rule);
        let mut texts = String::new();
        for (path, text) in [
            (
                "d.json",
                "{\n  \"policy\": [\n    {\"then\": \"deny\", \"tools\": \"b\"},\n    // why\n    \
                    {\"tools\": \"a/*\", \"when\": {\"readOnly\": false}, \"then\": \
                    \"ask\"}\n  ]\n}\n",
            ),
            (
                "d.yaml",
                "policy: # rules\n  - tools: b\n    then: deny\n  - tools: a/*\n    when: \
                    {readOnly: false}\n    then: ask\nz: 1\n",
            ),
            (
                "d.toml",
                "[[policy]]\ntools = \"b\"\nthen = \"deny\"\n\n# why\n[[policy]]\ntools = \
                    \"a/*\"\nwhen = { readOnly = false }\nthen = \"ask\"\n\n[mcpServers.a]\n\
                    command = \"x\"\n",
            ),
            (
                "e.toml",
                "policy = [{ tools = \"b\", then = \"deny\" }, { tools = \"a/*\", when = { \
                    readOnly = false }, then = \"ask\" }]\n",
            ),
        ] {
            texts += &format!("[{path}]\n{}\n", added(path, text, &exception).unwrap());
        }
        insta::assert_snapshot!(texts);
    }

    #[test]
    fn rule_with_variables_is_found_and_copied_unexpanded() {
        let rule = json!({"tools": "a/*", "arguments": {"repo": "acme/x"}, "then": "ask"});
        let written = r#"{"policy":[{"tools":"a/*","arguments":{"repo":"${R}"},"then":"ask"}]}"#;
        let after = added("d.json", written, &exception(0, &rule)).unwrap();
        let after: Value = serde_json::from_str(&after).unwrap();
        let first = json!({"tools": "a/x", "arguments": {"repo": "${R}"}, "then": "allow"});
        assert_eq!(after["policy"][0], first);
    }

    #[test]
    fn missing_rule_differs_from_a_list_that_cannot_be_edited() {
        let rule = json!({"tools": "a/*", "then": "ask"});
        let gone = added("d.json", r#"{"policy": []}"#, &exception(0, &rule)).unwrap_err();
        let alias = "x: &a {policy: [{tools: a/*, then: ask}]}\nmcpServers:\n  a: *a\n";
        let list = ["mcpServers", "a", "policy"].map(str::to_owned).to_vec();
        let in_entry = RuleException { list, ..exception(0, &rule) };
        let alias = added("d.yaml", alias, &in_entry).unwrap_err();
        insta::assert_snapshot!(format!("{gone}\n{alias}"));
    }
}
