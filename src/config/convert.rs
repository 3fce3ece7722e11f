//! The conversion of another system's config into a config of dormouse.

use std::path::Path;

use serde_json::{Map, Value};

use super::{
    ConfigError, Environment, Problem, dialect::literal_strings, document::Document, parse,
    reading_rules::Variables,
};

/// The content of a config of another system.
#[derive(Debug)]
pub(crate) struct Converted {
    /// The name of the system.
    pub system: &'static str,
    /// Entries by name, with the keys of dormouse.
    pub servers: Map<String, Value>,
    /// All other members of the file, with the keys of dormouse.
    pub settings: Map<String, Value>,
    /// The parts that behave differently in dormouse.
    pub warnings: Vec<Problem>,
}

/// Reads a file that may belong to another system; `None` if it does not.
///
/// # Errors
/// Every problem of such a file.
pub(crate) fn convert(text: &str, path: &Path) -> Result<Option<Converted>, ConfigError> {
    let document = Document::parse(text, path)?;
    let Some(dialect) = document.dialect() else { return Ok(None) };
    let mut warnings = parse(text, path, &Environment::of_process())?.warnings;
    let mut warn = |message: &str| warnings.push(document.problem(&[], message));
    let rules = document.rules();
    let mut value = document.value();
    match rules.variables {
        Variables::FileAndProcess => {}
        Variables::Nowhere => literal_strings(&mut value),
        Variables::File => {
            warn("dormouse also looks up variables in the environment of its process");
        }
        Variables::Process => warn("dormouse also looks up variables in .env"),
    }
    if rules.keeps_undefined {
        warn("an undefined variable makes its server unavailable; the other system keeps its text");
    }
    if rules.serves_at_root {
        warn("the endpoints at /<name>/ are at /servers/<name>/");
    }
    let Value::Object(mut settings) = value else { return Ok(None) };
    let servers = match settings.shift_remove("mcpServers") {
        Some(Value::Object(servers)) => servers,
        _ => Map::new(),
    };
    Ok(Some(Converted { system: dialect.name(), servers, settings, warnings }))
}
