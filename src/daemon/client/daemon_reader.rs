//! The direction from one daemon to the host of a thin client.

use std::{os::unix::net::UnixStream, sync::Arc, thread};

use super::{
    blocking_lines::BlockingLines,
    client_session::ClientSession,
    links::Link,
    session_memory::{DaemonNumber, Received},
};
use crate::{
    daemon::{Connection, DaemonNotice, Redial},
    wire::{Line, Raw},
};

/// The reader of the messages of one daemon.
pub(super) struct DaemonReader {
    daemon: DaemonNumber,
    lines: BlockingLines<UnixStream>,
    notices: String,
    /// True after the daemon has sent a message for the host, or has announced its end.
    pub has_carried: bool,
    session: Arc<ClientSession>,
}

/// The reason for which a reader stops.
pub(super) enum ReadEnd {
    /// The daemon has closed the connection, or was killed.
    Closed,
    /// The host does not read any more.
    HostGone,
    /// The daemon has announced its end; its last answers follow.
    Ending(Redial),
}

impl DaemonReader {
    /// Opens the session of the host at a daemon.
    pub(super) fn open(
        daemon: DaemonNumber,
        connection: Connection,
        session: Arc<ClientSession>,
    ) -> Self {
        let Connection { reading, writing, notices, .. } = connection;
        let link = Link::new(daemon, writing, notices.clone());
        session.links.open(link, |living| session.memory.lock().open(daemon, living));
        let lines = BlockingLines::new(reading, usize::MAX);
        Self { daemon, lines, notices, has_carried: false, session }
    }

    /// Carries the messages of the daemon.
    pub(super) fn read(&mut self) -> ReadEnd {
        // A connection that cannot be read has ended.
        while let Ok(Some(Line::Text(line))) = self.lines.next() {
            let received =
                self.session.memory.lock().note_received(&line, self.daemon, &self.notices);
            match received {
                Received::ForHost => {
                    self.has_carried = true;
                    if self.session.output.write_line(&line).is_err() {
                        return ReadEnd::HostGone;
                    }
                }
                Received::NotForHost => {}
                Received::Notice(notice) => {
                    if let Some(redial) = self.obey(&notice) {
                        self.has_carried = true;
                        return ReadEnd::Ending(redial);
                    }
                }
            }
        }
        ReadEnd::Closed
    }

    /// Does what a notice asks for. Returns the time to connect to another daemon if this one is
    /// ending.
    fn obey(&self, notice: &Raw) -> Option<Redial> {
        match notice.read().ok()? {
            DaemonNotice::Ending(redial) => return Some(redial),
            DaemonNotice::Log(lines) => self.session.log.write(lines),
            DaemonNotice::Loads(names) => self.session.note_loads(self.daemon, names),
            DaemonNotice::OpenBrowser(address) => {
                let open = self.session.open_browser;
                // Opening waits for the program that starts the browser.
                thread::spawn(move || open(&address));
            }
        }
        None
    }

    /// Carries the last answers of a daemon that is ending.
    pub(super) fn finish(mut self) {
        while let ReadEnd::Ending(_) = self.read() {}
        self.session.lose(self.daemon);
        let ClientSession { links, memory, .. } = &*self.session;
        links.send_again(|present, living| memory.lock().take_over(present, living));
    }
}
