//! The stored knowledge about a server: one header line, then the records as JSON, the newest
//! first. A server may list different items to hosts that declare different capabilities, so there
//! is one record for each set of capabilities.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Discovery, Item, Pins, ProtocolSupport, ServerCatalog, Tool, read_items};
use crate::{
    base::{hex, unix_seconds},
    config::Framing,
    protocol::{Era, Greeting},
    wire::{Raw, edit},
};

/// The version of the file format. Increase it when older programs can no longer read the files.
const FORMAT_VERSION: u32 = 1;

/// The catalog of a server as it was when the server was last connected.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The name of the server in the config at that time, for display.
    pub server: String,
    /// The last time at which the server was seen to have this catalog.
    pub learned: SystemTime,
    pub catalog: ServerCatalog,
}

/// The stored data of one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredServer {
    /// The records, newest first; one for each set of declared capabilities.
    pub records: Vec<Record>,
    /// The pins of all tools of the server, whatever capabilities were declared when they were
    /// seen.
    pub pins: Pins,
    /// The last pinned definitions of tools that the records lack or define differently, for
    /// comparison.
    pub former: Vec<Tool>,
}

/// The reason why a file cannot be read as records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("the file is damaged")]
    Damaged,
    /// The file has another format. It is not overwritten, since a newer program may still need it.
    #[error("the file was written by another version of dormouse")]
    OtherFormat,
}

#[derive(Serialize, Deserialize)]
struct FileHeader {
    #[serde(rename = "dormouse-catalog")]
    format: u32,
    /// The digest of everything after the first line.
    sha256: String,
}

/// The members of a record that contain no raw JSON of the server.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordMetadata {
    server: String,
    /// Seconds since 1970.
    learned: u64,
    took_ms: u64,
    era: Era,
    version: String,
    #[serde(flatten)]
    spoken: SpokenMetadata,
    declared: Vec<String>,
    fresh_for_ms: Option<u64>,
    instructions: Option<String>,
    description: Option<String>,
}

/// The eras and the framing that a server was seen to use.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpokenMetadata {
    speaks_legacy: Option<bool>,
    speaks_modern: Option<bool>,
    is_sse: bool,
}

impl SpokenMetadata {
    fn of(spoken: ProtocolSupport) -> Self {
        let ProtocolSupport { legacy, modern, framing, .. } = spoken.certain();
        let is_sse = framing == Some(Framing::Sse);
        Self { speaks_legacy: legacy, speaks_modern: modern, is_sse }
    }

    fn support(&self) -> ProtocolSupport {
        ProtocolSupport {
            legacy: self.speaks_legacy,
            modern: self.speaks_modern,
            framing: self.is_sse.then_some(Framing::Sse),
            is_guessed: false,
        }
    }
}

impl Record {
    /// Returns whether the server had been declared exactly these capabilities.
    pub fn is_for(&self, declared: &[String]) -> bool {
        self.catalog.discovery.declared == declared
    }

    /// Returns whether the server had been declared all of these capabilities, and perhaps more.
    /// Items that need the additional capabilities disappear when the server is next connected.
    pub fn covers(&self, declared: &[String]) -> bool {
        declared.iter().all(|name| self.catalog.discovery.declared.contains(name))
    }

