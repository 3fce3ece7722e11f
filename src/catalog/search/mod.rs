//! Finds tools by what somebody wants, and servers that may have them: over everything that is known, loaded
//! or not (DESIGN.md section 3, `query`).
//!
//! Words are weighed with BM25F (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section
//! 3.6), and where meanings are known, tools that are about the same count too (`meaning`). Names that are said
//! exactly, or nearly, come first. The same snapshot and query give the same answer. `docs/search.md` has how
//! well it works, and `just eval-search` measures it.

mod document;
mod index;
mod lexicon;
mod meaning;
mod names;
mod phrase;
mod query;
mod synonyms;
mod words;

pub use document::Documents;
pub use index::Index;

use std::sync::LazyLock;

use super::{Snapshot, ToolRef};
use meaning::Meaning;
use query::Query;
use synonyms::Synonyms;
use words::Words;

/// What all indexes are made with.
struct Language {
    words: Words,
    synonyms: Synonyms,
    meaning: Meaning,
}

static LANGUAGE: LazyLock<Language> = LazyLock::new(|| {
    let words = Words::new();
    let meaning = Meaning::read(meaning::TABLE).expect("the table is as `tools/vectors` made it");
    Language { synonyms: Synonyms::new(&words), words, meaning }
});

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Tool(ToolRef),
    /// A server whose tools are not known; loading it would tell.
    Server(usize),
}

impl Match {
    /// The position of the server.
    fn server(self) -> usize {
        match self {
            Self::Tool(at) => at.server,
            Self::Server(server) => server,
        }
    }
}

/// One answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub what: Match,
    pub score: f32,
    /// What speaks for it, the strongest first: `name: screenshot`.
    pub reasons: Vec<String>,
}

impl Snapshot {
    /// The best answers to `query`, best first; of equal ones the first in config order.
    pub fn search(&self, query: &str, within: Option<usize>, limit: usize) -> Vec<Found> {
        self.index().search(&Query::of(query, self.index()), within, limit)
    }

    /// The same by words alone, also where meanings are known: to compare.
    pub fn search_words(&self, query: &str, within: Option<usize>, limit: usize) -> Vec<Found> {
        let query = Query { direction: None, ..Query::of(query, self.index()) };
        self.index().search(&query, within, limit)
    }

    /// Makes the index, which takes the longer the more tools there are.
    pub fn prepare_search(&self) {
        self.index();
    }

    /// Whether a search takes no longer than its query asks for.
    pub fn is_indexed(&self) -> bool {
        self.search_index.get().is_some()
    }

    fn index(&self) -> &Index {
        self.search_index.get_or_init(|| Index::of(self))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path, sync::Arc};

    use serde_json::json;

    use super::*;
    use crate::{
        catalog::{Exposed, Item as _, ServerCatalog, ServerId, Tool},
        config::{self, Environment},
        wire::Raw,
    };

    fn tool(name: &str, description: &str) -> Tool {
        let definition = json!({"name": name, "description": description, "inputSchema": {}});
        Tool::read(&Raw::encode(&definition)).unwrap()
    }

    /// Servers `a`, `b` and so on with these tools, of which each has a name and a description; a server
    /// without tools has never been connected.
    fn snapshot(servers: &[&[(&str, &str)]]) -> Snapshot {
        let names = ["a", "b", "c"];
        let entry =
            |name: &&str| (name.to_string(), json!({"description": "Does work", "command": "x"}));
        let entries: serde_json::Map<_, _> = names[..servers.len()].iter().map(entry).collect();
        let text = json!({"mcpServers": entries}).to_string();
        let config = config::parse(&text, Path::new("c.json"), &Environment::default()).unwrap();
        let snapshot = Snapshot::new(Arc::default(), &ServerId::number(&config.servers));
        let known = servers.iter().enumerate().filter(|(_, tools)| !tools.is_empty());
        let known = known.map(|(at, tools)| {
            let tools = tools.iter().map(|(name, description)| tool(name, description)).collect();
            let catalog = Arc::new(ServerCatalog { tools, ..ServerCatalog::unknown() });
            let (config, naming) = (&config.servers[at], snapshot.naming(at));
            (ServerId(at), Arc::new(Exposed::new(&catalog, config, &BTreeSet::new(), naming)))
        });
        snapshot.recalled(known.collect())
    }

    #[track_caller]
    fn finds(snapshot: &Snapshot, query: &str, expected: &[&str]) {
        let name = |found: &Found| match found.what {
            Match::Tool(at) => snapshot.qualified(at),
            Match::Server(server) => snapshot.servers[server].name.clone(),
        };
        let found: Vec<String> = snapshot.search_words(query, None, 10).iter().map(name).collect();
        assert_eq!(found, expected, "{query}");
    }

