//! The messages in which replicas tell each other of something new. A message that is lost costs
//! time and nothing else.

/// A message of one replica to the others; `mark` names its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicaNews<'a> {
    /// It has written a new record.
    Record { mark: &'a str },
    /// It has stored the catalog of a server.
    Catalog { mark: &'a str, server: &'a str },
}

/// The beginning of a message of a catalog. A mark has no space.
const CATALOG: &str = "catalog ";

impl<'a> ReplicaNews<'a> {
    pub(super) fn parse(message: &'a str) -> Self {
        let catalog = message.strip_prefix(CATALOG).and_then(|rest| rest.split_once(' '));
        match catalog {
            Some((mark, server)) => Self::Catalog { mark, server },
            // Earlier versions know no other message.
            None => Self::Record { mark: message },
        }
    }

    pub(super) fn encode(self) -> String {
        match self {
            Self::Record { mark } => mark.to_owned(),
            Self::Catalog { mark, server } => format!("{CATALOG}{mark} {server}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_read_as_it_was_written() {
        let record = ReplicaNews::Record { mark: "m" };
        let catalog = ReplicaNews::Catalog { mark: "m", server: "a b" };
        for news in [record, catalog] {
            assert_eq!(ReplicaNews::parse(&news.encode()), news);
        }
        assert_eq!(ReplicaNews::parse("catalog"), ReplicaNews::Record { mark: "catalog" });
    }
}
