//! What is known of a server as it is kept on disk: one line that says what the file is, then the records as
//! JSON, the newest first. A server may list other things to hosts that declare other capabilities, so that
//! there is one record for each set of them.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Discovery, Item, Pins, ServerCatalog, Spoken, Tool, read_items};
use crate::{
    config::Framing,
    protocol::{Era, Greeting},
    wire::{Raw, edit},
};

/// Raised when older programs cannot read what is written.
const FORMAT: u32 = 1;

/// What is known of a server from when it was last connected.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The name that the server had in the config then; for people.
    pub server: String,
    /// When the catalog was last seen to be what it is.
    pub learned: SystemTime,
    pub catalog: ServerCatalog,
}

/// What is kept of one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// The newest first; one for each set of declared capabilities.
    pub records: Vec<Record>,
    /// Of all its tools, whatever was declared when they were seen.
    pub pins: Pins,
    /// Tools as they were last pinned, of those that the records have otherwise or no more; for comparison.
    pub former: Vec<Tool>,
}

/// Why a file is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("it is damaged")]
    Damaged,
    /// It is left alone: the newer program may still need it.
    #[error("it was written by another version of dormouse")]
    OtherFormat,
}

#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(rename = "dormouse-catalog")]
    format: u32,
    /// Of all that follows the first line.
    sha256: String,
}

/// Members of the body that hold no text of the server.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    server: String,
    /// Seconds since 1970.
    learned: u64,
    took_ms: u64,
    era: Era,
    version: String,
    speaks_legacy: Option<bool>,
    speaks_modern: Option<bool>,
    is_sse: bool,
    declared: Vec<String>,
    fresh_for_ms: Option<u64>,
    instructions: Option<String>,
    description: Option<String>,
}

impl Record {
    /// Whether it was learned from a server that had been declared these capabilities.
    pub fn is_for(&self, declared: &[String]) -> bool {
        self.catalog.discovery.declared == declared
    }

    /// Whether it was learned from a server that had been declared all of these, and perhaps more: what is listed
    /// beyond what such a host can use goes when the server is next connected.
    pub fn covers(&self, declared: &[String]) -> bool {
        declared.iter().all(|name| self.catalog.discovery.declared.contains(name))
    }

    fn body(&self) -> Raw {
        let ServerCatalog { greeting, discovery, tools, resources, templates, prompts } =
            &self.catalog;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let spoken = discovery.spoken.certain();
        let since_epoch = self.learned.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let about = About {
            server: self.server.clone(),
            learned: since_epoch.as_secs(),
            took_ms: millis(discovery.took),
            era: greeting.era,
            version: greeting.version.clone(),
            speaks_legacy: spoken.legacy,
            speaks_modern: spoken.modern,
            is_sse: spoken.framing == Some(Framing::Sse),
            declared: discovery.declared.clone(),
            fresh_for_ms: discovery.fresh_for.map(millis),
            instructions: greeting.instructions.clone(),
            description: greeting.about.clone(),
        };
        let tools = Raw::array(tools.iter().map(|tool| &tool.raw));
        let resources = Raw::array(resources.iter().map(|item| &item.raw));
        let templates = Raw::array(templates.iter().map(|item| &item.raw));
        let prompts = Raw::array(prompts.iter().map(|prompt| &prompt.raw));
        let about = Raw::encode(&about);
        let mut members = vec![
            ("about", &about),
            ("capabilities", &greeting.capabilities),
            ("tools", &tools),
            ("resources", &resources),
            ("resourceTemplates", &templates),
            ("prompts", &prompts),
        ];
        members.extend(greeting.said.as_ref().map(|said| ("said", said)));
        edit::set_each(&Raw::empty_object(), &members)
    }

    fn read(body: &Raw) -> Option<Self> {
        let members =
            ["about", "capabilities", "tools", "resources", "resourceTemplates", "prompts", "said"];
        let [about, capabilities, tools, resources, templates, prompts, said] =
            edit::get_each(body, members);
        let about: About = about?.read().ok()?;
        let greeting = Greeting {
            era: about.era,
            version: about.version,
            capabilities: capabilities?.detached(),
            instructions: about.instructions,
            about: about.description,
            // Records of older versions have none.
            said: said.map(|said| said.detached()),
        };
        let spoken = Spoken {
            legacy: about.speaks_legacy,
            modern: about.speaks_modern,
            framing: about.is_sse.then_some(Framing::Sse),
            is_guessed: false,
        };
        let discovery = Discovery {
            spoken,
            took: Duration::from_millis(about.took_ms),
            declared: about.declared,
            fresh_for: about.fresh_for_ms.map(Duration::from_millis),
        };
        let catalog = ServerCatalog {
            greeting,
            discovery,
            tools: items(&tools?)?,
            resources: items(&resources?)?,
            templates: items(&templates?)?,
            prompts: items(&prompts?)?,
        };
        let learned = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(about.learned))?;
        Some(Self { server: about.server, learned, catalog })
    }
}