    #[test]
    fn a_name_that_is_said_exactly_or_nearly_comes_first() {
        let snapshot = snapshot(&[
            &[("list", "Read a file, read files, read_file, the file that is read")],
            &[("read_file", "")],
        ]);
        finds(&snapshot, "readFile", &["b/read_file", "a/list"]);
        finds(&snapshot, "b read_flie", &["b/read_file", "a/list"]);
        let found = snapshot.search_words("read_file", None, 1);
        assert_eq!(found[0].reasons, ["its name", "name: read", "name: file"]);
    }

    #[test]
    fn words_are_found_in_other_forms_misspelt_and_by_synonyms() {
        let snapshot = snapshot(&[&[("screenshot", "Takes a picture"), ("remove", "")]]);
        finds(&snapshot, "all the screenshots!", &["a/screenshot"]);
        finds(&snapshot, "one more screnshot please", &["a/screenshot"]);
        finds(&snapshot, "delete it", &["a/remove"]);
        finds(&snapshot, "what is this?", &[]);
        let found = snapshot.search_words("delete it", None, 1);
        assert_eq!(found[0].reasons, ["name: remov"]);
    }

    #[test]
    fn a_brand_in_two_cases_is_not_one_of_its_parts() {
        let git: &[(&str, &str)] = &[("commit", "Records changes with git")];
        let gitlab: &[(&str, &str)] = &[("merge", "Merges a request of GitLab")];
        finds(&snapshot(&[git, gitlab]), "GitLab", &["b/merge"]);
        finds(&snapshot(&[git, gitlab]), "gitlab", &["b/merge"]);
        finds(&snapshot(&[git]), "GitLab", &[]);
        finds(&snapshot(&[git, gitlab]), "git", &["a/commit", "b/merge"]);
    }

    #[test]
    fn a_server_that_is_not_known_is_among_the_answers() {
        let works: Vec<(&str, &str)> =
            ["a1", "a2", "a3", "a4", "a5"].map(|name| (name, "Work work work")).into();
        let snapshot = snapshot(&[&works, &[]]);
        let found = snapshot.search_words("work", None, 3);
        assert_eq!(found[2].what, Match::Server(1));
    }

    #[test]
    fn a_query_of_a_megabyte_is_read_in_part() {
        let snapshot = snapshot(&[&[("one", "Is useful")]]);
        let many: Vec<String> = (0..200_000).map(|number| format!("word{number}")).collect();
        let many = many.join(" ");
        assert!(snapshot.search(&many, None, 10).is_empty());
        assert!(snapshot.search(&"x".repeat(1_000_000), None, 10).is_empty());
    }

    #[test]
    fn of_equal_ones_the_first_in_config_order_comes_first() {
        let equal: &[(&str, &str)] = &[("one", "Sends mail"), ("two", "Sends mail")];
        let snapshot = snapshot(&[equal, equal]);
        finds(&snapshot, "send", &["a/one", "a/two", "b/one", "b/two"]);
        let within = snapshot.search_words("send", Some(1), 10);
        assert!(within.iter().all(|found| found.what.server() == 1));
        assert_eq!(within.len(), 2);
        assert_eq!(snapshot.search_words("send", None, 3).len(), 3);
    }

    #[test]
    fn a_server_that_is_named_has_its_tools_before_others_that_do_the_same() {
        let tools: &[(&str, &str)] = &[("send", "Sends a message")];
        let snapshot = snapshot(&[tools, tools, tools]);
        finds(&snapshot, "send it by B, please", &["b/send", "a/send", "c/send"]);
        finds(&snapshot, "send it abroad", &["a/send", "b/send", "c/send"]);
        let found = snapshot.search_words("send it by B, please", None, 1);
        insta::assert_snapshot!("reason_server_name", found[0].reasons[0]);
    }

    #[test]
    fn a_server_that_was_never_connected_is_found_by_what_its_config_says() {
        let snapshot = snapshot(&[&[("one", "Is useful")], &[]]);
        finds(&snapshot, "who works?", &["b", "a/one"]);
        finds(&snapshot, "b", &["b"]);
    }

    #[test]
    #[cfg_attr(not(feature = "meaning"), ignore = "needs the feature `meaning`")]
    fn a_tool_is_found_by_what_it_is_about() {
        let snapshot = snapshot(&[&[("weather", "Forecast of rain"), ("book_flight", "Airlines")]]);
        let found = snapshot.search("travel by plane", None, 1);
        assert_eq!(found[0].what, Match::Tool(ToolRef { server: 0, tool: 1 }));
        assert!(found[0].reasons[0].starts_with("meaning: 0."), "{:?}", found[0].reasons);
        assert!(snapshot.search_words("travel by plane", None, 1).is_empty());
        insta::assert_snapshot!("reason_name", snapshot.search("weather", None, 1)[0].reasons[0]);
    }
}
