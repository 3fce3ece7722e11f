//! Proposals of toolsets for a server, from the words of its tools' names.
//!
//! The tools of most large servers have names such as `list_issues` and `merge_pull_request`, which
//! consist of an action and a subject. A proposal has a toolset for each frequent subject.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::{NamePattern, ProposedToolset};

/// Number of tools above which a server without toolsets gets a proposal.
const MAX_UNDIVIDED_TOOLS: usize = 30;
/// Minimum and maximum number of tools of a proposed toolset.
const MIN_TOOLS: usize = 3;
const MAX_TOOLS: usize = 20;
/// Maximum number of words of a subject.
const MAX_WORDS: usize = 3;
/// Maximum number of proposed toolsets.
const MAX_TOOLSETS: usize = 24;
/// Maximum length of a tool's name that is considered, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Number of tools that a proposed description names.
const EXAMPLES: usize = 3;

/// Words for actions, and words without a meaning of their own.
const NO_SUBJECTS: [&str; 55] = [
    "a", "add", "all", "and", "assign", "by", "call", "check", "clear", "close", "count", "create",
    "delete", "describe", "do", "download", "edit", "execute", "export", "fetch", "find", "for",
    "from", "get", "has", "id", "import", "in", "is", "list", "make", "mcp", "new", "of", "on",
    "open", "or", "put", "query", "read", "remove", "run", "search", "send", "set", "show",
    "start", "stop", "the", "to", "update", "upload", "use", "with", "write",
];

/// A word of a tool's name, or several words that follow each other.
struct Subject {
    /// The singular, for comparison.
    key: String,
    /// The form in the name.
    written: String,
}

/// Returns toolsets for a server with these tools. Returns none if there are few tools, or their
/// names do not fall into groups.
pub(super) fn propose_toolsets(tools: &[&str]) -> Vec<ProposedToolset> {
    if tools.len() <= MAX_UNDIVIDED_TOOLS {
        return Vec::new();
    }
    let by_subject = tools_by_subject(tools);
    let mut left: BTreeSet<usize> = (0..tools.len()).collect();
    let mut proposed: Vec<ProposedToolset> = Vec::new();
    while proposed.len() < MAX_TOOLSETS {
        let whole = whole_subject(&by_subject, &left);
        let Some((key, forms)) = whole.or_else(|| rest_of_subject(&by_subject, &left)) else {
            break;
        };
        let mut own = forms.clone();
        own.retain(|tool, _| forms.len() <= MAX_TOOLS || left.contains(tool));
        left.retain(|tool| !forms.contains_key(tool));
        let toolset = toolset(key, &own, tools);
        if proposed.iter().all(|other| other.name != toolset.name) {
            proposed.push(toolset);
        }
    }
    // One toolset does not divide a server.
    if proposed.len() > 1 { proposed } else { Vec::new() }
}

/// The tools with a subject, by position, with the form in which each name has it.
type Forms = BTreeMap<usize, String>;
/// The tools with each subject.
type Subjects = BTreeMap<String, Forms>;
/// A subject and its tools.
type Chosen<'a> = (&'a String, &'a Forms);

/// Returns the largest subject whose tools are few enough for a toolset, and of which at least half
/// are in none yet.
fn whole_subject<'a>(by_subject: &'a Subjects, left: &BTreeSet<usize>) -> Option<Chosen<'a>> {
    most_frequent(by_subject, |forms| {
        let fresh = count_left(forms, left);
        let is_worth_it = forms.len() <= MAX_TOOLS && fresh * 2 >= forms.len();
        is_worth_it.then_some(fresh).filter(|fresh| *fresh >= MIN_TOOLS)
    })
}

/// Returns the subject of which the most tools, but few enough for a toolset, are in none yet.
fn rest_of_subject<'a>(by_subject: &'a Subjects, left: &BTreeSet<usize>) -> Option<Chosen<'a>> {
    most_frequent(by_subject, |forms| {
        let fresh = count_left(forms, left);
        (MIN_TOOLS..=MAX_TOOLS).contains(&fresh).then_some(fresh)
    })
}

fn count_left(forms: &Forms, left: &BTreeSet<usize>) -> usize {
    forms.keys().filter(|tool| left.contains(*tool)).count()
}

/// Returns the subject of the most tools, as `count` counts them. Of equal subjects the first in
/// alphabetical order is chosen.
fn most_frequent(
    by_subject: &Subjects,
    count: impl Fn(&Forms) -> Option<usize>,
) -> Option<Chosen<'_>> {
    let counted = by_subject.iter().filter_map(|(key, forms)| {
        // Two words say more than one of them.
        let weight = 5 + key.matches(' ').count();
        Some((count(forms)? * weight, key, forms))
    });
    let best = counted.max_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(a.1)));
    best.map(|(_, key, forms)| (key, forms))
}

