// SPDX-License-Identifier: GPL-3.0-or-later
//! A federation changes its key as docs/federation.md describes, one member after the other: no count is lost, and no member is refused.

use bulkmark_testing::letters::{count, letter, offer, send, wait_for, wait_for_empty_spool};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site, program};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Lines of `[ledger]` that name these keys.
fn keys(directory: &Path, key: &str, old: Option<&str>) -> String {
    let file = |name: &str| {
        let path = directory.join(name);
        fs::write(&path, name.repeat(16)).unwrap();
        path.display().to_string()
    };
    let files: Vec<_> = [Some(key), old].into_iter().flatten().map(file).collect();
    format!("federation-key-file = {files:?}\n")
}

/// A mail server whose keys change.
struct Member {
    site: Site,
    plain: String,
    daemon: Option<Daemon>,
}

impl Member {
    /// `copy` is a line of `[sync]`.
    fn new(server: &Server, name: &str, copy: &str) -> Self {
        let mut site = milter(&[server.entry(name, "report")]);
        site.extra += copy;
        let plain = site.extra.clone();
        let mut member = Self { site, plain, daemon: None };
        member.restart("old", None);
        member
    }

    /// Restarts it with these keys. `config check` must not announce a new ledger.
    fn restart(&mut self, key: &str, old: Option<&str>) {
        let keys = keys(self.site.directory.path(), key, old);
        self.site.extra = format!("{}\n[ledger]\n{keys}", self.plain);
        if let Some(daemon) = self.daemon.take() {
            let mut check = Command::new(program());
            let output = check.args(["config", "check"]).arg(self.site.config()).output().unwrap();
            let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            assert!(!text.contains("new ledger"), "{text}");
            wait_for_empty_spool(&self.site);
            assert!(daemon.terminate().success());
        }
        self.daemon = Some(self.site.start());
    }

    fn running(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }

    fn verdict(&self, message: &[u8]) -> String {
        session(self.running()).message(&Mail::raw(message)).verdict().to_owned()
    }
}

/// Whether the site has a ledger that was put aside.
fn has_kept(site: &Site) -> bool {
    let mut all = fs::read_dir(site.path("state")).unwrap();
    all.any(|entry| entry.unwrap().file_name().to_str().unwrap().starts_with("ledger-"))
}

/// A milter with a partial copy knows bulk under the old key, and asks its server for the other part of the count.
#[test]
fn a_partial_copy_knows_bulk_of_both_keys() {
    let mut server = Server::new("");
    server.ledger = keys(server.site.directory.path(), "old", None);
    let _running = server.start();
    let mut one = Member::new(&server, "one", "");
    let mut partial = Member::new(&server, "partial", "copy = \"partial\"\n");
    send(one.running(), &letter(1), 15);
    wait_for(&partial.site, &letter(1), 15);
    one.restart("new", Some("old"));
    send(one.running(), &letter(1), 4);
    wait_for_empty_spool(&one.site);
    partial.restart("new", Some("old"));
    // A message waits half a second for the server. Each one that a busy machine answers too late counts as well.
    let (late, verdict) = (0..50)
        .map(|late| (late, partial.verdict(&letter(1))))
        .find(|(_, verdict)| verdict.starts_with("bulk"))
        .expect("the server is asked");
    assert!(verdict.starts_with(&format!("bulk; body={};", 20 + late)), "{verdict}");
    let verdict = partial.verdict(&letter(2));
    assert!(verdict.starts_with("clean; body=1+;"), "{verdict}");
}

#[test]
fn a_federation_changes_its_key_without_losing_a_count() {
    let mut server = Server::new("");
    let set = |server: &mut Server, key, old| {
        server.ledger = keys(server.site.directory.path(), key, old);
    };
    set(&mut server, "old", None);
    let running = server.start();
    let [mut one, mut two] = ["one", "two"].map(|name| Member::new(&server, name, ""));
    send(one.running(), &letter(1), 9);
    let offers: Vec<_> =
        ["Anna", "Berta", "Carla", "Dora", "Emma", "Frieda", "Greta", "Hanna", "Ida", "Jana"]
            .into_iter()
            .flat_map(|name| [offer(name), offer(&format!("{name}{name}"))])
            .collect();
    let (before, after) = offers.split_at(15);
    before.iter().for_each(|offer| send(one.running(), offer, 1));
    wait_for(&two.site, &letter(1), 9);
    wait_for_empty_spool(&one.site);

    // The server gets both keys first, then one mail server after the other.
    assert!(running.terminate().success());
    set(&mut server, "new", Some("old"));
    let running = server.start();
    one.restart("new", Some("old"));
    send(one.running(), &letter(1), 3);
    assert_eq!(count(&one.site, &letter(1)), 12, "counts under both keys");
    send(two.running(), &letter(1), 2);
    wait_for(&one.site, &letter(1), 14);
    assert_eq!(count(&two.site, &letter(1)), 11, "the other one does not have the new key yet");
    two.restart("new", Some("old"));
    wait_for(&two.site, &letter(1), 14);
    send(two.running(), &letter(1), 5);
    wait_for(&one.site, &letter(1), 19);
    let verdict = one.verdict(&letter(1));
    assert!(verdict.starts_with("bulk; body=20;"), "{verdict}");
    let verdicts: Vec<_> = after.iter().map(|offer| two.verdict(offer)).collect();
    let (last, others) = verdicts.split_last().unwrap();
    assert!(others.iter().all(|verdict| verdict.starts_with("clean; ")), "{verdicts:?}");
    assert!(last.starts_with("bulk; body=1;"), "{last}");

    // The retention has passed: the old key is removed, at the server last.
    wait_for_empty_spool(&two.site);
    one.restart("new", None);
    wait_for(&one.site, &letter(1), 9);
    send(one.running(), &letter(2), 4);
    wait_for(&two.site, &letter(2), 4);
    two.restart("new", None);
    wait_for(&two.site, &letter(1), 9);
    assert!(running.terminate().success());
    set(&mut server, "new", None);
    let running = server.start();
    send(two.running(), &letter(2), 4);
    wait_for(&one.site, &letter(2), 8);
    let lines = running.log.lines();
    assert!(!lines.iter().any(|line| line.contains("refused") || line.contains("another federation key")));
    assert!(![&one.site, &two.site, &server.site].into_iter().any(has_kept));
}
