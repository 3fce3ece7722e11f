//! Newline-delimited framing (MCP, stdio transport) with a size limit that loses no request.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::skim::{LineSummary, Skimmer};

/// One line, without its line break.
#[derive(Debug)]
pub(crate) enum Line {
    Text(Bytes),
    /// A line longer than the limit. It was read to its end and dropped.
    Oversized(LineSummary),
}

/// Free space that is reserved in the buffer for reading, in bytes.
const READ_CHUNK: usize = 64 * 1024;
/// Free space below which more is reserved, in bytes, so that one chunk holds many small lines.
const MIN_READ_ROOM: usize = 8 * 1024;
/// Capacity above which the buffer is replaced after a large line, in bytes.
const MAX_KEPT_CAPACITY: usize = 4 * 1024 * 1024;

/// Splits a byte stream into lines.
pub(crate) struct LineReader<R> {
    io: R,
    buffer: BytesMut,
    /// The length of the start of `buffer` that is known to hold no line break.
    scanned: usize,
    max_line: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Creates a reader. `max_line` is the size limit of a line in bytes, without the line break.
    pub(crate) fn new(io: R, max_line: usize) -> Self {
        Self { io, buffer: BytesMut::new(), scanned: 0, max_line }
    }

    /// Returns the next line that is not blank; `None` at the end of the stream.
    ///
    /// # Errors
    /// If reading fails.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if self.scanned == 0 {
                self.skip_blank().await;
            }
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                let line = self.take(self.scanned + end, 1);
                if line.len() > self.max_line {
                    return Ok(Some(summarize(&line)));
                }
                return Ok(Some(Line::Text(line)));
            }
            self.scanned = self.buffer.len();
            if self.scanned > self.max_line {
                return self.summarize_rest().await.map(Some);
            }
            if self.fill().await? == 0 {
                let rest = self.take(self.buffer.len(), 0);
                let blank = rest.trim_ascii().is_empty();
                return Ok((!blank).then_some(Line::Text(rest)));
            }
        }
    }

    /// Skips blank lines and the white space before the next line. Both are useless and may be
    /// endless.
    async fn skip_blank(&mut self) {
        let blank = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.buffer.advance(blank);
        if blank >= MIN_READ_ROOM {
            // Lets other tasks run.
            tokio::task::yield_now().await;
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        if self.buffer.capacity() - self.buffer.len() < MIN_READ_ROOM {
            self.buffer.reserve(READ_CHUNK);
        }
        self.io.read_buf(&mut self.buffer).await
    }

    /// Takes the first `length` bytes as a line, and drops the `end` bytes after them.
    fn take(&mut self, length: usize, end: usize) -> Bytes {
        let large = self.buffer.capacity() > MAX_KEPT_CAPACITY;
        let line = self.buffer.split_to(length).freeze();
        let _newline = self.buffer.split_to(end);
        self.scanned = 0;
        if large {
            // Otherwise the small lines that follow would keep the memory of the large line alive.
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        line
    }

    /// Reads to the end of a line that is too long, and keeps only the members that identify its
    /// message.
    async fn summarize_rest(&mut self) -> io::Result<Line> {
        let mut skimmer = Skimmer::default();
        skimmer.feed(&self.buffer);
        self.buffer = BytesMut::new();
        self.scanned = 0;
        for chunk in 1_u64.. {
            // Lets other tasks run, however much input there is.
            if chunk.is_multiple_of(16) {
                tokio::task::yield_now().await;
            }
            let at_end = self.fill().await? == 0;
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                skimmer.feed(&self.take(end, 1));
                return Ok(Line::Oversized(skimmer.finish()));
            }
            skimmer.feed(&self.buffer);
            self.buffer.clear();
            if at_end {
                break;
            }
        }
        Ok(Line::Oversized(skimmer.finish()))
    }
}

fn summarize(line: &[u8]) -> Line {
    let mut skimmer = Skimmer::default();
    skimmer.feed(line);
    Line::Oversized(skimmer.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], max: usize) -> Vec<String> {
        let mut reader = LineReader::new(input, max);
        let mut found = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            found.push(match line {
                Line::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
                Line::Oversized(s) => format!("<{} id {:?}>", s.size, s.id),
            });
        }
        found
    }

    #[tokio::test]
    async fn splits_at_newlines_and_skips_blank_lines() {
        assert_eq!(lines(b"a\n\n \r\nbc\nlast", 100).await, ["a", "bc", "last"]);
    }

    #[tokio::test]
    async fn oversized_line_keeps_its_id_and_the_next_line_is_intact() {
        let input = format!("{{\"r\":\"{}\",\"id\":3}}\nok\n", "x".repeat(300_000));
        assert_eq!(lines(input.as_bytes(), 1000).await, ["<300015 id Some(3)>", "ok"]);
        let input = format!("{{\"r\":\"{}\",\"id\":3}}\nok\n", "x".repeat(20));
        assert_eq!(lines(input.as_bytes(), 10).await, ["<35 id Some(3)>", "ok"]);
    }

    #[tokio::test]
    async fn stream_may_end_within_an_oversized_line() {
        let input = format!("{{\"r\":\"{}", "x".repeat(300_000));
        assert_eq!(lines(input.as_bytes(), 1000).await, ["<300006 id None>"]);
    }
}
