// SPDX-License-Identifier: GPL-3.0-or-later
//! Letters that are counted, and the counts of them.

use super::milter::{Client, Mail, session};
use super::{Daemon, Site, wait_until};

/// A message with this number, as it travels; different numbers are different messages.
pub fn letter(n: usize) -> Vec<u8> {
    let text = format!("number{n} alpha{n} beta gamma delta epsilon zeta eta theta iota kappa lambda mu");
    super::crlf(&format!("Subject: x\n\n{text}\n"))
}

/// Has a milter see a letter so many times: mail flows.
pub fn send(milter: &Daemon, letter: &[u8], times: usize) {
    let mut client: Client = session(milter);
    for _ in 0..times {
        assert!(client.message(&Mail::raw(letter)).count().is_some(), "a message was not counted");
    }
}

/// The count that `bulkmark check` tells.
pub fn count(site: &Site, letter: &[u8]) -> u64 {
    let (_, answer) = site.check(letter);
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"));
    answer["body"]["count"].as_u64().unwrap_or_else(|| panic!("{answer}"))
}

/// Asks until the count is what is expected.
pub fn wait_for(site: &Site, letter: &[u8], expected: u64) {
    wait_until("a count", || {
        let found = count(site, letter);
        if found == expected { Ok(()) } else { Err(format!("{found} instead of {expected}")) }
    });
}
