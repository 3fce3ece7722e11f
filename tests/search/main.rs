//! Measures the search next to two simpler methods: requests as people would phrase them, over the
//! catalogs of real servers. `just eval-search` runs it; `docs/reference/search.md` has the
//! results.

mod baselines;
mod figures;
mod requests;
mod servers;

use std::path::PathBuf;

use clap::Parser;
use dormouse::internals::catalog::{SearchHit, SearchTarget, Snapshot};

use baselines::{PlainBm25, Substrings};
use figures::Figures;
use requests::{Kind, Request, SETS, Split};

/// Maximum number of answers that count.
const BEST: usize = 10;

#[derive(Parser)]
struct Arguments {
    /// The directory of the servers' catalogs
    catalogs: PathBuf,
    /// List the requests of one half whose tool is not among the first five
    #[arg(long, num_args = 0..=1, default_missing_value = "report")]
    failures: Option<Split>,
}

/// A search method, from a request to the names of tools, best first.
type Method<'a> = (&'static str, Box<dyn Fn(&str) -> Vec<String> + 'a>);

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    for set in SETS {
        let snapshot = servers::snapshot(&arguments.catalogs, set.servers)?;
        let methods = methods(&snapshot);
        for split in [Split::Tune, Split::Report] {
            let requests = set.requests(split)?;
            println!("\n`{}`, `{split}`: recall@1, @5, @10 and MRR\n", set.name);
            print_table(&methods, &requests);
            print_differences(&methods, &requests);
            if arguments.failures == Some(split) {
                print_failures(&methods, &requests);
            }
        }
    }
    Ok(())
}

/// Returns the methods, the best one last.
fn methods(snapshot: &Snapshot) -> Vec<Method<'_>> {
    let substrings = Substrings::new(snapshot);
    let bm25 = PlainBm25::new(snapshot);
    let mut methods: Vec<Method<'_>> = vec![
        ("substrings", Box::new(move |request| substrings.search(request))),
        ("plain BM25", Box::new(move |request| bm25.search(request))),
        ("words", Box::new(|request| names(snapshot, &snapshot.search_words(request, None, BEST)))),
    ];
    if cfg!(feature = "meaning") {
        let search = |request: &str| names(snapshot, &snapshot.search(request, None, BEST));
        methods.push(("words and meaning", Box::new(search)));
    }
    methods
}

fn names(snapshot: &Snapshot, found: &[SearchHit]) -> Vec<String> {
    let tools = found.iter().filter_map(|found| match found.target {
        SearchTarget::Tool(at) => Some(snapshot.tools().qualified(at)),
        SearchTarget::Offer(_) => None,
    });
    tools.collect()
}

fn print_table(methods: &[Method<'_>], requests: &[Request]) {
    println!("| | shares | paraphrase | goal | all |\n|---|---|---|---|---|");
    for (name, search) in methods {
        let of_kind = |kind: Option<Kind>| {
            let mut figures = Figures::default();
            for request in
                requests.iter().filter(|request| kind.is_none_or(|kind| request.kind == kind))
            {
                figures.add(request.rank(&search(&request.text)));
            }
            figures
        };
        let [shares, paraphrase, goal] =
            [Kind::Shares, Kind::Paraphrase, Kind::Goal].map(|kind| of_kind(Some(kind)));
        println!("| {name} | {shares} | {paraphrase} | {goal} | {} |", of_kind(None));
    }
}

/// Prints how many requests the last method finds among the first five and another method does not,
/// and vice versa. Such counts over the same requests say more than two shares.
fn print_differences(methods: &[Method<'_>], requests: &[Request]) {
    let Some(((last, search), others)) = methods.split_last() else { return };
    println!("\nAmong the first five, {last} beside\n");
    println!("| | shares | paraphrase | goal |\n|---|---|---|---|");
    for (name, other) in others {
        let cells = [Kind::Shares, Kind::Paraphrase, Kind::Goal].map(|kind| {
            let (mut more, mut less) = (0, 0);
            for request in requests.iter().filter(|request| request.kind == kind) {
                let is_found =
                    |found: Vec<String>| request.rank(&found).is_some_and(|rank| rank <= 5);
                match (is_found(search(&request.text)), is_found(other(&request.text))) {
                    (true, false) => more += 1,
                    (false, true) => less += 1,
                    _ => {}
                }
            }
            format!("+{more} -{less}")
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
}

/// Prints the failures of the last method.
fn print_failures(methods: &[Method<'_>], requests: &[Request]) {
    let Some((_, search)) = methods.last() else { return };
    println!("\nNot among the first five:\n");
    for request in requests {
        let found = search(&request.text);
        let rank = request.rank(&found);
        if rank.is_none_or(|rank| rank > 5) {
            let rank = rank.map_or("-".to_owned(), |rank| rank.to_string());
            println!("- {}, {rank}: \"{}\"", request.kind, request.text);
            println!("  wanted {}", request.tools.join(", "));
            println!("  found {}", found[..found.len().min(3)].join(", "));
        }
    }
}
