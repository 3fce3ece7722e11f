//! The input of a fuzz target, which begins with lines of arguments, so that people can read and
//! write its seeds.

use std::{
    borrow::Cow,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// The bytes that a fuzz target has not read yet.
pub(crate) struct FuzzInput<'a>(&'a [u8]);

impl<'a> FuzzInput<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Takes the next line, without its line break.
    pub(crate) fn line(&mut self) -> &'a [u8] {
        let end = memchr::memchr(b'\n', self.0).unwrap_or(self.0.len());
        let (line, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        line
    }

    /// Takes the next line as text.
    pub(crate) fn text_line(&mut self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.line())
    }

    /// Takes the next line as numbers.
    pub(crate) fn choices(&mut self) -> Choices<'a> {
        Choices(self.line())
    }

    /// Returns everything after the lines that were taken.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Returns everything after the lines that were taken, as text.
    pub(crate) fn rest_text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }
}

/// Numbers that an input chooses, one per byte: `0` to `9`, then `a` to `z` for 10 to 35. Any other
/// byte is its value.
pub(crate) struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    /// Takes the next number; 0 at the end of the line.
    pub(crate) fn number(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        number(*first)
    }

    /// Takes the next number, and returns the value that it chooses.
    pub(crate) fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.number() % values.len()]
    }

    /// Cuts `bytes` into pieces of the sizes that the remaining numbers give, again and again. One
    /// piece if there are none.
    pub(crate) fn pieces<'b>(&self, bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let mut sizes = self.0.iter().map(|byte| number(*byte).max(1)).cycle();
        let mut pieces = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let size = sizes.next().unwrap_or(rest.len()).min(rest.len());
            let (piece, behind) = rest.split_at(size);
            pieces.push(piece);
            rest = behind;
        }
        pieces
    }
}

fn number(byte: u8) -> usize {
    match byte {
        b'0'..=b'9' => usize::from(byte - b'0'),
        b'a'..=b'z' => usize::from(byte - b'a') + 10,
        byte => usize::from(byte),
    }
}

/// Polls a future that waits for nothing outside of itself until it is done.
pub(crate) fn run_to_end<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
    }
}
