// SPDX-License-Identifier: GPL-3.0-or-later
//! Row 4: an attacker sends a bank's future text to own addresses, so that the bank's letters are refused.

use super::client::{self, Http};
use super::{Outcome, Scale};
use bulkmark_testing::milter::{Client, Mail};
use bulkmark_testing::mta::Kind;
use bulkmark_testing::rig::Rig;
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::smtp::Origin;
use bulkmark_testing::{letters, program};
use bulkmark_types::{BUCKETS, FederationKey, PRESENT, Signature, source_bucket};
use std::process::Command;

/// Both kinds of bulk are refused.
const REFUSING: &str = "[actions]\nbulk = \"reject\"\nnear = \"reject\"\n";

/// Letters that the bank sends afterwards.
const LETTERS: u32 = 25;

/// The number of them that may be refused: the twentieth copy from the bank's network is bulk anyway, and the first five copies, a quarter
/// of the threshold, may come from anybody, since networks are counted only from there on.
const OF_ITS_OWN: u32 = LETTERS - 14;

/// The number of them that may be refused: from the 15th copy on the bank's network makes it bulk alone, since networks are not counted up
/// to a quarter of the threshold.
const BY_ITSELF: u32 = LETTERS - 14;

/// The attacker's network, and the bank's.
const STRANGER: Origin<'_> = Origin { ip: "198.51.100.7", name: None, login: None };
const BANK: Origin<'_> = Origin { ip: "203.0.113.9", name: Some("mail.bank.test"), login: None };

/// A notice of 160 words.
const NOTICE: &str = "\
We are changing how you confirm payments. From the first of March on, each transfer above thirty euros that you order on our
web site has to be confirmed with the application on your telephone, since text messages can be intercepted. You need not do
anything if you already use the application. If you do not, please install it before the end of February: you find it in the
usual shops under the name of our house. When you open it for the first time, have your card and the letter with your access
number at hand, and follow what it says. Those who have no suitable telephone get a small device from us, free of charge, at
every branch office. Standing orders and direct debits go on as before and need no confirmation. We never ask for your secret
number or for a whole password, neither by letter nor on the telephone. If somebody does, please hang up and tell us at once
under the number on the back of your card. Thank you for your trust in us.
";

/// The notice with a salutation, or only these of its words.
fn letter(n: u32, salutation: &str, words: std::ops::Range<usize>) -> Vec<u8> {
    let words: Vec<_> = NOTICE.split_whitespace().collect::<Vec<_>>()[words].to_vec();
    let lines: Vec<_> = words.chunks(12).map(|line| line.join(" ")).collect();
    format!(
        "From: Your bank <notice@bank.test>\nTo: you@box.test\nSubject: How you confirm payments\n\
         Message-ID: <{n}.{salutation}@bank.test>\n\n{salutation}{}\n",
        lines.join("\n")
    )
    .into_bytes()
}

fn all() -> std::ops::Range<usize> {
    0..NOTICE.split_whitespace().count()
}

/// The number of the bank's letters that are refused.
fn refused(rig: &Rig, salutation: impl Fn(u32) -> String) -> u32 {
    let mut bank = rig.from(BANK);
    let send = |n: &u32| {
        let reader = format!("customer{n}@box.test");
        bank.send("notice@bank.test", &[&reader], &letter(*n, &salutation(*n), all())).code >= 500
    };
    u32::try_from((0..LETTERS).filter(send).count()).unwrap()
}

/// The same text in one transaction, to one mailbox under many names or to many mailboxes.
pub(crate) fn same_words(_: Scale) -> Outcome {
    let plus: Vec<_> = (0..20).map(|n| format!("me+{n}@box.test")).collect();
    let cases: Vec<_> = (0..20).map(|n| format!("{}@BOX.test", mixed("stranger", n))).collect();
    let others: Vec<_> = (0..40).map(|n| format!("somebody{n}@box.test")).collect();
    let mut came = Vec::new();
    let mut most = 0;
    for (name, recipients) in [("plus-addresses", plus), ("spellings", cases), ("40 mailboxes", others)] {
        let Some(rig) = Rig::start(Kind::Postfix, REFUSING) else {
            return Outcome::skipped("there is no Postfix");
        };
        let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
        rig.from(STRANGER).send("x@stranger.test", &recipients, &letter(99, "", all()));
        let refused = refused(&rig, |_| String::new());
        most = most.max(refused);
        came.push(format!("{name}: {refused} of {LETTERS}"));
    }
    Outcome::new(
        "one transaction with a bank's notice, then the bank sends it; refused",
        came.join(", "),
        most <= OF_ITS_OWN,
    )
}

