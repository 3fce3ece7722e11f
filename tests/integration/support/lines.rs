//! The lines of one stream.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    sync::Notify,
};

use super::PATIENCE;

#[derive(Default)]
pub struct Lines {
    seen: Mutex<Vec<String>>,
    grown: Notify,
}

impl Lines {
    pub fn follow(stream: impl AsyncRead + Unpin + Send + 'static) -> Arc<Self> {
        let lines = Arc::new(Self::default());
        let kept = lines.clone();
        tokio::spawn(async move {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
                let text = String::from_utf8(std::mem::take(&mut line)).expect("UTF-8");
                kept.push(text.trim_end_matches('\n').to_owned());
            }
        });
        lines
    }

    pub fn push(&self, line: String) {
        self.seen.lock().unwrap().push(line);
        self.grown.notify_waiters();
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub fn all(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits for a line, old or new, for which `wanted` returns a value, and returns the value.
    pub async fn find<T>(&self, what: &str, wanted: impl Fn(&str) -> Option<T>) -> T {
        self.find_from_start(what, || (), wanted).await
    }

    /// Does the same, and calls `begin` before each search from the first line.
    pub async fn find_from_start<T>(
        &self,
        what: &str,
        begin: impl Fn(),
        wanted: impl Fn(&str) -> Option<T>,
    ) -> T {
        let search = async {
            loop {
                let grown = self.grown.notified();
                begin();
                if let Some(found) = self.seen.lock().unwrap().iter().find_map(|line| wanted(line))
                {
                    return found;
                }
                let _ = tokio::time::timeout(Duration::from_millis(50), grown).await;
            }
        };
        match tokio::time::timeout(PATIENCE, search).await {
            Ok(found) => found,
            Err(tokio::time::error::Elapsed { .. }) => {
                panic!("{what} never came; there is {:#?}", self.all())
            }
        }
    }
}
