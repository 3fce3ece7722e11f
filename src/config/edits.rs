//! Edits of a config file in place: the surrounding text and concurrent changes are preserved.

use std::collections::BTreeSet;

use crate::base::{ReplaceError, create_file, replace_file};
use serde_json::{Map, Value, json};

use super::{
    ConfigFile, ProposedToolset, RuleException, TrustStore, Unchanged,
    document::Document,
    format::{Edit, Format},
    keys::Isolation,
    merge::{can_be_key, place_of_tools},
    rule_exception::add_all,
};

/// An edit of a config.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ConfigEdit {
    /// A server, with the keys of a dormouse config.
    Add {
        name: String,
        entry: Map<String, Value>,
        /// True if the server may replace another.
        replace: bool,
    },
    Remove {
        name: String,
    },
    Enable {
        name: String,
        enabled: bool,
    },
    /// The hosts that use the same process of a server.
    Isolate {
        name: String,
        isolation: Isolation,
    },
    EnableTool {
        server: String,
        tool: String,
        enabled: bool,
    },
    /// The toolsets of a server that has none.
    AddToolsets {
        server: String,
        toolsets: Vec<ProposedToolset>,
    },
    /// Exceptions to rules of policies.
    AddRuleExceptions(Vec<RuleException>),
    /// A profile with all tools of these servers. The file has no profile of this name.
    AddProfile {
        name: String,
        servers: BTreeSet<String>,
    },
    /// A setting next to the servers.
    Set {
        key: String,
        value: Value,
    },
}

impl ConfigFile {
    /// Returns the file with the edit applied in place.
    ///
    /// # Errors
    /// If the server does not exist, or exists already; if the edit would touch other parts; if the
    /// file belongs to another system.
    pub(crate) fn with(&self, edit: &ConfigEdit) -> Result<Self, Unchanged> {
        self.check_servers(edit)?;
        let on = |flag: &bool| Value::Bool(*flag);
        match edit {
            ConfigEdit::Add { name, entry, .. } => self.edited_own(name, |root| {
                Edit::put(root, &["mcpServers", name], Value::Object(entry.clone()))
            }),
            ConfigEdit::Remove { name } => {
                self.edited_own(name, |_| Edit::remove(&["mcpServers", name]))
            }
            ConfigEdit::Enable { name, enabled } => self.edited_own(name, |root| {
                Edit::put(root, &["mcpServers", name, "enabled"], on(enabled))
            }),
            ConfigEdit::Isolate { name, isolation } => self.edited_own(name, |root| {
                let value = Value::String(isolation.name().to_owned());
                Edit::put(root, &["mcpServers", name, "isolation"], value)
            }),
            ConfigEdit::EnableTool { server, tool, enabled } => {
                self.with_tool(server, tool, on(enabled))
            }
            ConfigEdit::AddToolsets { server, toolsets } => with_toolsets(self, server, toolsets),
            ConfigEdit::AddRuleExceptions(exceptions) => add_all(exceptions, self),
            ConfigEdit::AddProfile { name, servers } => self.edited_own(name, |root| {
                let servers = servers.iter().map(|server| (server.clone(), json!([])));
                let profile = json!({"servers": servers.collect::<Map<_, _>>()});
                Edit::put(root, &["profiles", name], profile)
            }),
            ConfigEdit::Set { key, value } => {
                self.edited_own(key, |root| Edit::put(root, &[key], value.clone()))
            }
        }
    }

