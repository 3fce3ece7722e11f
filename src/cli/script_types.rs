//! `dormouse script types`: the known tools as declarations in TypeScript, for editors.

use std::process::ExitCode;

use super::{
    script_tools::{known_tools, unknown_tools},
    settings,
    shared_flags::Options,
    state_stores::StateStores,
};
use crate::{
    base::one_line,
    catalog::Tool,
    config::ServerConfig,
    script::{ToolStub, property},
};

/// The names that a script finds next to `mcp`.
const OTHERS: &str = "\
declare const tools: {
  call(name: string, args?: object): Promise<any>;
  search(query: string): Promise<{ name: string; description: string; typescript: string }[]>;
  describe(name: string): Promise<any>;
};
declare const input: any;
";

pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = settings::parse(&file, options)?;
    let cache = StateStores::of(&config.settings)?.catalogs();
    let mut text = format!(
        "// The tools of {}, as `dormouse script types` prints them.\ndeclare const mcp: {{\n",
        one_line(&file.path.display().to_string())
    );
    for server in config.servers.iter().filter(|server| server.enabled) {
        if let Some(tools) = known_tools(cache.as_ref(), server) {
            let members = members_of(server, &tools);
            text.push_str(&format!("  {}: {{\n{members}  }};\n", property(&server.name)));
        } else {
            errln!("{}", unknown_tools(server, &config.settings.launch.commands));
        }
    }
    outln!("{text}}};\n{}", OTHERS.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Returns the declarations of tools, each on lines of its own.
fn members_of(server: &ServerConfig, tools: &[Tool]) -> String {
    let members = tools.iter().map(|tool| {
        let definition = tool.raw.to_value();
        let stub = ToolStub {
            server: &server.name,
            tool: &tool.name,
            definition: &definition,
            learned: None,
        };
        format!("    {}\n", stub.member().replace('\n', "\n    "))
    });
    members.collect()
}
