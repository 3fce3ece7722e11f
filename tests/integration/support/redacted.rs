//! Texts of the program, prepared for snapshots.

use std::fmt;

use super::fixture;

/// Replaces the parts of a text that differ between runs, machines and versions: temporary
/// directories, paths of the built programs, the version, ports chosen by the system, process ids,
/// codes of system errors, times, measured durations and random ids.
pub fn redacted(text: &str) -> String {
    let text = text.replace(env!("CARGO_BIN_EXE_dormouse"), "<dormouse>");
    let text = text.replace(concat!("dormouse ", env!("CARGO_PKG_VERSION")), "dormouse <version>");
    let mut text = text.replace(&*fixture().to_string_lossy(), "<fixture>");
    let temporary = std::env::temp_dir().join(".tmp").to_string_lossy().into_owned();
    for (start, length, replacement) in [
        (temporary.as_str(), random_name as fn(&str) -> Option<usize>, "<home>"),
        ("127.0.0.1:", chosen_port, "127.0.0.1:<port>"),
        ("localhost:", chosen_port, "localhost:<port>"),
        ("0.0.0.0:", chosen_port, "0.0.0.0:<port>"),
        ("20", rest_of_time, "<time>"),
        ("backups/20", rest_of_copy, "backups/<copy>"),
        ("/catalogs/", digest, "/catalogs/<key>"),
        ("/trusted/", digest, "/trusted/<config>"),
        ("/logins/", digest, "/logins/<key>"),
        ("dormouse://results/", word, "dormouse://results/<id>"),
        ("/authorize?", word, "/authorize?<query>"),
        ("/callback?", word, "/callback?<query>"),
        (", process ", number, ", process <id>"),
        ("(os error ", number, "(os error <code>"),
        // The pauses between calls decide how many turns there are.
        ("saved: ", rest_of_line, "saved: <size and turns>"),
        ("dormouse.json:1:", far_column, "dormouse.json:1:<column>"),
    ] {
        text = replaced(&text, start, length, replacement);
    }
    without_durations(&text)
}

fn rest_of_line(text: &str) -> Option<usize> {
    text.find('\n')
}

/// Returns the length of a hash in hexadecimal digits.
fn digest(text: &str) -> Option<usize> {
    let length = text.bytes().take_while(u8::is_ascii_hexdigit).count();
    (length >= 32).then_some(length)
}

/// Replaces each `start` together with the text after it, as far as `length` measures it.
fn replaced(
    text: &str,
    start: &str,
    length: fn(&str) -> Option<usize>,
    replacement: &str,
) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(start) {
        written.push_str(before);
        if let Some(length) = length(after) {
            written.push_str(replacement);
            rest = &after[length..];
        } else {
            written.push_str(start);
            rest = after;
        }
    }
    written + rest
}

/// Measures the six characters that `tempfile` appends.
fn random_name(rest: &str) -> Option<usize> {
    let name = rest.get(..6)?;
    name.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(6)
}

/// Measures a port of five digits. Ports in the configs of tests have at most four.
fn chosen_port(rest: &str) -> Option<usize> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (digits == 5).then_some(digits)
}

/// Measures an RFC 3339 time in UTC, without the first two digits of its year.
fn rest_of_time(rest: &str) -> Option<usize> {
    let pattern = b"00-00-00T00:00:00";
    let has_pattern = rest.len() > pattern.len()
        && rest.bytes().zip(pattern).all(|(byte, expected)| {
            if *expected == b'0' { byte.is_ascii_digit() } else { byte == *expected }
        });
    let end = rest.find('Z').filter(|_| has_pattern)?;
    Some(end + 1)
}

/// Measures the time, the hash of the path and the optional number in the name of a copy.
fn rest_of_copy(rest: &str) -> Option<usize> {
    let (time, after) = rest.split_once("Z-")?;
    let (hash, name) = after.split_once('-')?;
    let number = name.bytes().take_while(u8::is_ascii_digit).count();
    let number = if number > 0 && name[number..].starts_with('-') { number + 1 } else { 0 };
    Some(time.len() + "Z-".len() + hash.len() + number)
}

fn number(rest: &str) -> Option<usize> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then_some(digits)
}

/// Measures a column of three digits or more. Only the configs of [`super::Proxy`] have such long
/// lines, and they contain paths.
fn far_column(rest: &str) -> Option<usize> {
    number(rest).filter(|digits| *digits > 2)
}

