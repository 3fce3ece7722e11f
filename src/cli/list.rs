//! `dormouse list`: the known tools of each server, and which of them are shown.

use std::process::ExitCode;

use serde::Serialize;

use super::{login::described, settings, shared_flags::Options, state_stores::StateStores};
use crate::{
    auth::LoginSummary,
    base::{counted, one_line},
    catalog::{Inventory, ToolState},
    config::{ServerConfig, UserCommands},
};

/// One server, in `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedServer<'a> {
    server: &'a str,
    enabled: bool,
    /// Its members are missing if no catalog is known.
    #[serde(flatten)]
    inventory: Option<Inventory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<LoginSummary>,
}

pub(super) fn run(options: &Options, servers: &[String], json: bool) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = settings::parse(&file, options)?;
    for name in servers {
        settings::server(&config, name)?;
    }
    let stores = StateStores::of(&config.settings)?;
    let (cache, auth) = (stores.catalogs(), stores.auth(Some(&file), options));
    let wanted = config.servers.iter();
    let wanted = wanted.filter(|server| servers.is_empty() || servers.contains(&server.name));
    let entries: Vec<(ListedServer<'_>, &ServerConfig)> = wanted
        .map(|server| {
            let last = cache.as_ref().and_then(|cache| cache.last(server));
            let inventory = last.map(|(_, inventory)| inventory);
            let login = auth.summary(server);
            (
                ListedServer { server: &server.name, enabled: server.enabled, inventory, login },
                server,
            )
        })
        .collect();
    if json {
        let entries: Vec<&ListedServer<'_>> = entries.iter().map(|(entry, _)| entry).collect();
        outln!("{}", super::output::json(&entries)?);
    } else {
        settings::say_which(&file);
        for (entry, server) in &entries {
            print(entry, server, &config.settings.launch.commands);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(entry: &ListedServer<'_>, server: &ServerConfig, commands: &UserCommands) {
    print_inventory(entry, server, commands);
    if let Some(login) = &entry.login {
        outln!("  logged in: {}", described(login));
    }
}

fn print_inventory(entry: &ListedServer<'_>, server: &ServerConfig, commands: &UserCommands) {
    let bold = anstyle::Style::new().bold();
    let name = &server.name;
    let Some(inventory) = &entry.inventory else {
        if server.enabled {
            outln!("{bold}{name}{bold:#}: not known yet; run `{}`", commands.refresh(name));
        } else {
            outln!("{bold}{name}{bold:#}: disabled");
        }
        return;
    };
    let off = if server.enabled { "" } else { " (disabled)" };
    outln!(
        "{bold}{name}{bold:#}{off}: {}, {}, {}, {}",
        counted(inventory.tools.len() - inventory.count(ToolState::Stale), "tool"),
        counted(inventory.resources, "resource"),
        counted(inventory.resource_templates, "resource template"),
        counted(inventory.prompts, "prompt")
    );
    for toolset in &inventory.toolsets {
        outln!("  toolset {}: {}", toolset.name, counted(toolset.tools, "tool"));
    }
    let mut table = super::table::table(&[]);
    for tool in &inventory.tools {
        let state = match tool.state {
            ToolState::Shown => "",
            ToolState::Hidden => "hidden",
            ToolState::Stale => "stale",
            ToolState::Blocked => "blocked; run `dormouse approve`",
        };
        let changed = if tool.changed && tool.state != ToolState::Blocked { "changed" } else { "" };
        let hidden = tool.hidden_character.as_deref();
        let hidden = hidden.map_or(String::new(), |character| format!("holds {character}"));
        let notes = [state, changed, &hidden]
            .iter()
            .filter(|note| !note.is_empty())
            .copied()
            .collect::<Vec<_>>();
        let line = one_line(tool.description.lines().next().unwrap_or_default());
        let name: String = one_line(&tool.name).chars().take(64).collect();
        table.add_row([format!("  {name}"), notes.join(", "), line.clone()]);
    }
    if !inventory.tools.is_empty() {
        outln!("{}", super::table::rendered(table));
    }
}