/// A word with some of its letters in upper case.
fn mixed(word: &str, n: usize) -> String {
    word.chars().enumerate().map(|(i, c)| if n >> i & 1 == 1 { c.to_ascii_uppercase() } else { c }).collect()
}

/// A part of the words, in many messages, before the bank sends letters with each customer's name.
pub(crate) fn some_words(_: Scale) -> Outcome {
    let mut came = Vec::new();
    let mut most = 0;
    for words in [20, 30, 40, 80] {
        let Some(rig) = Rig::start(Kind::Postfix, REFUSING) else {
            return Outcome::skipped("there is no Postfix");
        };
        let mut stranger = rig.from(STRANGER);
        for n in 0..30 {
            let reader = format!("me{n}@box.test");
            let text = letter(100 + n, "", 0..words);
            stranger.send("x@stranger.test", &[&reader], &text);
        }
        let refused = refused(&rig, |n| format!("Dear customer number {n}, "));
        most = most.max(refused);
        came.push(format!("{words} words: {refused} of {LETTERS}"));
    }
    Outcome::new(
        "30 messages with words of a bank's notice of 160, then the bank sends it with names; refused",
        came.join(", "),
        most <= OF_ITS_OWN,
    )
}

/// One partner of a federation reports a text from networks that never sent it; then somebody sends it from one network.
pub(crate) fn pretended_networks(_: Scale) -> Outcome {
    let server = Server::new("");
    let file = server.site.path("token");
    std::fs::write(&file, client::own(&server, "member")).unwrap();
    let entry = format!("{{ url = \"{}\", token-file = \"{}\" }}", server.url(), file.display());
    let mut site = milter(&[entry]);
    site.extra += REFUSING;
    let mut partner = Http::new(server.port, &client::partner(&server, "partner", &[]));
    let (_server_runs, daemon) = (server.start(), site.start());

    let text = letter(0, "", all());
    let mail = site.path("notice.eml");
    std::fs::write(&mail, &text).unwrap();
    let output = Command::new(program()).arg("signature").arg(&mail).output().unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    let line = line.lines().find(|line| line.contains("\tbody\t")).unwrap().to_owned();
    let body: Signature = line.rsplit('\t').next().unwrap().parse().unwrap();
    let key = FederationKey::public();
    let buckets: Vec<_> = (0..BUCKETS)
        .map(|bucket| u128::from_be_bytes(source_bucket(&key, body, bucket).to_bytes()))
        .collect();
    assert_eq!(partner.report(&buckets, PRESENT).status, 200);
    // A marker shows that the milter has them.
    let marker = letters::letter(1);
    letters::send(&daemon, &marker, 1);
    letters::wait_for(&site, &marker, 1);

    let send = |ip: &str, n: u32| {
        let mut client = Client::connect(&daemon);
        client.client("client.test", ip);
        let mut mail = Mail::raw(&bulkmark_testing::crlf(&String::from_utf8(letter(n, "", all())).unwrap()));
        mail.recipients = vec![format!("reader{n}@box.test")];
        client.message(&mail).reply.starts_with('5')
    };
    for n in 0..30 {
        send(STRANGER.ip, n);
    }
    let refused = (0..LETTERS).filter(|n| send(BANK.ip, 100 + n)).count();
    Outcome::new(
        "one partner pretends that a notice came from 64 networks, somebody sends it 30 times from one; refused",
        format!("{refused} of {LETTERS} of the bank's"),
        refused <= BY_ITSELF as usize,
    )
}
