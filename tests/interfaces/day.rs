// SPDX-License-Identifier: GPL-3.0-or-later
//! A day in the life of a daemon with all its interfaces: one campaign comes by a real Postfix, by SpamAssassin and by rspamd at once, while
//! users report it by Pyzor and Razor. `make day` shows it as a table.

use crate::asking::site;
use crate::pyzor::{address, pyzor};
use crate::razor::Agent;
use crate::rspamd::{Rspamd, Version};
use crate::rspamd_module::{at_socket, options};
use crate::spamassassin::{dcc, rules, run};
use bulkmark_testing::letters::count;
use bulkmark_testing::mta::Kind;
use bulkmark_testing::rig::Rig;
use bulkmark_testing::smtp::Origin;
use bulkmark_testing::wait_until;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::thread;

/// Copies that come by each way alone, at the same time as the copies by the others.
const EACH: usize = 19;

/// From this count on a text is bulk.
const THRESHOLD: u32 = 20;

/// The answer to a client about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    count: u32,
    is_bulk: bool,
}

/// A copy of the campaign in transit; each has its own number, and the same text.
fn copy(n: usize) -> Vec<u8> {
    format!(
        "From: Discount Harbour <offers@shop.test>\nTo: reader{n}@box.test\nSubject: Only today\n\
         Date: Mon, 23 Nov 2026 12:00:00 +0000\nMessage-ID: <{n}@shop.test>\n\n\
         Dear customer, only today all anchors, ropes and rubber boats are sold at half the price.\n\
         Order now, and a captain's hat is yours for nothing. This offer will never come back.\n\
         See it all at http://harbour.shop.test/offers before the tide turns.\n"
    )
    .into_bytes()
}

/// The same after some mail server accepted it.
fn taken(n: usize) -> Vec<u8> {
    let received = format!(
        "Received: from h.example (h.example [203.0.113.9])\n\tby mx.test (Postfix) with ESMTP id 4SA{n}\n\t\
         for <reader{n}@box.test>; Mon, 23 Nov 2026 12:00:00 +0000 (UTC)\n"
    );
    [received.into_bytes(), copy(n)].concat()
}

/// The clients.
struct Day {
    rig: Rig,
    rspamd: Rspamd,
    pyzor: PathBuf,
    homes: [PathBuf; 2],
    anna: Agent,
}

impl Day {
    /// Starts them; none if one of the programs is not installed.
    fn begin() -> Option<Self> {
        let keys = "[user-reports]\ntrust = { new-reporter = 1.0 }\n[thresholds]\nspam = 1\n";
        let mut site = site(keys, "", "");
        site.listen = Rig::tcp_site("").listen;
        site.extra += "\n[interfaces.pyzor]\nlisten = \"127.0.0.1:0\"\n";
        let (site, razor) = crate::razor::open(site, "");
        let rig = Rig::start_with(Kind::Postfix, site, &[])?;
        for interface in ["http", "dccifd", "razor"] {
            rig.daemon.log.wait_for(0, &format!("the interface {interface} is at"));
        }
        let at = address(&rig.daemon);
        let homes = ["anna-pyzor", "bert-pyzor"].map(|name| rig.site.path(name));
        for home in &homes {
            fs::create_dir(home).unwrap();
            fs::write(home.join("servers"), format!("{at}\n")).unwrap();
        }
        let anna = Agent::new(&rig.site, "anna", &razor)?;
        let (rspamd, pyzor) = (at_socket(&Version::Installed, &rig.site, "")?, pyzor("1.1.2")?);
        Some(Self { rig, rspamd, pyzor, homes, anna })
    }

    /// By Postfix, which uses the milter; returns the delivered message.
    fn by_postfix(&self, n: usize) -> (Told, Vec<u8>) {
        let recipient = format!("reader{n}@box.test");
        let mut client = self.rig.from(Origin { ip: "198.51.100.66", ..Origin::default() });
        client.send("offers@shop.test", &[&recipient], &copy(n)).expect(250);
        let mail = self.rig.mta.wait_for_mail(&recipient, 1).remove(0);
        let header = mail.header("X-Bulkmark").remove(0);
        let count = header.split("; ").find_map(|field| field.strip_prefix("body=")).unwrap();
        let told = Told { count: count.parse().unwrap(), is_bulk: header.starts_with("bulk;") };
        (told, mail.0.into_bytes())
    }