impl Kept {
    /// The file that holds it.
    pub fn encode(&self) -> Vec<u8> {
        let records: Vec<Raw> = self.records.iter().map(Record::body).collect();
        let former: Vec<Raw> = self.former.iter().map(|tool| tool.raw.clone()).collect();
        let members = [
            ("pins", &Raw::encode(&self.pins)),
            ("incomplete", &Raw::encode(&self.pins.is_incomplete())),
            ("records", &Raw::array(&records)),
            ("former", &Raw::array(&former)),
        ];
        let mut body = edit::set_each(&Raw::empty_object(), &members).as_bytes().to_vec();
        body.push(b'\n');
        let head = Head { format: FORMAT, sha256: super::hex(&Sha256::digest(&body)) };
        let mut file = Raw::encode(&head).as_bytes().to_vec();
        file.push(b'\n');
        file.append(&mut body);
        file
    }

    /// # Errors
    /// When the text is not what `encode` has written.
    pub fn decode(file: Vec<u8>) -> Result<Self, RecordError> {
        let end = file.iter().position(|byte| *byte == b'\n').ok_or(RecordError::Damaged)?;
        let head: Head = serde_json::from_slice(&file[..end]).map_err(|_| RecordError::Damaged)?;
        if head.format != FORMAT {
            return Err(RecordError::OtherFormat);
        }
        let body = bytes::Bytes::from(file).slice(end + 1..);
        if super::hex(&Sha256::digest(&body)) != head.sha256 {
            return Err(RecordError::Damaged);
        }
        Raw::parse(body).ok().and_then(|body| Self::read(&body)).ok_or(RecordError::Damaged)
    }

    fn read(body: &Raw) -> Option<Self> {
        let [pins, incomplete, records, former] =
            edit::get_each(body, ["pins", "incomplete", "records", "former"]);
        // Older files have neither.
        let former = former.and_then(|former| items(&former)).unwrap_or_default();
        let incomplete = incomplete.is_some_and(|flag| flag.as_bytes() == b"true");
        let records: Option<Vec<Record>> =
            edit::elements(&records?)?.iter().map(Record::read).collect();
        let pins: Pins = pins?.read().ok()?;
        Some(Self { records: records?, pins: pins.with_incomplete(incomplete), former })
    }
}

fn items<I: Item>(list: &Raw) -> Option<Vec<I>> {
    Some(read_items(&edit::elements(list)?).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Digests, Prompt, Resource, Tool};
    use proptest::prelude::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    fn record() -> Record {
        let mut catalog = ServerCatalog::unknown();
        catalog.greeting.instructions = Some("say \"hello\"\n".to_owned());
        catalog.discovery.took = Duration::from_millis(1234);
        catalog.tools =
            vec![Tool::read(&raw(r#"{"name":"a","z":1e2,"inputSchema":{ "k": [1.0] }}"#)).unwrap()];
        catalog.resources = vec![Resource::read(&raw(r#"{"uri":"u://x","name":"x"}"#)).unwrap()];
        catalog.prompts = vec![Prompt::read(&raw(r#"{"name":"p"}"#)).unwrap()];
        let learned = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        Record { server: "s".to_owned(), learned, catalog }
    }

    fn kept(records: Vec<Record>) -> Kept {
        let mut pins = Pins::default();
        for record in &records {
            pins.see(&Digests::of(&record.catalog));
        }
        Kept { records, pins, former: Vec::new() }
    }

    #[test]
    fn files_from_before_definitions_were_kept_can_be_read() {
        let kept = kept(vec![record()]);
        let text = String::from_utf8(kept.encode()).unwrap();
        let (_, body) = text.split_once('\n').unwrap();
        let body = body.replace(",\"former\":[]", "");
        assert!(!body.contains("former"), "{body}");
        assert_eq!(Kept::read(&raw(&body)), Some(kept));
    }

    #[test]
    fn what_is_written_is_read_again_byte_for_byte() {
        let kept = kept(vec![record(), Record { server: "t".to_owned(), ..record() }]);
        let file = kept.encode();
        assert_eq!(Kept::decode(file.clone()), Ok(kept));
        let text = String::from_utf8(file).unwrap();
        let newer = text.replacen("\"dormouse-catalog\":1", "\"dormouse-catalog\":2", 1);
        assert_eq!(Kept::decode(newer.into_bytes()), Err(RecordError::OtherFormat));
    }

    proptest! {
        #[test]
        fn damage_is_noticed(at in 0..2000usize, byte: u8, cut in 0..2000usize) {
            let whole = kept(vec![record()]).encode();
            let at = at % whole.len();
            let mut damaged = whole.clone();
            damaged[at] = byte;
            if damaged != whole {
                prop_assert!(Kept::decode(damaged).is_err());
            }
            prop_assert!(Kept::decode(whole[..cut % whole.len()].to_vec()).is_err());
        }
    }
}
