//! `dormouse approve`: take a server's tools as they are now, though they are not what they were.

use std::process::ExitCode;

use anyhow::bail;

use super::{arguments::Options, settings};
use crate::catalog::CatalogKey;

pub(super) fn run(options: &Options, server: &str, tool: Option<&str>) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = settings::parse(&file, options)?;
    let server = settings::server(&config, server)?;
    let Some(cache) = settings::storage(Some(&file)).catalogs else {
        bail!("nothing is known of any server: is HOME set?");
    };
    let Some(key) = CatalogKey::of(server) else { bail!("nothing is known of {:?}", server.name) };
    if let Some(tool) = tool {
        let records = cache.known(&key).records;
        let is_known = |record: &crate::catalog::Record| {
            record.catalog.tools.iter().any(|known| known.name == tool)
        };
        if !records.iter().any(is_known) {
            bail!("server {:?} has no tool {tool:?}, as far as is known", server.name);
        }
    }
    let approved = cache.approve(&key, tool)?;
    if cache.pins(&key).is_incomplete() && approved.is_empty() {
        bail!(
            "what {:?} has is not known: run dormouse refresh {}, look at it, and approve it then",
            server.name,
            server.name
        );
    }
    if approved.is_empty() {
        outln!("{}: nothing had changed", server.name);
    }
    for tool in approved {
        outln!("{}: approved {tool}", server.name);
    }
    Ok(ExitCode::SUCCESS)
}