    /// By SpamAssassin, which examines a whole mailbox, with one request to dccifd's interface for each message.
    fn by_spamassassin(&self, messages: &[Vec<u8>]) -> Vec<Told> {
        let lines = messages.iter().flat_map(|message| {
            [b"From offers@shop.test Mon Nov 23 12:00:00 2026\n", &message[..], b"\n"].concat()
        });
        let shown = "add_header all Dcc _DCCR_\nadd_header all Status \"_YESNO_ tests=_TESTS_\"\n";
        let rules = format!("{}{shown}", rules(&self.rig.site));
        let text =
            run(&self.rig.site, &dcc(), &rules, &["-t", "--mbox"], &lines.collect::<Vec<u8>>()).unwrap();
        let told: Vec<_> = text.split("\nFrom offers@").map(told_by_spamassassin).collect();
        assert_eq!(told.len(), messages.len(), "{text}");
        told
    }

    /// By rspamd, whose module uses the HTTP interface.
    fn by_rspamd(&self, queue_id: &str, message: &[u8]) -> Told {
        let fields = format!("\r\nRcpt: reader@box.test\r\nQueue-ID: {queue_id}");
        let answer = self.rspamd.check(&fields, message);
        let symbols = &answer["symbols"];
        let told = options(&symbols["BULKMARK"]);
        let count = told.iter().find_map(|option| option.strip_prefix("body="));
        let count = count.unwrap_or_else(|| panic!("{answer}\n{}", self.rspamd.log()));
        Told { count: count.parse().unwrap(), is_bulk: !symbols["BULKMARK_BULK"].is_null() }
    }

    /// The output of a client of Pyzor.
    fn pyzor(&self, home: usize, command: &str) -> String {
        let said = crate::pyzor::run(&self.pyzor, &self.homes[home], command, &copy(0));
        let (_, counts) = said.split_once("(200, 'OK')").unwrap_or_else(|| panic!("{said}"));
        counts.trim().replace('\t', " and ")
    }

    /// The users' actions meanwhile: they check the campaign, and report it as spam.
    fn reports(&self) -> [String; 4] {
        let spam = |is_spam| if is_spam { "spam" } else { "not spam" }.to_owned();
        let before = [self.pyzor(0, "check"), spam(self.anna.is_spam(&copy(0)))];
        self.pyzor(0, "report");
        self.pyzor(1, "report");
        self.anna.register("anna");
        self.anna.report(&copy(0));
        let [pyzor, razor] = before;
        [pyzor, self.pyzor(1, "check"), razor, spam(self.anna.is_spam(&copy(0)))]
    }
}

fn told_by_spamassassin(text: &str) -> Told {
    let text = text.replace("\n\t", " ");
    let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let counts = of("X-Spam-Dcc: ").unwrap_or_else(|| panic!("{text}"));
    let count = counts.split_once(" Body=").unwrap_or_else(|| panic!("{text}")).1;
    let count = count.split(' ').next().unwrap().parse().unwrap();
    Told { count, is_bulk: of("X-Spam-Status: ").unwrap().contains("DCC_CHECK") }
}

/// A row of the table; the test harness hides it unless asked.
fn row(who: &str, asked: &str, copies: &str, told: &str, verdict: &str) {
    println!("{who:<14} {asked:<9} {copies:>10}   {told:<20} {verdict}");
}

fn show(who: &str, asked: &str, told: &[Told]) {
    let counts = told.iter().map(|one| one.count);
    let bulk = told.iter().filter(|one| one.is_bulk).map(|one| one.count).min();
    let range = format!("{} to {}", counts.clone().min().unwrap(), counts.max().unwrap());
    let verdict = bulk.map_or_else(|| "clean".to_owned(), |first| format!("bulk from {first} on"));
    row(who, asked, &told.len().to_string(), &range, &verdict);
}