/// Returns the tools with each subject. Subjects of too few tools are left out.
fn tools_by_subject(tools: &[&str]) -> Subjects {
    let mut by_subject = Subjects::new();
    for (at, tool) in tools.iter().enumerate().filter(|(_, tool)| is_plain(tool)) {
        for Subject { key, written } in subjects(tool) {
            by_subject.entry(key).or_default().entry(at).or_insert(written);
        }
    }
    by_subject.retain(|_, forms| forms.len() >= MIN_TOOLS);
    by_subject
}

/// Returns whether a name can stand in a description and a glob as it is.
fn is_plain(tool: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
    tool.len() <= MAX_NAME_BYTES && tool.chars().all(is_allowed)
}

/// Returns the subjects of a name: its words and sequences of words, without actions.
fn subjects(tool: &str) -> Vec<Subject> {
    let words = words(tool);
    let is_subject = |word: &str| {
        let word = word.to_ascii_lowercase();
        let is_word = word.len() > 1 && word.contains(|c: char| c.is_ascii_alphabetic());
        is_word && !NO_SUBJECTS.contains(&word.as_str())
    };
    let at = |(start, end): (usize, usize)| &tool[start..end];
    let mut subjects: Vec<Subject> = Vec::new();
    for (position, first) in words.iter().enumerate() {
        let mut key = String::new();
        let sequence = words[position..].iter().take(MAX_WORDS);
        for word in sequence.take_while(|word| is_subject(at(**word))) {
            if !key.is_empty() {
                key.push(' ');
            }
            key.push_str(&singular(at(*word)));
            subjects.push(Subject { key: key.clone(), written: at((first.0, word.1)).to_owned() });
        }
    }
    subjects
}

/// Returns where the words of a name begin and end: between separators, and where an uppercase
/// letter follows a lowercase one.
fn words(tool: &str) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    let (mut start, mut before) = (0, ' ');
    for (at, c) in tool.char_indices().chain([(tool.len(), '_')]) {
        let is_separator = !c.is_ascii_alphanumeric();
        if is_separator || before.is_ascii_lowercase() && c.is_ascii_uppercase() {
            if start < at {
                words.push((start, at));
            }
            start = if is_separator { at + 1 } else { at };
        }
        before = c;
    }
    words
}

/// Returns the singular of an English word, approximately.
fn singular(word: &str) -> String {
    let word = word.to_ascii_lowercase();
    let of_plural = |ending: &str| word.strip_suffix(ending).filter(|stem| stem.len() > 2);
    if let Some(stem) = of_plural("ies") {
        return format!("{stem}y");
    }
    for ending in ["ches", "shes", "sses", "xes"] {
        if let Some(stem) = of_plural(ending) {
            return format!("{stem}{}", &ending[..ending.len() - 2]);
        }
    }
    let is_singular = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
    match of_plural("s").filter(|_| !is_singular) {
        Some(stem) => stem.to_owned(),
        None => word,
    }
}

/// Returns the toolset of a subject.
fn toolset(key: &str, forms: &Forms, tools: &[&str]) -> ProposedToolset {
    let own: Vec<&str> = forms.keys().map(|at| tools[*at]).collect();
    let examples = own[..EXAMPLES.min(own.len())].join(", ");
    let patterns = match glob(forms, tools) {
        Some(glob) => vec![glob],
        None => own.iter().map(|tool| (*tool).to_owned()).collect(),
    };
    let name = name(key, forms);
    let description = format!("Tools for {}, such as {examples}", name.replace('_', " "));
    ProposedToolset { name, tools: patterns, description }
}

/// Returns the name of the toolset of a subject: the singular if a tool has it in its name.
fn name(key: &str, forms: &Forms) -> String {
    let letters = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "");
    let is_singular = |form: &String| form.eq_ignore_ascii_case(&letters(key));
    let mut written = forms.values().map(|form| letters(form));
    match forms.values().next().filter(|_| !written.any(|form| is_singular(&form))) {
        Some(form) => form.replace(|c: char| !c.is_ascii_alphanumeric(), "_").to_ascii_lowercase(),
        None => key.replace(' ', "_"),
    }
}

