//! Renders the problems of a config for the user: each with its line and a caret, then their
//! number.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::{
    apps::app_file_names,
    base::{counted, read_bounded, visible},
    config::{MAX_PROBLEMS, Problem, excerpt},
};

/// Maximum size of a config, in bytes, that is read again to show its lines.
const MAX_BYTES: u64 = 4 << 20;

/// The text in a problem's message that precedes a hint.
const HINT: &str = "; did you mean ";

/// Returns the report of the problems of a config.
pub(super) fn report(problems: &[Problem]) -> String {
    let has_colours = console::colors_enabled_stderr();
    let renderer = if has_colours { Renderer::styled() } else { Renderer::plain() };
    let renderer = match console::Term::stderr().size_checked() {
        Some((_, width)) if width > 0 => renderer.term_width(width.into()),
        _ => renderer,
    };
    let mut lines = Lines::default();
    let shown = problems.iter().map(|problem| {
        let line = lines.of(problem);
        renderer.render(&[group(problem, line.as_deref(), &title(problem))])
    });
    let mut reported: Vec<String> = shown.collect();
    let file = problems.first().map(|problem| problem.file.display().to_string());
    let more = if problems.len() < MAX_PROBLEMS { "" } else { "at least " };
    let count = format!("{more}{}", counted(problems.len(), "problem"));
    reported.push(format!("{count} in {}", visible(&file.unwrap_or_default())));
    if problems.first().is_some_and(|problem| app_file_names().include(&problem.file)) {
        reported.push(
            "the file belongs to another program: `dormouse import FILE` copies its servers"
                .to_owned(),
        );
    }
    reported.join("\n\n")
}

fn title(problem: &Problem) -> String {
    let message = visible(problem.message.split(HINT).next().unwrap_or_default());
    match problem.key_path.as_str() {
        "" => message,
        path => format!("{}: {message}", visible(path)),
    }
}

fn group<'a>(problem: &Problem, line: Option<&'a str>, title: &'a str) -> Group<'a> {
    let path = visible(&problem.file.display().to_string());
    let Problem { line: number, column, .. } = problem;
    let group = Level::ERROR.primary_title(title);
    let group = if let Some(line) = line {
        let annotation = AnnotationKind::Primary.span(marked(line, *column));
        let snippet = Snippet::source(line).line_start(*number).path(path);
        group.element(snippet.annotation(annotation))
    } else {
        group.element(Level::NOTE.message(format!("at {path}:{number}:{column}")))
    };
    match problem.message.split_once(HINT) {
        Some((_, hint)) => {
            group.element(Level::HELP.message(format!("did you mean {}", visible(hint))))
        }
        None => group,
    }
}

/// Returns the byte range of the word or quoted text that begins in this column.
fn marked(line: &str, column: usize) -> std::ops::Range<usize> {
    let start = line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    let text = &line[start..];
    let length = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].find(quote).map_or(text.len(), |end| end + 2),
        _ => text.find(|c: char| c.is_whitespace() || ",:=[]{}".contains(c)).unwrap_or(text.len()),
    };
    let least = text.chars().next().map_or(0, char::len_utf8);
    start..start + length.max(least)
}

/// The lines of the config file, read when they are first needed.
#[derive(Default)]
struct Lines(Option<Vec<String>>);

impl Lines {
    /// Returns the problem's line without secrets.
    ///
    /// Returns `None` if the file is too large, or if the line does not contain the key: the
    /// problem may be that of an edit which was rejected and not written.
    fn of(&mut self, problem: &Problem) -> Option<String> {
        let lines = self.0.get_or_insert_with(|| {
            let text = read_bounded(&problem.file, MAX_BYTES).unwrap_or_default();
            let text = String::from_utf8(text).unwrap_or_default();
            text.trim_start_matches('\u{feff}').split('\n').map(str::to_owned).collect()
        });
        let line = lines.get(problem.line.checked_sub(1)?)?;
        let key = problem.key_path.rsplit('.').next().unwrap_or_default();
        let key = key.split('[').next().unwrap_or_default();
        excerpt(line, &problem.key_path)
            .filter(|shown| !shown.trim().is_empty() && line.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn mark_covers_whole_characters(line in "[a-z\"=:\u{a0}\u{3000}é \
            ]{0,9}", column in 0..12usize) {
            prop_assert!(line.get(marked(&line, column)).is_some());
        }
    }

    #[test]
    fn problems_are_shown_with_their_lines_and_without_secrets() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("dormouse.json");
        let text = "{\n  \"surfac\": \"direct\",\n  \"mcpServers\": {\"a\": {\"API_TOKEN\": \
            \"abc\"}}\n}\n";
        std::fs::write(&file, text).unwrap();
        let problem = |line, column, key_path: &str, message: &str| Problem {
            file: file.clone(),
            line,
            column,
            key_path: key_path.to_owned(),
            message: message.to_owned(),
        };
        let problems = [
            problem(2, 3, "surfac", "unknown key \"surfac\"; did you mean \"surface\"?"),
            problem(3, 24, "mcpServers.a.API_TOKEN", "unknown key \"API_TOKEN\""),
            problem(9, 1, "", "beyond the end"),
        ];
        let reported = report(&problems);
        let place = directory.path().display().to_string();
        insta::assert_snapshot!(console::strip_ansi_codes(&reported.replace(&place, "PLACE")));
    }
}