    fn check_servers(&self, edit: &ConfigEdit) -> Result<(), Unchanged> {
        let entries = self.entries()?;
        match edit {
            ConfigEdit::Add { name, replace: false, .. } if entries.contains_key(name) => {
                Err(Unchanged::Exists(name.clone()))
            }
            ConfigEdit::Remove { name }
            | ConfigEdit::Enable { name, .. }
            | ConfigEdit::Isolate { name, .. }
            | ConfigEdit::EnableTool { server: name, .. }
            | ConfigEdit::AddToolsets { server: name, .. }
                if !entries.contains_key(name) =>
            {
                Err(Unchanged::Unknown(name.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Switches a tool. The configs of multi-mcp have a place for switches too.
    fn with_tool(&self, server: &str, tool: &str, enabled: Value) -> Result<Self, Unchanged> {
        self.edited(server, |document| {
            let dialect = document.dialect();
            let servers =
                place_of_tools(dialect).map_err(|why| Unchanged::by_hand(server, &why))?;
            if !can_be_key(tool) {
                let why = format!("the key {tool:?} would match other tools as well");
                return Err(Unchanged::by_hand(server, &why));
            }
            let written = document.written();
            let mut at = vec![servers, server, "tools", tool];
            if dialect.is_some() || written[servers][server]["tools"][tool].is_object() {
                at.push("enabled");
            }
            Ok(vec![Edit::put(&written, &at, enabled)])
        })
    }

    /// Edits a dormouse config. `edit` gets the value of the file.
    fn edited_own(&self, what: &str, edit: impl FnOnce(&Value) -> Edit) -> Result<Self, Unchanged> {
        self.edited(what, |document| match document.dialect() {
            Some(dialect) => Err(Unchanged::NotOurs(dialect.name())),
            None => Ok(vec![edit(&document.value())]),
        })
    }

    /// Returns the file after the edits. `what` is their subject; `edits` may return the reason
    /// that there can be none.
    pub(super) fn edited(
        &self,
        what: &str,
        edits: impl FnOnce(&Document<'_>) -> Result<Vec<Edit>, Unchanged>,
    ) -> Result<Self, Unchanged> {
        if self.is_of_app() {
            return Err(Unchanged::OfAnotherProgram(self.path.clone()));
        }
        let text = str::from_utf8(&self.text).map_err(|error| Unchanged::by_hand(what, &error))?;
        let edits = edits(&Document::parse_or_empty(text, &self.path)?)?;
        let edited = Format::of(&self.path).edit(text, &edits);
        let edited = edited.map_err(|error| Unchanged::by_hand(what, &error))?;
        Ok(Self { text: edited.into_bytes(), ..self.clone() })
    }

    /// Returns the file with more lines in the `.env` file next to it.
    #[must_use]
    pub(crate) fn with_variables(&self, lines: &str) -> Self {
        let file = self.clone();
        Self { env_file: file.env_file.with_lines(lines), ..file }
    }

    /// Writes this in place of `before`, including `.env`. If `before` was trusted, so is this.
    ///
    /// # Errors
    /// If the file has changed since it was read, or cannot be written.
    pub(crate) fn replace(
        &self,
        before: &Self,
        store: Option<&TrustStore>,
    ) -> Result<(), Unchanged> {
        self.env_file.replace(&before.env_file)?;
        if before.is_written {
            replace_file(&self.path, &before.text, &self.text)?;
        } else {
            create_file(&self.path, &self.text)
                .map_err(|cause| ReplaceError::write(&self.path, cause))?;
        }
        if let Some(store) = store
            && before.is_trusted(store)
        {
            self.trust(store)?;
        }
        Ok(())
    }
}

/// Returns the file with toolsets of a server that has none.
fn with_toolsets(
    file: &ConfigFile,
    server: &str,
    toolsets: &[ProposedToolset],
) -> Result<ConfigFile, Unchanged> {
    let present = &file.entries()?[server]["toolsets"];
    if !present.is_null() && *present != json!({}) {
        return Err(Unchanged::by_hand(server, &"it has toolsets already"));
    }
    let entries = toolsets.iter().map(|it| (it.name.clone(), json!(it)));
    let entries = Value::Object(entries.collect());
    file.edited_own(server, |root| Edit::put(root, &["mcpServers", server, "toolsets"], entries))
}
