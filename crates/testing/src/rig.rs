// SPDX-License-Identifier: GPL-3.0-or-later
//! A real mail server with the daemon as its milter, and messages that pass through both.

use super::mta::{Kind, Mta, free_port};
use super::smtp::{Client, Origin, Reply};
use super::{Daemon, Site};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU16, Ordering};

/// A mail server with the daemon as its milter.
pub struct Rig {
    /// The kind of mail server.
    pub kind: Kind,
    /// Declared before the daemon, and so stopped before it.
    pub mta: Mta,
    /// The milter.
    pub daemon: Daemon,
    /// Its site.
    pub site: Site,
}

impl Rig {
    /// Makes a rig on TCP, with `extra` in the daemon's configuration. None where the mail server is missing.
    pub fn start(kind: Kind, extra: &str) -> Option<Self> {
        Self::start_with(kind, Self::tcp_site(extra), &[])
    }

    /// A site on a port that stays the same over restarts.
    pub fn tcp_site(extra: &str) -> Site {
        let mut site = Site::new(extra);
        site.listen = format!("inet:127.0.0.1:{}", free_port());
        site
    }

    /// Makes a rig of the given site, with settings for the mail server.
    pub fn start_with(kind: Kind, mut site: Site, settings: &[&str]) -> Option<Self> {
        site.extra = for_clients_of(kind, &site.extra);
        // The mail server's user needs access to the socket.
        fs::set_permissions(site.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mta = Mta::start(kind, &site.listen, settings)?;
        let daemon = site.start();
        assert_eq!(daemon.address, site.listen);
        Some(Self { kind, mta, daemon, site })
    }

    /// Kills the daemon, as a power loss would, and restarts it.
    pub fn kill_and_restart(&mut self) {
        self.daemon.child.kill().unwrap();
        self.daemon.child.wait().unwrap();
        self.daemon = self.site.start();
    }

    /// Makes the daemon read a changed configuration.
    #[track_caller]
    pub fn reload(&mut self, extra: &str) {
        self.site.extra = for_clients_of(self.kind, extra);
        self.site.config();
        let told = self.daemon.reload();
        assert!(told.contains("read again"), "{told}");
    }

    /// Writes a file beside the configuration, and returns its path for the configuration.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.site.path(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Connects under the real address.
    pub fn local(&self) -> Client {
        Client::connect(self.mta.port)
    }

    /// Connects as an external client.
    pub fn outside(&self) -> Client {
        self.from(Origin::default())
    }

    /// Connects as a client at this address.
    pub fn from(&self, origin: Origin<'_>) -> Client {
        self.mta.client(origin)
    }

    /// Sends a message from outside, which must be accepted, and returns the header with which it is delivered to `recipient`,
    /// who gets no other.
    #[track_caller]
    pub fn verdict_for(&self, recipient: &str, message: &[u8]) -> String {
        self.outside().send("news@sender.test", &[recipient], message).expect(250);
        self.mta.wait_for_mail(recipient, 1)[0].verdict()
    }

    /// Sends twenty copies over `client`, each to another recipient: the twentieth is bulk.
    #[track_caller]
    pub fn expect_bulk_at_the_twentieth(&self, client: &mut Client) {
        for n in 1..=20 {
            let recipient = format!("reader{n}@box.test");
            client.send("news@sender.test", &[&recipient], &message("", NEWS)).expect(250);
            let verdict = if n < 20 { "clean" } else { "bulk" };
            let mail = &self.mta.wait_for_mail(&recipient, 1)[0];
            assert_eq!(mail.verdict(), format!("{verdict}; body={n}; threshold=20; host=mx.test"));
        }
    }

    /// Sends a message from outside and returns the reply.
    pub fn send(&self, recipient: &str, message: &[u8]) -> Reply {
        self.outside().send("news@sender.test", &[recipient], message)
    }
}

/// All of Sendmail's clients are on loopback, so nothing would be judged.
fn for_clients_of(kind: Kind, extra: &str) -> String {
    let exempt = if kind == Kind::Sendmail && !extra.contains("exempt = ") {
        "exempt = [\"authenticated\"]\n"
    } else {
        ""
    };
    format!("{exempt}{extra}")
}

/// A body with enough text to be counted.
pub const NEWS: &str = "The harbour museum opens its new hall on Saturday with forty model ships,\n\
                        a tide clock and a reading corner. Tickets are at the old pilot house.\n";

/// A message with a unique Message-ID; `fields` are whole lines.
pub fn message(fields: &str, body: &str) -> Vec<u8> {
    static NUMBER: AtomicU16 = AtomicU16::new(0);
    let id = format!("{}.{}@sender.test", NUMBER.fetch_add(1, Ordering::Relaxed), std::process::id());
    message_with_id(&id, fields, body)
}

/// A message with this Message-ID.
pub fn message_with_id(id: &str, fields: &str, body: &str) -> Vec<u8> {
    format!(
        "From: Harbour Museum <news@sender.test>\nTo: Friends <friends@sender.test>\nSubject: News {id}\n\
         Date: Sat, 21 Nov 2026 10:00:00 +0000\nMessage-ID: <{id}>\n{fields}\n{body}"
    )
    .into_bytes()
}
