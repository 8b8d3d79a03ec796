// SPDX-License-Identifier: GPL-3.0-or-later
//! A milter with an empty ledger, and the counts in its headers.

use crate::counts::Counts;
use crate::stream::Message;
use bulkmark_testing::milter::{Client, Mail};
use bulkmark_testing::{Daemon, Site};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Messages on one connection.
const SESSION: usize = 50;

/// The counts need not survive a crash. Messages are quarantined instead of refused, so that their header still has the counts.
const CONFIGURATION: &str = "exempt = [\"authenticated\"]\n[actions]\nbulk = \"quarantine\"\nnear = \"quarantine\"\n\
                             [ledger]\ndurability = \"relaxed\"\n";

/// The file of a federation key; none means the public key.
pub(crate) type Key = Option<PathBuf>;

/// Returns the counts of these messages, one after the other, by a milter with an empty ledger.
pub(crate) fn count<'a>(
    binary: &Path,
    key: &Key,
    messages: impl IntoIterator<Item = &'a Message>,
) -> Vec<Counts> {
    let key = key.as_ref().map(|path| format!("federation-key-file = \"{}\"\n", path.display()));
    let site = Site::new(&format!("{CONFIGURATION}{}", key.unwrap_or_default()));
    let daemon =
        site.spawn_by(Command::new(binary).args(["milter", "--config"]).arg(site.config())).listening();
    let mut milter = Milter { daemon, client: None, sent: 0 };
    messages.into_iter().map(|message| milter.send(message)).collect()
}

struct Milter {
    daemon: Daemon,
    client: Option<(IpAddr, Client)>,
    sent: usize,
}

impl Milter {
    /// Sends a message with a new sender and new recipients.
    fn send(&mut self, message: &Message) -> Counts {
        if self.sent.is_multiple_of(SESSION) {
            self.client = None;
        }
        self.sent += 1;
        let raw = message.raw();
        let ip = message.from.address(&raw);
        self.client.take_if(|(of, _)| *of != ip);
        let (_, client) = self.client.get_or_insert_with(|| {
            let mut client = Client::connect(&self.daemon);
            client.client("client.test", &ip.to_string());
            (ip, client)
        });
        let mut mail = Mail::raw(&raw);
        mail.sender = format!("sender{}@example.net", self.sent);
        let reader = |n| format!("reader{}x{n}@example.org", self.sent);
        mail.recipients = (0..message.recipients).map(reader).collect();
        let answer = client.message(&mail);
        let header = answer.added.iter().find(|(name, _)| name == "X-Bulkmark");
        header.map(|(_, value)| Counts::of_header(value, answer.quarantine.is_some())).unwrap_or_default()
    }
}
