//! Newline-delimited framing (MCP, stdio transport), with a cap that loses no request.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::skim::{LineSummary, Skimmer};

/// One line without its end.
#[derive(Debug)]
pub enum Line {
    Text(Bytes),
    /// The line was longer than the cap. It was read to its end and dropped.
    Oversized(LineSummary),
}

/// Room that is made for reading.
const READ_CHUNK: usize = 64 * 1024;
/// Room below which more is made: so a chunk serves many small lines.
const MIN_READ_ROOM: usize = 8 * 1024;
/// A buffer that grew past this for one large line is given back instead of reused.
const MAX_KEPT_CAPACITY: usize = 4 * 1024 * 1024;

/// Splits a byte stream into lines.
pub struct LineReader<R> {
    io: R,
    buffer: BytesMut,
    /// How much of `buffer` is known to hold no newline.
    scanned: usize,
    max_line: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// `max_line` is in bytes, without the newline.
    pub fn new(io: R, max_line: usize) -> Self {
        Self { io, buffer: BytesMut::new(), scanned: 0, max_line }
    }

    /// The next line that is not blank; `None` at the end of the stream.
    ///
    /// # Errors
    /// When reading fails.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
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

    /// Takes blank lines away, and the white space before the next one: neither is of any use, and there may be no end
    /// to them.
    async fn skip_blank(&mut self) {
        let blank = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.buffer.advance(blank);
        if blank >= MIN_READ_ROOM {
            // Others are to have a turn.
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
            // Else the next small lines would keep the memory of the large one alive.
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        line
    }

    /// Reads on to the end of a line that is too long, keeping only what says whose it is.
    async fn summarize_rest(&mut self) -> io::Result<Line> {
        let mut skimmer = Skimmer::default();
        skimmer.feed(&self.buffer);
        self.buffer = BytesMut::new();
        self.scanned = 0;
        for chunk in 1_u64.. {
            // Others are to have a turn, however much there is to read.
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