    fn body(&self) -> Raw {
        let ServerCatalog { greeting, discovery, tools, resources, templates, prompts } =
            &self.catalog;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let about = RecordMetadata {
            server: self.server.clone(),
            learned: unix_seconds(self.learned),
            took_ms: millis(discovery.took),
            era: greeting.era,
            version: greeting.version.clone(),
            spoken: SpokenMetadata::of(discovery.spoken),
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
        members.extend(greeting.answer.as_ref().map(|answer| ("said", answer)));
        edit::set_each(&Raw::empty_object(), &members)
    }

    fn read(body: &Raw) -> Option<Self> {
        let members =
            ["about", "capabilities", "tools", "resources", "resourceTemplates", "prompts", "said"];
        let [about, capabilities, tools, resources, templates, prompts, said] =
            edit::get_each(body, members);
        let about: RecordMetadata = about?.read().ok()?;
        let greeting = Greeting {
            era: about.era,
            version: about.version,
            capabilities: capabilities?.detached(),
            instructions: about.instructions,
            about: about.description,
            // Records of older versions of dormouse have no handshake result.
            answer: said.map(|said| said.detached()),
        };
        let discovery = Discovery {
            spoken: about.spoken.support(),
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

impl StoredServer {
    /// Encodes the contents of the file.
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
        with_header(body)
    }

    /// Decodes the contents of a file.
    ///
    /// # Errors
    /// Returns an error if the file was not written by [`Self::encode`].
    pub fn decode(file: Vec<u8>) -> Result<Self, RecordError> {
        let end = file.iter().position(|byte| *byte == b'\n').ok_or(RecordError::Damaged)?;
        let head: FileHeader =
            serde_json::from_slice(&file[..end]).map_err(|_| RecordError::Damaged)?;
        if head.format != FORMAT_VERSION {
            return Err(RecordError::OtherFormat);
        }
        let body = bytes::Bytes::from(file).slice(end + 1..);
        if hex(&Sha256::digest(&body)) != head.sha256 {
            return Err(RecordError::Damaged);
        }
        Raw::parse(body).ok().and_then(|body| Self::read(&body)).ok_or(RecordError::Damaged)
    }

    fn read(body: &Raw) -> Option<Self> {
        let [pins, incomplete, records, former] =
            edit::get_each(body, ["pins", "incomplete", "records", "former"]);
        // Older files have neither `former` nor `incomplete`.
        let former = former.and_then(|former| items(&former)).unwrap_or_default();
        let incomplete = incomplete.is_some_and(|flag| flag.as_bytes() == b"true");
        let records: Option<Vec<Record>> =
            edit::elements(&records?)?.iter().map(Record::read).collect();
        let pins: Pins = pins?.read().ok()?;
        Some(Self { records: records?, pins: pins.with_incomplete(incomplete), former })
    }
}

/// Returns the contents of a file with this body.
pub(super) fn with_header(mut body: Vec<u8>) -> Vec<u8> {
    let head = FileHeader { format: FORMAT_VERSION, sha256: hex(&Sha256::digest(&body)) };
    let mut file = Raw::encode(&head).as_bytes().to_vec();
    file.push(b'\n');
    file.append(&mut body);
    file
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

    fn stored(records: Vec<Record>) -> StoredServer {
        let mut pins = Pins::default();
        for record in &records {
            pins.see(&Digests::of(&record.catalog));
        }
        StoredServer { records, pins, former: Vec::new() }
    }

    #[test]
    fn files_without_former_definitions_can_be_read() {
        let stored = stored(vec![record()]);
        let text = String::from_utf8(stored.encode()).unwrap();
        let (_, body) = text.split_once('\n').unwrap();
        let body = body.replace(",\"former\":[]", "");
        assert!(!body.contains("former"), "{body}");
        assert_eq!(StoredServer::read(&raw(&body)), Some(stored));
    }

    #[test]
    fn written_files_are_read_back_unchanged() {
        let stored = stored(vec![record(), Record { server: "t".to_owned(), ..record() }]);
        let file = stored.encode();
        assert_eq!(StoredServer::decode(file.clone()), Ok(stored));
        let text = String::from_utf8(file).unwrap();
        let newer = text.replacen("\"dormouse-catalog\":1", "\"dormouse-catalog\":2", 1);
        assert_eq!(StoredServer::decode(newer.into_bytes()), Err(RecordError::OtherFormat));
    }

    #[test]
    fn stored_file_keeps_its_format() {
        let spoken = ProtocolSupport {
            modern: Some(true),
            framing: Some(Framing::Sse),
            ..Default::default()
        };
        let mut record = record();
        record.catalog.discovery.spoken = spoken;
        record.catalog.discovery.declared = vec!["roots".to_owned()];
        insta::assert_snapshot!(String::from_utf8(stored(vec![record]).encode()).unwrap());
    }

    proptest! {
        #[test]
        fn damaged_files_are_rejected(at in 0..2000usize, byte: u8, cut in 0..2000usize) {
            let whole = stored(vec![record()]).encode();
            let at = at % whole.len();
            let mut damaged = whole.clone();
            damaged[at] = byte;
            if damaged != whole {
                prop_assert!(StoredServer::decode(damaged).is_err());
            }
            prop_assert!(StoredServer::decode(whole[..cut % whole.len()].to_vec()).is_err());
        }
    }

    #[test]
    fn catalog_of_0_1_0_is_read() {
        let file = include_bytes!(concat!(
            "../../tests/golden/0.1.0/cache/dormouse/catalogs/",
            "de66ddb515dbfe4cc53ecc031eeee45f.catalog"
        ));
        let StoredServer { records, pins, former } = StoredServer::decode(file.to_vec()).unwrap();
        let declared: Vec<_> =
            records.iter().map(|record| record.catalog.discovery.declared.join(" ")).collect();
        assert_eq!(declared, ["", "elicitation roots sampling"]);
        let Record { server, learned, catalog } = &records[0];
        assert_eq!(server, "notes");
        assert!(*learned > SystemTime::UNIX_EPOCH + Duration::from_hours(490_000));
        let ServerCatalog { greeting, discovery, tools, resources, templates, prompts } = catalog;
        assert_eq!((greeting.era, &*greeting.version), (Era::Legacy, "2025-11-25"));
        assert_eq!(greeting.instructions.as_deref(), Some("Read \"before\" you write."));
        let answer = greeting.answer.as_ref().unwrap().as_bytes();
        assert!(answer.ends_with(br#""instructions": "Read \"before\" you write."}"#));
        let spoken = discovery.spoken.certain();
        assert_eq!((spoken.legacy, spoken.modern, spoken.framing), (Some(true), None, None));
        assert!(!discovery.took.is_zero() && discovery.fresh_for.is_none());
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["read", "write"]);
        let definition = concat!(
            r#"{"name": "write", "description": "Writes much.", "#,
            r#""inputSchema": {"type": "object", "properties": {"z": {}, "a": {}}}}"#
        )
        .as_bytes();
        assert_eq!(tools[1].raw.as_bytes(), definition);
        assert_eq!(
            resources[0].raw.as_bytes(),
            br#"{"uri": "note://1", "name": "one", "new": 1.0}"#
        );
        assert_eq!((templates.len(), prompts.len()), (1, 1));
        // The second definition of the tool was approved; it has changed once more since.
        assert!(!pins.is_incomplete() && pins.has(&tools[0]) && !pins.has(&tools[1]));
        assert_eq!(Vec::from_iter(pins.changed(&Digests::of(catalog))), ["write"]);
        assert!(former.len() == 1 && pins.has(&former[0]));
    }
}
