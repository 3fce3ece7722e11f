//! A search for a regular expression in a kept result, bounded in time and in its answer.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use regex_automata::{
    Input,
    meta::{Config, Regex},
    util::syntax,
};

use super::findings::{Findings, Gap, Stopped};

/// Maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 500;
/// Maximum size of a compiled pattern and of the memory for its search, in bytes.
const MAX_COMPILED_BYTES: usize = 512 * 1024;
const MAX_CACHE_BYTES: usize = 1024 * 1024;
const TOO_LARGE: &str = "\"grep\" is too large: repeat less, or write classes such as \\w in \
    ASCII, as in (?-u:\\w{8})";
/// Maximum depth of a pattern.
const MAX_NESTING: u32 = 50;
/// Minimum and maximum length of the parts in which a long line is searched, in bytes. The time is
/// checked between them, so that their length depends on the speed of the search.
const MIN_WINDOW_BYTES: usize = 8 * 1024;
const MAX_WINDOW_BYTES: usize = 256 * 1024;
/// The part of a window that the next one searches again, for matches at its end.
const OVERLAP: usize = 4;
/// Times of a window below and above which the next one is longer or shorter.
const FAST: Duration = Duration::from_millis(5);
const SLOW: Duration = Duration::from_millis(50);
/// Maximum length of a match in the answer, and of the text before and after it, in bytes.
const MAX_SHOWN_BYTES: usize = 160;
const MAX_AROUND_BYTES: usize = 80;
/// Length up to which lines are shown whole, in bytes.
const MAX_LINE_BYTES: usize = 320;
/// Maximum length of the text with several matches that are near each other, in bytes.
const MAX_EXCERPT_BYTES: usize = 1000;

/// A pattern, and the length of the next window.
#[derive(Debug)]
pub(super) struct Grep {
    pattern: Regex,
    /// True if a match cannot be longer than what two windows have in common.
    is_short: bool,
    window: usize,
}

impl Grep {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// If the pattern is invalid or too large.
    pub(super) fn compile(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(format!("\"grep\" is longer than {MAX_PATTERN_BYTES} bytes"));
        }
        let syntax = syntax::Config::new().nest_limit(MAX_NESTING);
        let parsed = syntax::parse_with(pattern, &syntax)
            .map_err(|error| format!("\"grep\" is not a supported regular expression: {error}"))?;
        let limits = Config::new()
            .nfa_size_limit(Some(MAX_COMPILED_BYTES))
            .hybrid_cache_capacity(MAX_CACHE_BYTES);
        let built = Regex::builder().configure(limits).build_from_hir(&parsed);
        let longest = parsed.properties().maximum_len();
        Ok(Self {
            pattern: built.map_err(|_| TOO_LARGE.to_owned())?,
            is_short: longest.is_some_and(|longest| longest <= MIN_WINDOW_BYTES / OVERLAP),
            window: 2 * MIN_WINDOW_BYTES,
        })
    }

    /// Searches the lines of a text.
    pub(super) fn search(&mut self, text: &str, findings: &mut Findings) {
        for (number, line) in text.split('\n').enumerate() {
            let line = line.strip_suffix('\r').unwrap_or(line);
            if self.search_line(number + 1, line, findings).is_err() {
                break;
            }
        }
    }

    fn search_line(
        &mut self,
        number: usize,
        line: &str,
        findings: &mut Findings,
    ) -> Result<(), Stopped> {
        if line.len() <= MAX_LINE_BYTES {
            findings.check_time()?;
            if self.pattern.is_match(line) {
                findings.add(&format!("{number}: {line}"), 1)?;
            }
            return Ok(());
        }
        let mut open: Option<MatchGroup> = None;
        let scanned = self.scan(line, findings, |found, findings| {
            if let Some(group) = &mut open
                && group.reaches(&found)
                && findings.can_take(group.matches + 1)
            {
                group.extend(&found);
                return Ok(());
            }
            if let Some(done) = open.replace(MatchGroup::of(&found)) {
                findings.add(&done.render(number, line), done.matches)?;
            }
            Ok(())
        });
        // A search that runs out of time keeps what it has found.
        if let Some(last) = open {
            findings.add(&last.render(number, line), last.matches)?;
        }
        scanned
    }

    /// Finds the matches of a long line, which do not overlap.
    fn scan(
        &mut self,
        line: &str,
        findings: &mut Findings,
        mut found: impl FnMut(Range<usize>, &mut Findings) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        let (mut start, mut last_end) = (0, None);
        loop {
            findings.check_time()?;
            let end = line.ceil_char_boundary(start + self.window);
            let overlap = self.window / OVERLAP;
            if end < line.len() && !self.is_short {
                findings.leave_out(Gap::Parts(MIN_WINDOW_BYTES / OVERLAP));
            }
            let begun = Instant::now();
            // Assertions such as `^` and `\b` see the text around the window.
            let first = self.pattern.find(Input::new(line).range(start..end));
            self.adapt(begun.elapsed());
            let next = match first {
                // Text after the window may belong to the match: it is found again in the next one.
                Some(first) if end < line.len() && first.start() >= end - overlap => first.start(),
                // An empty match after another is the end of that one.
                Some(first) if first.is_empty() && last_end == Some(first.end()) => first.end() + 1,
                Some(first) => {
                    found(first.range(), findings)?;
                    last_end = Some(first.end());
                    first.end()
                }
                None if end == line.len() => return Ok(()),
                None => end - overlap,
            };
            if next > line.len() {
                return Ok(());
            }
            start = line.ceil_char_boundary(next);
        }
    }

    fn adapt(&mut self, took: Duration) {
        self.window = match took {
            took if took < FAST => (self.window * 2).min(MAX_WINDOW_BYTES),
            took if took > SLOW => (self.window / 2).max(MIN_WINDOW_BYTES),
            _ => self.window,
        };
    }
}