fn word(rest: &str) -> Option<usize> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '?' | ']' | '`');
    let length = rest.find(is_end).unwrap_or(rest.len());
    (length > 0).then_some(length)
}

/// Replaces durations in reports, `12 ms` and `1.5 s`. Durations of a config are written without a
/// space, and stay.
fn without_durations(text: &str) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let length = rest[start..]
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len() - start);
        let (before, after) = (&rest[..start], &rest[start + length..]);
        let unit = [" ms", " s"].into_iter().find(|unit| {
            let end = after.strip_prefix(unit);
            end.is_some_and(|end| !end.starts_with(|c: char| c.is_alphanumeric()))
        });
        written.push_str(before);
        if let Some(unit) = unit {
            written.push_str("<duration>");
            rest = &after[unit.len()..];
        } else {
            written.push_str(&rest[start..start + length]);
            rest = after;
        }
    }
    written + rest
}

/// The texts of all cases of a table, for one snapshot.
#[derive(Default)]
pub struct Cases(String);

impl Cases {
    pub fn add(&mut self, case: impl fmt::Display, text: &str) {
        self.0.push_str(&format!("[{case}]\n{}\n\n", redacted(text).trim_end()));
    }
}

impl fmt::Display for Cases {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Returns the first line of a text that contains `part`.
#[track_caller]
pub fn line_of<'a>(text: &'a str, part: &str) -> &'a str {
    let line = text.lines().find(|line| line.contains(part));
    line.unwrap_or_else(|| panic!("no line contains {part:?}:\n{text}"))
}

/// Removes file diffs from a text.
pub fn without_differences(text: &str) -> String {
    let mut kept = String::new();
    // Lines of the old and of the new file that remain in the current hunk.
    let (mut before, mut after) = (0, 0);
    for line in text.lines() {
        let length = |range: &str| -> usize {
            range.split_once(',').map_or(1, |(_, length)| length.parse().expect("a number"))
        };
        let hunk = line.strip_prefix("@@ -").and_then(|line| line.strip_suffix(" @@"));
        if let Some((old, new)) = hunk.and_then(|hunk| hunk.split_once(" +")) {
            (before, after) = (length(old), length(new));
        } else if before + after > 0 {
            before -= usize::from(line.starts_with([' ', '-']));
            after -= usize::from(line.starts_with([' ', '+']));
        } else if !line.starts_with(['-', '+', '\\']) {
            kept.push_str(&format!("{line}\n"));
        }
    }
    kept
}

/// Replaces the name of the list during which a server failed. All lists are requested at once, so
/// the first failure may come from any of them.
pub fn without_list(text: &str) -> String {
    let lists = ["tools", "resources/templates", "resources", "prompts"];
    lists.into_iter().fold(text.to_owned(), |text, list| {
        text.replace(&format!("during {list}/list"), "during <list>")
    })
}

/// Returns the words of an HTML page.
pub fn words_of(page: &str) -> String {
    let mut words = String::new();
    let mut rest = page;
    while let Some((before, tag)) = rest.split_once('<') {
        words.push_str(before);
        let (name, after) = tag.split_once('>').unwrap_or((tag, ""));
        let is_hidden = ["style", "script"].into_iter().find(|hidden| name.starts_with(hidden));
        let end = is_hidden.map(|hidden| format!("</{hidden}>"));
        rest = match end.and_then(|end| after.split_once(&end)) {
            Some((_, after)) => after,
            None => after,
        };
        words.push(' ');
    }
    words.push_str(rest);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn redacted_keeps_values_that_a_test_has_set() {
    let kept =
        "no answer for 400ms; within 2s; at http://127.0.0.1:8123/mcp; 200 bytes; 20 tools; 3:17";
    assert_eq!(redacted(kept), kept);
}

#[test]
fn redacted_replaces_values_of_one_run() {
    let directory = tempfile::tempdir().expect("the temporary directory is writable");
    let text = format!(
        "{}/c.json at 127.0.0.1:43210 until 2036-11-20T14:03:09Z, [1/2] a: 12 ms, b: 1.5 s",
        directory.path().display()
    );
    let expected =
        "<home>/c.json at 127.0.0.1:<port> until <time>, [1/2] a: <duration>, b: <duration>";
    assert_eq!(redacted(&text), expected);
}
