//! Requests and their right tools. They were written before any tuning; constants are chosen by the
//! half `tune` and judged by the half `report`.

use std::fmt;

use serde::Deserialize;

/// Requests over the catalogs of some servers.
pub struct Set {
    pub name: &'static str,
    /// The number of servers to search: the first ones of the config.
    pub servers: usize,
    requests: &'static str,
}

pub const SETS: [Set; 2] = [
    Set { name: "few", servers: 10, requests: include_str!("requests/few.jsonl") },
    Set { name: "many", servers: 29, requests: include_str!("requests/many.jsonl") },
];

#[derive(Deserialize)]
pub struct Request {
    pub kind: Kind,
    #[serde(rename = "request")]
    pub text: String,
    /// Right tools; any of them counts.
    pub tools: Vec<String>,
    pub split: Split,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The request has words of the tool.
    Shares,
    /// The request has no word of the tool.
    Paraphrase,
    /// The request names a goal instead of an action.
    Goal,
}

#[derive(Clone, Copy, PartialEq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    Tune,
    Report,
}

impl Set {
    /// # Errors
    /// The file does not have the expected form.
    pub fn requests(&self, split: Split) -> serde_json::Result<Vec<Request>> {
        let requests = self.requests.lines().map(serde_json::from_str);
        let of_split = |request: &serde_json::Result<Request>| {
            request.as_ref().map_or(true, |request| request.split == split)
        };
        requests.filter(of_split).collect()
    }
}

impl Request {
    /// Returns the position of the first right answer, counted from one.
    pub fn rank(&self, found: &[String]) -> Option<u32> {
        (1..).zip(found).find(|(_, tool)| self.tools.contains(tool)).map(|(rank, _)| rank)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shares => "shares",
            Self::Paraphrase => "paraphrase",
            Self::Goal => "goal",
        })
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tune => "tune",
            Self::Report => "report",
        })
    }
}