/// A part of a long line that shows a match, or several that are near each other.
struct MatchGroup {
    /// The position of the first match.
    start: usize,
    /// The end of the last match.
    end: usize,
    /// The end of what is shown of the last match.
    shown: usize,
    matches: usize,
}

impl MatchGroup {
    fn of(found: &Range<usize>) -> Self {
        let shown = found.end.min(found.start + MAX_SHOWN_BYTES);
        Self { start: found.start, end: found.end, shown, matches: 1 }
    }

    /// Returns whether a match is so near that both are shown together.
    fn reaches(&self, next: &Range<usize>) -> bool {
        let is_whole = self.shown == self.end;
        let is_near = next.start <= self.end + 2 * MAX_AROUND_BYTES;
        is_whole && is_near && next.end <= self.start + MAX_EXCERPT_BYTES
    }

    fn extend(&mut self, next: &Range<usize>) {
        let next = Self::of(next);
        *self = Self { start: self.start, matches: self.matches + 1, ..next };
    }

    /// Returns the text with the position of the first match and the text around all of them.
    fn render(&self, number: usize, line: &str) -> String {
        let from = line.floor_char_boundary(self.start.saturating_sub(MAX_AROUND_BYTES));
        let to = line.ceil_char_boundary(self.shown + MAX_AROUND_BYTES);
        let before = if from > 0 { "…" } else { "" };
        let after = if to < line.len() { "…" } else { "" };
        let matches = match self.matches {
            1 => String::new(),
            matches => format!(" ({matches} matches)"),
        };
        format!("{number}, byte {}{matches}: {before}{}{after}", self.start, &line[from..to])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(text: &str, pattern: &str, limit: usize) -> Findings {
        let mut findings = Findings::within(Duration::from_hours(1), limit, 8000);
        Grep::compile(pattern).unwrap().search(text, &mut findings);
        findings
    }

    #[test]
    fn match_at_the_border_of_windows_and_empty_match_count_once() {
        let after = "-".repeat(200_000);
        let digits = format!("{}12345{after}", "z".repeat(2 * MIN_WINDOW_BYTES - 1));
        assert_eq!(lines(&digits, r"\d{1,5}", 50).count, 1);
        assert_eq!(lines(&digits, r"123|1|23", 50).count, 1);
        let word = format!("{}word{after}", "-".repeat(1000));
        assert_eq!(lines(&word, r"\b", 50).count, 2);
        assert_eq!(lines(&"a".repeat(400), "b{0,3}", 1000).count, 401);
    }

    #[test]
    fn pattern_that_is_too_large_is_refused_with_a_way_out() {
        let refused = Grep::compile(r"\w{8}-\w{4}-\w{4}-\w{12}").unwrap_err();
        assert!(refused.contains("(?-u:"), "{refused}");
        let found = lines("id 12345678-abcd-1234", r"(?-u:\w{8}-\w{4}-\w{4})", 1);
        assert_eq!(found.count, 1);
    }

    #[test]
    fn lines_that_match_have_their_numbers() {
        let found = lines("one\r\ntwo\r\nthreeo\n", "^t.*o$", 50);
        assert_eq!(found.text, "2: two\n3: threeo");
        assert_eq!(found.gaps, []);
        let first = lines("one\ntwo\nthree", "t", 1);
        assert_eq!((first.text.as_str(), first.count), ("2: two", 1));
        assert_eq!(first.gaps, [Gap::Full]);
    }

    #[test]
    fn matches_of_a_long_line_are_shown_with_their_surroundings() {
        let line =
            format!("{}needle{}needle{}", "ä".repeat(9000), "x".repeat(20_000), "y".repeat(9));
        let found = lines(&line, "needle", 50);
        let shown: Vec<&str> = found.text.lines().collect();
        assert_eq!(shown.len(), 2);
        assert!(shown[0].starts_with("1, byte 18000: …ää") && shown[0].ends_with("xx…"));
        assert!(shown[1].ends_with("needleyyyyyyyyy"));
    }

    #[test]
    fn matches_near_each_other_are_shown_together_and_counted() {
        let (far, near) = ("y".repeat(9000), "y".repeat(100));
        let line = format!("{far}<a><b>{near}<c>{far}<d>");
        let found = lines(&line, "<.>", 50);
        let shown: Vec<&str> = found.text.lines().collect();
        assert_eq!((found.count, shown.len()), (4, 2), "{}", found.text);
        assert!(shown[0].starts_with("1, byte 9000 (3 matches): …yy"), "{}", shown[0]);
        assert!(shown[0].contains(&format!("<a><b>{near}<c>y")), "{}", shown[0]);
        assert!(shown[1].ends_with("y<d>"), "{}", shown[1]);
        let first = lines(&line, "<.>", 2);
        assert_eq!((first.count, first.gaps), (2, vec![Gap::Full]));
        assert!(first.text.starts_with("1, byte 9000 (2 matches): "), "{}", first.text);
    }

    #[test]
    fn long_match_is_found_once_and_its_beginning_is_shown() {
        let line = format!("{}{}{}x", "y".repeat(900), "x".repeat(1000), "y".repeat(500));
        let found = lines(&line, "x+", 50);
        let shown: Vec<&str> = found.text.lines().collect();
        assert_eq!((found.count, shown.len()), (2, 2), "{}", found.text);
        let begin = format!("1, byte 900: …{}{}…", "y".repeat(80), "x".repeat(240));
        assert_eq!(shown[0], begin);
    }

    #[test]
    fn patterns_that_need_much_memory_are_refused() {
        for pattern in ["(", &"a".repeat(501), r"\w{1000}{1000}", &"(".repeat(200)] {
            assert!(Grep::compile(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn patterns_of_words_and_classes_are_not_too_large() {
        for pattern in [r"\w+@\w+\.\w+", r"(?i)error.*time-?out", r"\bid\b\W{1,9}\d{1,12}"] {
            assert!(Grep::compile(pattern).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn parts_of_a_long_line_are_searched_as_the_line() {
        let records = (0..6000).map(|id| format!(r#"{{"id": {id}, "state": "closed"}}"#));
        let line = format!("[{}]", records.collect::<Vec<_>>().join(","));
        for id in (0..6000).step_by(7) {
            let pattern = format!(r#""id": {id},.*?"closed""#);
            assert_eq!(lines(&line, &pattern, 50).count, 1, "{pattern}");
        }
        for (pattern, count) in
            [("0$", 0), (r"\]$", 1), (r"^\[", 1), (r"^\{", 0), (r"\b599\b", 1), (r"stat\b", 0)]
        {
            assert_eq!(lines(&line, pattern, 50).count, count, "{pattern}");
        }
        let whole = lines(&line, r"^\[.*\]$", 50);
        assert_eq!((whole.count, whole.gaps), (0, vec![Gap::Parts(2048)]));
        assert_eq!(lines(&line, "id.{1,99}0", 1).gaps, [Gap::Full]);
        assert_eq!(lines(&line, "x{1,2000}", 1).gaps, []);
    }

    #[test]
    fn search_ends_with_its_time() {
        for text in ["a\na", &"a".repeat(MAX_LINE_BYTES + 1)] {
            let mut findings = Findings::within(Duration::ZERO, 50, 8000);
            Grep::compile("a").unwrap().search(text, &mut findings);
            assert_eq!((findings.count, findings.gaps), (0, vec![Gap::OutOfTime]));
        }
    }

    proptest! {
        // Each line is long.
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn matches_of_a_long_line_are_counted_as_those_of_any_text(
            parts in proptest::collection::vec(("[abé]{1,30}", 1..300_usize), 12..40),
        ) {
            let line: String = parts.iter().map(|(part, times)| part.repeat(*times)).collect();
            prop_assume!(line.len() > MAX_LINE_BYTES);
            for pattern in ["a", "ab", "é+", "a{1,5}b", "(?:ba){1,9}", "a{1,5}"] {
                let all = Regex::new(pattern).unwrap().find_iter(&line).count();
                let unbounded = usize::MAX / 2;
                let mut found = Findings::within(Duration::from_hours(1), unbounded, unbounded);
                Grep::compile(pattern).unwrap().search(&line, &mut found);
                prop_assert!(found.count == all || found.gaps.contains(&Gap::Parts(2048)));
            }
        }

    }

    proptest! {
        #[test]
        fn answer_is_bounded(
            text in "[\\PC\n]{0,600}",
            times in 1..60_usize,
            limit in 0..60_usize,
        ) {
            let text = text.repeat(times);
            for pattern in ["", ".", "a|b", "$"] {
                let mut found = Findings::new(limit, 1000);
                Grep::compile(pattern).unwrap().search(&text, &mut found);
                prop_assert!(found.count <= limit && found.text.len() <= 1000);
            }
        }
    }
}
