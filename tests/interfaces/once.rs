// SPDX-License-Identifier: GPL-3.0-or-later
//! A message that comes through several interfaces counts once.

use crate::asking::{counts, judge, metrics, site, start};
use bulkmark_testing::letters::{count, letter};
use bulkmark_testing::milter::{Answer, Mail, session};
use bulkmark_testing::page::STATUS;
use bulkmark_testing::{Daemon, page, status};

fn with_id(n: usize, id: &str) -> Vec<u8> {
    [format!("Message-ID: <{id}@example.org>\r\n").as_bytes(), &letter(n)].concat()
}

#[test]
fn by_its_message_id_or_queue_id() {
    let site = site("exempt = [\"authenticated\"]\n", "", "");
    let daemon = start(&site);
    let by_milter = |queue_id: &str, raw: &[u8]| {
        let mail = Mail { id: queue_id.to_owned(), ..Mail::raw(raw) };
        session(&daemon).message(&mail).count()
    };
    let first = with_id(1, "first");
    assert_eq!(by_milter("4A", &first), Some(1));
    assert_eq!(counts(&metrics(&site, "", &first)), "Body=1 Fuz1=1 Fuz2=1");
    assert_eq!(judge(&site, "?queue-id=4A", &letter(1))["counted"], false, "by the queue id alone");
    // The other way round, and a second copy.
    let second = with_id(1, "second");
    assert_eq!(counts(&metrics(&site, "", &second)), "Body=2 Fuz1=2 Fuz2=2");
    assert_eq!(by_milter("4B", &second), Some(2));
    assert_eq!(by_milter("4C", &second), Some(3), "another copy of it");
    assert_eq!(count(&site, &first), 3);
    // A queue id alone identifies nothing: another message with the same id counts.
    assert_eq!(judge(&site, "?queue-id=4A", &letter(200))["counted"], true);
    for n in [400, 600] {
        assert_eq!(by_milter(&format!("5{n}"), &with_id(n, &n.to_string())), Some(1));
        assert_eq!(judge(&site, "?queue-id=NOQUEUE", &with_id(n, &n.to_string()))["counted"], false);
    }
    // A message without an id counts as often as it comes.
    assert_eq!(judge(&site, "", &letter(1))["body"]["count"], 4);
    assert_eq!(judge(&site, "", &letter(1))["body"]["count"], 5);
}

/// Spam with one Message-ID in all copies counts in full.
#[test]
fn one_message_id_does_not_hide_copies() {
    let site = site("", "", "");
    let _daemon = start(&site);
    for n in 1..=30 {
        let line = metrics(&site, "", &with_id(2, "same"));
        let bulk = if n < 20 { "" } else { "bulk " };
        assert_eq!(counts(&line), format!("{bulk}Body={n} Fuz1={n} Fuz2={n}"));
    }
}

/// By the milter, after a request at another interface: with this queue id, from a client that may have logged in, to one recipient.
fn by_milter(daemon: &Daemon, id: &str, login: Option<&str>, to: &str, raw: &[u8]) -> Answer {
    let mut client = session(daemon);
    client.login = login.map(str::to_owned);
    let sender = if login.is_some() { "anna@box.test" } else { "news@sender.test" };
    let mail = Mail {
        sender: sender.to_owned(),
        recipients: vec![to.to_owned()],
        id: id.to_owned(),
        ..Mail::raw(raw)
    };
    client.message(&mail)
}

/// The mail server discards a trap's mail whatever interface was asked before, and it is one message.
#[test]
fn a_trap_gets_nothing_of_what_came_through_another_interface() {
    let keys = format!(
        "exempt = [\"authenticated\"]\n{STATUS}[traps]\nrecipients = [\"@trap.test\"]\ndiscard = true\n"
    );
    let site = site(&keys, "", "");
    let daemon = start(&site);
    let sprung = || {
        let all = page::metrics(&daemon);
        ["nominated", "known"]
            .map(|result| all[&format!("bulkmark_traps_messages_total{{result=\"{result}\"}}")])
    };
    // An interface without recipients cannot recognise a trap.
    assert_eq!(judge(&site, "?queue-id=4A", &letter(1))["counted"], true);
    assert_eq!(by_milter(&daemon, "4A", None, "x@trap.test", &letter(1)).reply, "d");
    assert_eq!(sprung(), [1.0, 0.0]);
    daemon.log.wait_for(0, "trap=nominated action=discard");
    // An interface with recipients has reported it already.
    assert_eq!(judge(&site, "?queue-id=4B&rcpt=x@trap.test", &letter(200))["counted"], true);
    assert_eq!(sprung(), [2.0, 0.0]);
    assert_eq!(by_milter(&daemon, "4B", None, "x@trap.test", &letter(200)).reply, "d");
    daemon.log.wait_for(0, "trap=known action=discard");
    assert_eq!(sprung(), [2.0, 0.0], "it is one message");
    assert_eq!([1, 200].map(|n| count(&site, &letter(n))), [1, 1]);
}

/// An account's limit holds, and its correspondents are remembered, whatever interface was asked before; its messages are added up once.
#[test]
fn what_own_users_send_through_several_interfaces_is_theirs() {
    let keys = "exempt = [\"authenticated\"]\n[outbound]\nrecipients = 3\naction = \"reject\"\n[outbound.match]\nlogin = \"*\"\n";
    let site = site(keys, "", "");
    let daemon = start(&site);
    let written = || status(&site)["correspondents"].as_u64().unwrap();
    let is_told = |id: &str, recipients: u32| {
        let fields = format!("account=<anna> account-bulk=0 account-recipients={recipients} ");
        let line = daemon.log.wait_for(0, &fields);
        assert!(line.contains(id), "{line}");
    };
    // The first interface does not know the login; the second does.
    judge(&site, "?queue-id=4A&rcpt=ben@friends.test", &letter(1));
    assert_eq!(written(), 0);
    assert_eq!(by_milter(&daemon, "4A", Some("anna"), "ben@friends.test", &letter(1)).reply, "c");
    is_told("4A", 1);
    assert_eq!(written(), 1);
    judge(&site, "?queue-id=4B&user=anna&from=anna@box.test&rcpt=carl@friends.test", &letter(200));
    is_told("4B", 2);
    assert_eq!(written(), 2);
    // If counted twice, it would be over the limit.
    assert_eq!(by_milter(&daemon, "4B", Some("anna"), "carl@friends.test", &letter(200)).reply, "c");
    judge(&site, "?queue-id=4C&rcpt=dora@friends.test", &letter(400));
    let reply = by_milter(&daemon, "4C", Some("anna"), "dora@friends.test", &letter(400)).reply;
    assert!(reply.starts_with("550 5.7.1 mail of an account over its limit refused"), "{reply}");
    assert_eq!(written(), 2, "who is over the limit writes to nobody");
}
