//! The text of one result that was cut, in memory or in a file, and the answers that are read from
//! it.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    iter,
    ops::Range,
};

use super::{
    content::Content,
    findings::Findings,
    grep::Grep,
    json_path::JsonPath,
    json_shape::shape,
    pages::{page_count, page_in_window, page_window},
    path_search,
};
use crate::{
    base::{Lock, counted},
    surface::ResultPart,
    wire::JsonNode,
};

/// Maximum length of a text that is kept in memory, in bytes.
const MAX_MEMORY_BYTES: usize = 64 * 1024;
/// Maximum length of the findings of a search, in bytes.
pub(super) const MAX_FINDINGS_BYTES: usize = 7500;
/// Maximum length of an error about an argument, in bytes.
const MAX_ERROR_BYTES: usize = 600;

/// A kept result. Its methods may block (files).
#[derive(Debug)]
pub(in crate::proxy) struct KeptResult {
    length: usize,
    body: Body,
    /// The place of the JSON in the text, if the text has any.
    json: Option<Range<usize>>,
}

#[derive(Debug)]
enum Body {
    Memory(String),
    /// A file without a name, so that nothing is left of it when dormouse ends.
    File(Lock<File>),
}

/// A part of a result, or the findings of a search in it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::proxy) struct Excerpt {
    pub(in crate::proxy) text: String,
    /// A remark about the text: a block of its own, so that the texts of pages can be joined.
    pub(in crate::proxy) note: String,
}

impl KeptResult {
    /// Keeps the text of a result.
    ///
    /// # Errors
    /// If a long text cannot be written to a temporary file.
    pub(super) fn keep(content: &Content) -> io::Result<Self> {
        let (text, json) = (&content.text, content.json.clone());
        let length = text.len();
        let body = if length <= MAX_MEMORY_BYTES {
            Body::Memory(text.clone())
        } else {
            let mut file = tempfile::tempfile()?;
            file.write_all(text.as_bytes())?;
            Body::File(Lock::new(file))
        };
        Ok(Self { length, body, json })
    }

    /// Returns the length of the text, in bytes.
    pub(in crate::proxy) fn len(&self) -> usize {
        self.length
    }

    /// Returns the form in which another process can keep it: the place of the JSON, as JSON, a
    /// line break, and the text.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(in crate::proxy) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut encoded = serde_json::to_vec(&self.json)?;
        encoded.push(b'\n');
        encoded.extend(self.bytes(0..self.length)?);
        Ok(encoded)
    }

    /// Returns the content that another process has encoded.
    ///
    /// # Errors
    /// If it is damaged.
    pub(super) fn decode(encoded: &[u8]) -> io::Result<Content> {
        let damaged = || io::Error::from(io::ErrorKind::InvalidData);
        let end = memchr::memchr(b'\n', encoded).ok_or_else(damaged)?;
        let json = serde_json::from_slice(&encoded[..end])?;
        let text = String::from_utf8(encoded[end + 1..].to_vec()).map_err(|_| damaged())?;
        Ok(Content { text, json, ..Content::default() })
    }

    /// Returns a part of the text, or the findings of a search in it.
    ///
    /// # Errors
    /// If there is no such part, the search is invalid, or the file cannot be read.
    pub(super) fn read(&self, part: &ResultPart) -> Result<Excerpt, String> {
        match part {
            ResultPart::Page(page) => self.page(*page),
            ResultPart::Grep { pattern, limit } => {
                let mut grep = Grep::compile(pattern).map_err(shortened)?;
                let mut findings = Findings::new(*limit, MAX_FINDINGS_BYTES);
                grep.search(&self.text()?, &mut findings);
                Ok(Excerpt::found(findings, ("match", "matches")))
            }
            ResultPart::JsonPath { path, limit } => self.find_path(path, *limit),
        }
    }

    fn page(&self, page: usize) -> Result<Excerpt, String> {
        let pages = page_count(self.length);
        let Some(window) = page_window(self.length, page) else {
            return Err(format!("no such page; the result has {}", counted(pages, "page")));
        };
        let window = self.bytes(window).map_err(|error| unreadable(&error))?;
        let note = if page == pages {
            format!("[dormouse: page {page} of {pages}, the last one]")
        } else {
            format!("[dormouse: page {page} of {pages}; the next one is page {}]", page + 1)
        };
        Ok(Excerpt { text: page_in_window(&window, self.length, page), note })
    }

    fn find_path(&self, path: &str, limit: usize) -> Result<Excerpt, String> {
        let path: JsonPath = path.parse()?;
        let text = self.text()?;
        let json = self.json.clone().and_then(|place| text.get(place));
        let json = json.ok_or("the result has no JSON; use \"page\" or \"grep\"")?;
        let root = JsonNode::new(json);
        let mut findings = Findings::new(limit, MAX_FINDINGS_BYTES);
        path_search::search(root, &path, &mut findings);
        if findings.count == 0 && findings.gaps.is_empty() {
            let note = format!("[dormouse: no values at this path; the JSON is {}]", shape(root));
            return Ok(Excerpt { text: String::new(), note });
        }
        Ok(Excerpt::found(findings, ("value at this path", "values at this path")))
    }

    fn text(&self) -> Result<String, String> {
        let bytes = self.bytes(0..self.length).map_err(|error| unreadable(&error))?;
        String::from_utf8(bytes).map_err(|error| unreadable(&io::Error::other(error)))
    }

    fn bytes(&self, range: Range<usize>) -> io::Result<Vec<u8>> {
        match &self.body {
            Body::Memory(text) => Ok(text.as_bytes().get(range).unwrap_or_default().to_vec()),
            Body::File(file) => {
                let mut file = file.lock();
                file.seek(SeekFrom::Start(range.start as u64))?;
                let mut bytes = vec![0; range.len()];
                file.read_exact(&mut bytes)?;
                Ok(bytes)
            }
        }
    }
}

