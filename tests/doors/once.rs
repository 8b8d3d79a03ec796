// SPDX-License-Identifier: GPL-3.0-or-later
//! A message that comes through several doors counts once.

use crate::asking::{counts, judge, metrics, site, start};
use crate::common::letters::{count, letter};
use crate::common::milter::{Mail, session};

fn with_id(n: usize, id: &str) -> Vec<u8> {
    [format!("Message-ID: <{id}@example.org>\r\n").as_bytes(), &letter(n)].concat()
}

#[test]
fn by_its_message_id_or_queue_id() {
    let site = site("exempt-loopback = false\n", "", "");
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
    // What has no name counts as often as it comes.
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
