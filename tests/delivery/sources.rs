// SPDX-License-Identifier: GPL-3.0-or-later
//! The networks of a count: one network cannot get others' mail refused.

use bulkmark_testing::mta::Kind;
use bulkmark_testing::networks::strangers;
use bulkmark_testing::rig::{Rig, message};
use bulkmark_testing::smtp::{Origin, Reply};

with_both!(
    a_bank_s_letters_are_not_refused_for_one_transaction_of_a_stranger,
    the_twentieth_copy_of_one_sender_is_refused,
    the_twentieth_copy_of_a_campaign_from_many_hosts_is_refused,
    spellings_of_one_mailbox_are_one_recipient
);

const REFUSING: &str = "[actions]\nbulk = \"reject\"\nnear = \"reject\"\n";

/// A notice that a bank sends to its customers.
fn notice(customer: &str) -> Vec<u8> {
    message(
        "",
        &format!(
            "Dear {customer},\n\nyour statement for the last quarter is ready. Please log in to our web pages as you \
             always do, open the mailbox at the top right and look for the new document. For your safety this message \
             has no link, and we never ask for passwords by mail or by telephone. Statements stay in the mailbox for \
             ten years. Whoever wants them on paper writes to the branch; each sheet costs what the list of prices \
             says. Questions are answered at the counter, on working days from nine to four.\n\nYour savings bank at \
             the harbour\n"
        ),
    )
}

/// Clients of so many networks, as this mail server sees them.
fn hosts(kind: Kind, number: usize) -> Vec<String> {
    // Sendmail sees loopback addresses that differ in their first number only.
    strangers(number, |n| kind.seen(&format!("198.51.{n}.7")))
}

fn send(rig: &Rig, ip: &str, recipients: &[String], message: &[u8]) -> Reply {
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    rig.from(Origin { ip, ..Origin::default() }).send("news@sender.test", &recipients, message)
}

fn readers(number: usize) -> Vec<String> {
    (0..number).map(|n| format!("reader{n}@box.test")).collect()
}

fn a_bank_s_letters_are_not_refused_for_one_transaction_of_a_stranger(kind: Kind) {
    let config = format!("[thresholds]\nmin-messages = 1\n{REFUSING}");
    let Some(rig) = Rig::start(kind, &config) else { return };
    let [bank, strangers @ ..] = &hosts(kind, 4)[..] else { unreachable!() };
    for (n, stranger) in strangers.iter().enumerate() {
        // To twenty-five recipients, so that it is bulk at once.
        let reply = send(&rig, stranger, &readers(25), &notice("Anna Example"));
        assert!(n > 0 || reply.code == 550, "the stranger's own mail: {reply:?}");
        if n == 2 {
            break;
        }
        for letter in 0..4 {
            let customer = format!("customer{n}{letter}@box.test");
            send(&rig, bank, std::slice::from_ref(&customer), &notice("Anna Example")).expect(250);
            let header = rig.mta.wait_for_mail(&customer, 1)[0].header("X-Bulkmark").concat();
            let own = 4 * n + letter + 1;
            let expected = format!("; host=mx.test; sources={}; own={own}; held=sources", n + 1);
            assert!(header.starts_with("bulk; ") && header.ends_with(&expected), "{header} {expected}");
        }
    }
    // The third network.
    send(&rig, bank, &readers(1), &notice("Anna Example")).expect(550);
}

fn the_twentieth_copy_of_one_sender_is_refused(kind: Kind) {
    let Some(rig) = Rig::start(kind, REFUSING) else { return };
    let host = &hosts(kind, 1)[0];
    for n in 1..=30 {
        // From any address in its network.
        let ip = host.replace(".7", &format!(".{n}"));
        let reply = send(&rig, &ip, &[format!("reader{n}@box.test")], &notice("Anna Example"));
        reply.expect(if n < 20 { 250 } else { 550 });
    }
}

fn the_twentieth_copy_of_a_campaign_from_many_hosts_is_refused(kind: Kind) {
    let Some(rig) = Rig::start(kind, REFUSING) else { return };
    for (n, host) in (1..).zip(hosts(kind, 30)) {
        let reply =
            send(&rig, &host, &[format!("reader{n}@box.test")], &notice(&format!("customer number {n}")));
        reply.expect(if n < 20 { 250 } else { 550 });
    }
}

fn spellings_of_one_mailbox_are_one_recipient(kind: Kind) {
    let Some(mut rig) = Rig::start(kind, "") else { return };
    let plus = (0..20).map(|n| format!("anna+{n}@box.test"));
    let others = ["Anna@box.test", "ANNA@Box.Test", "\"anna\"@box.test"].map(str::to_owned);
    let spellings: Vec<String> = plus.chain(others).collect();
    let host = &hosts(kind, 1)[0];
    send(&rig, host, &spellings, &notice("Anna Example")).expect(250);
    send(&rig, host, &["bruno@box.test".to_owned()], &notice("Anna Example")).expect(250);
    assert!(rig.mta.wait_for_mail("bruno@box.test", 1)[0].verdict().starts_with("clean; body=2; "));
    // If they are different mailboxes, they count.
    rig.reload("[counting]\nrecipient-delimiter = \"\"\n");
    send(&rig, host, &spellings, &notice("Anna Example")).expect(250);
    send(&rig, host, &["carla@box.test".to_owned()], &notice("Anna Example")).expect(250);
    let verdict = rig.mta.wait_for_mail("carla@box.test", 1)[0].verdict();
    assert!(verdict.starts_with("bulk; body=24; "), "{verdict}");
}