/// Returns the glob that matches the tools of a subject and no others, if there is one. Tools that
/// the server gets later belong to the toolset then.
fn glob(forms: &Forms, tools: &[&str]) -> Option<String> {
    let mut written = forms.values();
    let first = written.next()?.as_str();
    let common = written.fold(first, |common, form| {
        let pairs = common.char_indices().zip(form.chars());
        let end = pairs.take_while(|((_, a), b)| a == b).map(|((at, _), _)| at + 1).last();
        &common[..end.unwrap_or(0)]
    });
    let glob = format!("*{common}*");
    let matching = NamePattern::new(&glob);
    let is_own = |(at, tool): (usize, &&str)| matching.matches(tool) == forms.contains_key(&at);
    tools.iter().enumerate().all(is_own).then_some(glob)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tools of a server for a forge of code.
    const FORGE: &str = "add_comment_to_pending_review add_issue_comment add_sub_issue \
        assign_copilot_to_issue cancel_workflow_run create_branch create_gist create_issue \
        create_or_update_file create_pull_request create_repository delete_file \
        delete_workflow_run_logs dismiss_notification download_workflow_run_artifact \
        fork_repository get_code_scanning_alert get_commit get_dependabot_alert get_discussion \
        get_discussion_comments get_file_contents get_issue get_issue_comments get_job_logs \
        get_me get_notification_details get_pull_request get_pull_request_comments \
        get_pull_request_diff get_pull_request_files get_pull_request_reviews \
        get_pull_request_status get_secret_scanning_alert get_tag get_workflow_run \
        get_workflow_run_logs get_workflow_run_usage list_branches list_code_scanning_alerts \
        list_commits list_dependabot_alerts list_discussion_categories list_discussions \
        list_gists list_issues list_notifications list_pull_requests \
        list_secret_scanning_alerts list_sub_issues list_tags list_workflow_jobs \
        list_workflow_run_artifacts list_workflow_runs list_workflows \
        mark_all_notifications_read merge_pull_request push_files search_code search_issues \
        search_repositories search_users update_gist update_issue update_pull_request \
        update_pull_request_branch";

    fn written(tools: &[&str]) -> String {
        let proposed = propose_toolsets(tools).into_iter();
        let lines = proposed.map(|it| format!("{}: {:?}: {}", it.name, it.tools, it.description));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn tools_are_divided_by_their_subjects() {
        let tools: Vec<&str> = FORGE.split_whitespace().collect();
        insta::assert_snapshot!(written(&tools));
        let covered = |tool: &&&str| {
            let toolsets = propose_toolsets(&tools);
            let mut patterns = toolsets.iter().flat_map(|it| &it.tools);
            patterns.any(|pattern| NamePattern::new(pattern).matches(tool))
        };
        let count = tools.iter().filter(covered).count();
        assert!(count * 10 >= tools.len() * 8, "{count} of {}", tools.len());
    }

    #[test]
    fn proposal_does_not_depend_on_case_or_separators() {
        let names = |make: &dyn Fn(&str, &str) -> String| {
            let subjects = ["page", "network", "cookies"].iter();
            let verbs = ["get", "list", "Set", "drop", "add", "x", "y", "z", "v", "w", "q"];
            subjects.flat_map(|noun| verbs.map(|verb| make(verb, noun))).collect::<Vec<_>>()
        };
        for make in [
            &(|verb: &str, noun: &str| format!("{verb}_{noun}")) as &dyn Fn(&str, &str) -> String,
            &|verb, noun| format!("{noun}.{verb}"),
            &|verb, noun| format!("{}{}{}", verb, noun[..1].to_uppercase(), &noun[1..]),
        ] {
            let names = names(make);
            let tools: Vec<&str> = names.iter().map(String::as_str).collect();
            let proposed = propose_toolsets(&tools);
            let subjects: Vec<&str> = proposed.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(subjects, ["cookies", "network", "page"], "{names:?}");
        }
    }

    #[test]
    fn few_tools_and_tools_without_subjects_are_not_divided() {
        let names: Vec<String> = (0..40).map(|number| format!("browser_{number}")).collect();
        let tools: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(propose_toolsets(&tools), []);
        assert_eq!(propose_toolsets(&FORGE.split_whitespace().take(30).collect::<Vec<_>>()), []);
    }

    #[test]
    fn subjects_whose_toolsets_would_have_one_name_are_proposed_once() {
        let nouns = ["redBoxes", "redboxes", "page"];
        let with = |noun: &str| ('p'..='z').map(|verb| format!("{verb}_{noun}")).collect();
        let names: Vec<Vec<String>> = nouns.map(with).to_vec();
        let tools: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
        let proposed = propose_toolsets(&tools);
        let own: Vec<&str> = proposed.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(own, ["redboxes", "page"]);
    }

    #[test]
    fn names_that_deceive_are_left_out() {
        let names: Vec<String> =
            (0..40).map(|at| format!("list_{}_issue\u{202e}<", ["a", "b*"][at % 2])).collect();
        let tools: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(propose_toolsets(&tools), []);
    }
}