/// Copies by all ways share one count: each gets its own number, except that rspamd's module gets the count before its copy. A copy that
/// comes by three ways counts once. Pyzor and Razor have other digests: they know reports only, and neither see copies nor add any.
#[test]
fn one_campaign_has_one_count() {
    let Some(day) = Day::begin() else { return };
    let [by_postfix, by_spamassassin, by_rspamd] = [0, 1, 2].map(|way| way * EACH + 1..=(way + 1) * EACH);
    let mailbox: Vec<_> = by_spamassassin.map(taken).collect();
    let (postfix, spamassassin, rspamd, reports) = thread::scope(|scope| {
        let (day, mailbox) = (&day, &mailbox);
        let postfix = scope.spawn(move || by_postfix.map(|n| day.by_postfix(n).0).collect::<Vec<_>>());
        let spamassassin = scope.spawn(move || day.by_spamassassin(mailbox));
        let rspamd = scope.spawn(move || {
            by_rspamd.map(|n| day.by_rspamd(&format!("4RS{n}"), &copy(n))).collect::<Vec<_>>()
        });
        let reports = day.reports();
        (postfix.join().unwrap(), spamassassin.join().unwrap(), rspamd.join().unwrap(), reports)
    });
    row("who", "interface", "copies", "counts told", "verdict");
    show("Postfix", "milter", &postfix);
    show("SpamAssassin", "dccifd", &spamassassin);
    show("rspamd", "http", &rspamd);
    let all = [postfix, spamassassin].concat();
    let numbers: BTreeSet<_> = all.iter().map(|told| told.count).collect();
    let log = || day.rig.daemon.log.lines().join("\n");
    assert_eq!(numbers.len(), 2 * EACH, "{}", log());
    for Told { count, is_bulk } in all.into_iter().chain(rspamd) {
        assert!(count <= 3 * EACH as u32 && is_bulk == (count >= THRESHOLD), "{count}: {}", log());
    }
    wait_until("all copies", || match count(&day.rig.site, &copy(0)) {
        57 => Ok(()),
        other => Err(format!("{other}: {}", log())),
    });

    // The last copies come by all three ways, and each way is first once.
    let last = 3 * EACH + 1;
    let all_three: BTreeMap<usize, [Told; 3]> =
        (last..last + 3).map(|n| (n, by_all(&day, n, n - last))).collect();
    for (&n, told) in &all_three {
        let [postfix, spamassassin, rspamd] = told.map(|told| told.count);
        row(
            "all three",
            "one each",
            &format!("copy {n}"),
            &format!("{postfix}, {spamassassin}, {rspamd}"),
            "bulk",
        );
    }
    for (n, told) in all_three {
        // If rspamd is first, it shows the count before its copy.
        let by_rspamd = if n - last == 2 { n - 1 } else { n } as u32;
        let expected = [n as u32, n as u32, by_rspamd].map(|count| Told { count, is_bulk: true });
        assert_eq!(told, expected, "copy {n}");
    }
    assert_eq!(count(&day.rig.site, &copy(0)), 60);

    let [pyzor, pyzor_after, razor, razor_after] = reports;
    row(
        "pyzor",
        "pyzor",
        "2 reports",
        &format!("{pyzor} -> {pyzor_after}"),
        "counts reporters, one an address",
    );
    row("razor-check", "razor", "1 report", &format!("{razor} -> {razor_after}"), "by user reports");
    assert_eq!([&*pyzor, &pyzor_after, &day.pyzor(0, "check")], ["0 and 0", "1 and 0", "1 and 0"]);
    assert_eq!([&*razor, &razor_after], ["not spam", "spam"]);
}

/// A copy that comes by all ways, beginning with this one; returns the answers.
fn by_all(day: &Day, n: usize, first: usize) -> [Told; 3] {
    let raw = taken(n);
    let ask = |way: usize, raw: &[u8]| match way {
        1 => day.by_spamassassin(&[raw.to_vec()])[0],
        _ => day.by_rspamd(&format!("4SA{n}"), raw),
    };
    if first == 0 {
        let (told, delivered) = day.by_postfix(n);
        return [told, ask(1, &delivered), ask(2, &delivered)];
    }
    let begin = ask(first, &raw);
    let (told, _) = day.by_postfix(n);
    let end = ask(3 - first, &raw);
    if first == 1 { [told, begin, end] } else { [told, end, begin] }
}