impl Excerpt {
    /// Returns the answer with these findings, which are called `one` or `many`.
    fn found(findings: Findings, (one, many): (&str, &str)) -> Self {
        let Findings { text, count, gaps, .. } = findings;
        let what = if count == 1 { one } else { many };
        let gaps = gaps.iter().map(ToString::to_string);
        let parts: Vec<String> = iter::once(format!("{count} {what}")).chain(gaps).collect();
        Self { text, note: format!("[dormouse: {}]", parts.join("; ")) }
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot read the kept result: {error}; call the tool again")
}

fn shortened(mut error: String) -> String {
    error.truncate(error.floor_char_boundary(MAX_ERROR_BYTES));
    error
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::Raw;

    fn kept(result: &serde_json::Value) -> KeptResult {
        KeptResult::keep(&Content::above(0, &Raw::encode(result)).unwrap()).unwrap()
    }

    #[test]
    fn long_text_is_read_from_its_file() {
        let text = "lines of text\nä\n".repeat(10_000);
        let kept = kept(&json!({"content": [{"type": "text", "text": text}]}));
        assert!(matches!(kept.body, Body::File(_)));
        let pages = (1..).map_while(|page| kept.read(&ResultPart::Page(page)).ok());
        let pages: String = pages.map(|read| read.text).collect();
        assert_eq!(pages, text);
        let grep = ResultPart::Grep { pattern: "^ä$".to_owned(), limit: 2 };
        let read = kept.read(&grep).unwrap();
        assert_eq!(read.text, "2: ä\n4: ä");
        assert_eq!(read.note, "[dormouse: 2 matches; there are more]");
    }

    #[test]
    fn encoded_result_is_the_same_elsewhere() {
        let here = kept(&json!({"content": [{"type": "text", "text": "{\"a\":\n\"ä\"}"}]}));
        let there =
            KeptResult::keep(&KeptResult::decode(&here.encode().unwrap()).unwrap()).unwrap();
        let path = ResultPart::JsonPath { path: "$.a".to_owned(), limit: 9 };
        for part in [ResultPart::Page(1), path] {
            assert_eq!(there.read(&part), here.read(&part));
        }
        for damaged in ["", "x\ntext", "null"] {
            assert!(KeptResult::decode(damaged.as_bytes()).is_err());
        }
    }

    #[test]
    fn path_is_for_structured_content_or_for_text_that_is_json() {
        let path = ResultPart::JsonPath { path: "$.a".to_owned(), limit: 9 };
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let structured = kept(&json!({"content": text("no"), "structuredContent": {"a": 7}}));
        assert_eq!(structured.read(&path).unwrap().text, "7");
        let read = kept(&json!({"content": text("{\"b\":1}")})).read(&path).unwrap();
        assert_eq!(read.note, "[dormouse: no values at this path; the JSON is {\"b\": number}]");
        assert!(kept(&json!({"content": text("plain")})).read(&path).is_err());
    }
}
