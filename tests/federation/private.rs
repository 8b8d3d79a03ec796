// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail that a milter does not report to its servers: mail on a private list, and exact signatures.

use bulkmark_testing::letters::{count, letter, wait_for};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site};

/// One server, a milter under test, and another milter that shows the server's counts.
struct Federation {
    _server: (Server, Daemon),
    other: (Site, Daemon),
    site: Site,
    open: String,
}

impl Federation {
    fn new() -> Self {
        let server = Server::new("");
        let entries = ["one", "two"].map(|name| server.entry(name, "report"));
        let daemon = server.start();
        let [site, other] = entries.map(|entry| milter(&[entry]));
        let watching = other.start();
        let open = site.extra.clone();
        Self { _server: (server, daemon), other: (other, watching), site, open }
    }

    /// Sets the private mail from here on.
    fn configure(&mut self, keys: &str) {
        let list = self.site.path("private");
        std::fs::write(&list, "sender secret.example\nrecipient works.example\n").unwrap();
        self.site.extra = format!("{}{}", self.open, keys.replace("LIST", &list.display().to_string()));
        self.site.config();
    }

    /// The count of a letter at this milter and at the other one.
    fn counts(&self, n: usize) -> (u64, u64) {
        (count(&self.site, &letter(n)), count(&self.other.0, &letter(n)))
    }

    /// Waits until everything sent has arrived everywhere: this letter, which is not private, comes last.
    fn settle(&self, daemon: &Daemon, n: usize) {
        send(daemon, n, "a@public.example", "b@public.example");
        wait_for(&self.other.0, &letter(n), 1);
        wait_for(&self.site, &letter(n), 1);
    }
}

fn send(daemon: &Daemon, n: usize, sender: &str, recipient: &str) {
    let mail =
        Mail { sender: sender.to_owned(), recipients: vec![recipient.to_owned()], ..Mail::raw(&letter(n)) };
    assert!(session(daemon).message(&mail).count().is_some(), "letter {n} was not counted");
}

const PRIVATE: &str = "private = [\"LIST\"]\n";

/// A list by sender and by recipient, over restarts, and when mail ceases to be private and becomes so again.
#[test]
fn what_a_list_names_is_counted_here_and_never_leaves() {
    let mut federation = Federation::new();
    federation.configure(PRIVATE);
    let mut daemon = federation.site.start();
    for _ in 0..3 {
        send(&daemon, 1, "code@secret.example", "b@public.example");
        send(&daemon, 2, "a@public.example", "b@works.example");
    }
    federation.settle(&daemon, 100);
    assert_eq!([federation.counts(1), federation.counts(2)], [(3, 0), (3, 0)]);
    for kill in [true, false] {
        if kill {
            daemon.kill()
        } else {
            assert!(daemon.terminate().success())
        }
        daemon = federation.site.start();
        assert_eq!([federation.counts(1), federation.counts(2)], [(3, 0), (3, 0)], "killed: {kill}");
    }
    federation.configure("");
    assert!(daemon.reload().contains("read again"));
    send(&daemon, 1, "code@secret.example", "b@public.example");
    send(&daemon, 1, "code@secret.example", "b@public.example");
    federation.settle(&daemon, 101);
    assert_eq!(federation.counts(1), (5, 2), "what was counted here stays, and what is shared counts once");
    federation.configure(PRIVATE);
    assert!(daemon.reload().contains("read again"));
    send(&daemon, 1, "code@secret.example", "b@public.example");
    federation.settle(&daemon, 102);
    assert_eq!(federation.counts(1), (6, 2));
    daemon.kill();
    let _daemon = federation.site.start();
    assert_eq!(federation.counts(1), (6, 2));
}

#[test]
fn exact_signatures_stay_here_where_only_near_ones_are_shared() {
    let near = |site: &Site| -> u64 {
        let (_, answer) = site.check(&letter(1));
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        answer["near"]["count"].as_u64().unwrap_or_else(|| panic!("{answer}"))
    };
    let mut federation = Federation::new();
    federation.configure("withhold = [\"exact\"]\n");
    let daemon = federation.site.start();
    for _ in 0..3 {
        send(&daemon, 1, "a@public.example", "b@public.example");
    }
    bulkmark_testing::wait_until("near counts", || match near(&federation.other.0) {
        3 => Ok(()),
        found => Err(found.to_string()),
    });
    assert_eq!((federation.counts(1), near(&federation.site)), ((3, 0), 3));
    federation.configure("");
    assert!(daemon.reload().contains("read again"));
    send(&daemon, 1, "a@public.example", "b@public.example");
    federation.settle(&daemon, 100);
    assert_eq!((federation.counts(1), near(&federation.other.0)), ((4, 1), 4));
}

/// Outbound mail is reported to no server, in no form that others could look up.
#[test]
fn outbound_mail_never_leaves() {
    const OUTBOUND: &str = "[outbound.match]\nlogin = \"*\"\n";
    let sent_by_users = |site: &Site| -> u64 {
        std::fs::write(site.path("check.eml"), letter(1)).unwrap();
        let mut check = std::process::Command::new(bulkmark_testing::program());
        check.args(["check", "--json", "--login", "anna", "--config"]).arg(site.path("milter.toml"));
        let output = check.arg(site.path("check.eml")).output().unwrap();
        let answer = bulkmark_testing::first_message(&output.stdout);
        answer["body"]["count"].as_u64().unwrap_or_else(|| panic!("{answer}"))
    };
    let mut federation = Federation::new();
    federation.configure(OUTBOUND);
    let other = &mut federation.other;
    other.0.extra.push_str(OUTBOUND);
    other.0.config();
    assert!(other.1.reload().contains("read again"));
    let daemon = federation.site.start();
    for _ in 0..3 {
        let mut user = session(&daemon);
        user.login = Some("anna".to_owned());
        assert_eq!(user.message(&Mail::raw(&letter(1))).reply, "c");
    }
    federation.settle(&daemon, 100);
    assert_eq!((sent_by_users(&federation.site), sent_by_users(&federation.other.0)), (3, 0));
    assert_eq!(federation.counts(1), (0, 0), "nor is it counted with what comes in");
}
