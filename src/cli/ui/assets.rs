//! The files of the page, which are part of the program.

/// A file of the page.
pub(super) struct Asset {
    /// Its name below the page; empty for the page itself.
    pub(super) name: &'static str,
    pub(super) content_type: &'static str,
    pub(super) content: &'static str,
}

macro_rules! script {
    ($name:literal) => {
        Asset {
            name: $name,
            content_type: "text/javascript; charset=utf-8",
            content: include_str!(concat!("page/", $name)),
        }
    };
}

/// All files of the page.
pub(super) const ASSETS: &[Asset] = &[
    Asset {
        name: "",
        content_type: "text/html; charset=utf-8",
        content: include_str!("page/index.html"),
    },
    Asset {
        name: "style.css",
        content_type: "text/css; charset=utf-8",
        content: include_str!("page/style.css"),
    },
    Asset {
        name: "icon.svg",
        content_type: "image/svg+xml",
        content: include_str!("page/icon.svg"),
    },
    script!("action_bar.js"),
    script!("api.js"),
    script!("app.js"),
    script!("call_details.js"),
    script!("call_log.js"),
    script!("calls.js"),
    script!("changes.js"),
    script!("chart.js"),
    script!("dom.js"),
    script!("filter.js"),
    script!("format.js"),
    script!("header.js"),
    script!("login_link.js"),
    script!("periods.js"),
    script!("poller.js"),
    script!("reader.js"),
    script!("route.js"),
    script!("savings.js"),
    script!("search.js"),
    script!("server_actions.js"),
    script!("server_details.js"),
    script!("server_state.js"),
    script!("servers.js"),
    script!("stderr.js"),
    script!("tools.js"),
];

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/ui/page");
        let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let files: BTreeSet<String> = files.map(|name| name.into_string().unwrap()).collect();
        let name = |asset: &Asset| match asset.name {
            "" => "index.html".to_owned(),
            name => name.to_owned(),
        };
        assert_eq!(ASSETS.iter().map(name).collect::<BTreeSet<_>>(), files);
    }
}
